/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: options, host allocator, log, environment, use after release. */
#include <pthread.h>

#include "support/scratch.h"
#include "support/states.h"

static int allocations;
static void* count_allocate(void* user, uint64_t size, uint64_t alignment) {
  (void)user;
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  void* memory = NULL;
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}
static void count_release(void* user, void* pointer, uint64_t size, uint64_t alignment) {
  (void)user;
  (void)size;
  (void)alignment;
  __atomic_sub_fetch(&allocations, 1, __ATOMIC_RELAXED);
  free(pointer);
}

static void takes_staging_memory_from_the_host(void) {
  enum { COUNT = 1 << 19 };
  static float values[COUNT];
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_allocator allocator = SHW_ALLOCATOR_INIT;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  allocator.allocate = count_allocate;
  allocator.release = count_release;
  options.allocator = &allocator;
  CHECK_OK(shw_context_create(&options, &context, &error));
  shw_state* state = make_state();
  add_floats(state, "v", values, SHAPE(COUNT), 1);
  save_at(context, state, path_in(scratch_directory(), "c"));
  CHECK(__atomic_load_n(&allocations, __ATOMIC_RELAXED) > 0);
  shw_state_release(state);
  shw_context_release(context);
  CHECK_INT(allocations, 0);
  allocator.release = NULL;
  context = NULL;
  CHECK_FAILS(shw_context_create(&options, &context, &error), SHW_INVALID_ARGUMENT, "release");
}

static void refuses_bad_options(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.log_level = 6;
  CHECK_FAILS(shw_context_create(&options, &context, &error), SHW_INVALID_ARGUMENT, "log_level");
  options.log_level = 0;
  options.threads = 1000000;
  CHECK_FAILS(shw_context_create(&options, &context, &error), SHW_INVALID_ARGUMENT, "threads");
  options.threads = 0;
  options.memory_budget = 1;
  CHECK_FAILS(shw_context_create(&options, &context, &error), SHW_INVALID_ARGUMENT,
              "memory_budget is 1 bytes");
  CHECK(setenv("SHW_LOG", "loud", 1) == 0);
  CHECK_FAILS(shw_context_create(NULL, &context, &error), SHW_INVALID_ARGUMENT, "SHW_LOG");
  CHECK(unsetenv("SHW_LOG") == 0);
  CHECK(context == NULL);
}

static void a_released_handle_is_refused(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  shw_state_release(state);
  shw_state_release(state); /* a second release does nothing */
  CHECK_INT(shw_state_tensor_count(state), 0);
  uint64_t index = 0;
  CHECK_FAILS(shw_state_find_tensor(state, "x", 1, &index, &error), SHW_FAILED_PRECONDITION,
              "released");
}

static void releases_go_in_any_order(void) {
  shw_error* error = NULL;
  float value = 1;
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_save_planner* planner = NULL;
  add_floats(state, "v", &value, NULL, 0);
  CHECK_OK(shw_save_planner_create(context, state, 0, 1, NULL, &planner, &error));
  shw_context_release(context);
  shw_state_release(state);
  shw_buffer* local = NULL;
  CHECK_OK(shw_save_planner_local_plan(planner, &local, &error));
  shw_buffer_release(local);
  shw_save_planner_release(planner);
}

static void calls_may_have_threads_and_memory_of_their_own(void) {
  shw_error* error = NULL;
  static float values[1 << 16];
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.threads = 3;
  options.memory_budget = UINT64_C(16) << 20;
  add_floats(state, "v", values, SHAPE(1 << 16), 1);
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  CHECK(strstr(shw_report_json(report, NULL), "16777216") != NULL);
  shw_report_release(report);
  options.threads = 5000;
  report = NULL;
  CHECK_FAILS(shw_save(context, state, NULL, path, NULL, &options, &report, &error),
              SHW_INVALID_ARGUMENT, "threads");
  shw_state_release(state);
  shw_context_release(context);
}

/* Records of one context, one line each; calls of one rank log on the calling thread and on those
 * of the library. */
struct heard {
  pthread_mutex_t mutex;
  char text[8192];
  int worst;
};

static void hear(void* user, int32_t level, const shw_log_record* record) {
  struct heard* heard = user;
  pthread_mutex_lock(&heard->mutex);
  const size_t used = strlen(heard->text);
  snprintf(heard->text + used, sizeof(heard->text) - used, "%d %s %s\n", (int)level,
           record->component, record->message);
  if (level > heard->worst) heard->worst = level;
  pthread_mutex_unlock(&heard->mutex);
}

static struct heard heard = {PTHREAD_MUTEX_INITIALIZER, "", 0};

/* Verification and gc of a whole checkpoint, and a gc where there is none. */
static void says_what_it_looks_after(shw_context* context, const char* path) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = open_at(context, path);
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  CHECK(strstr(heard.text, "2 exec verifying generation ") != NULL);
  CHECK(strstr(heard.text, ", every byte\n") != NULL);
  CHECK(strstr(heard.text, "2 exec verified: 0 findings, ") != NULL);
  CHECK_OK(shw_checkpoint_gc(context, NULL, path, -1, SHW_GC_APPLY, &report, &error));
  shw_report_release(report);
  CHECK(strstr(heard.text, "2 exec gc looks at '") != NULL);
  CHECK(strstr(heard.text, "2 exec gc removed 0 generations of 0 bytes\n") != NULL);
  report = NULL;
  CHECK(shw_checkpoint_gc(context, NULL, "/nowhere", 0, 0, &report, NULL) == SHW_NOT_FOUND);
  CHECK(strstr(heard.text, "2 exec gc failed: NOT_FOUND") != NULL);
}

static void says_what_it_does(void) {
  static float values[16];
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_report* report = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.log = hear;
  options.log_user = &heard;
  options.log_level = SHW_LOG_DEBUG;
  CHECK_OK(shw_context_create(&options, &context, &error));
  shw_state* state = make_state();
  add_floats(state, "v", values, SHAPE(16), 1);
  const char* path = path_in(scratch_directory(), "c");
  save_at(context, state, path);
  static const char* const said[] = {"2 exec rank 0 of 1: saving to '", "items of",
                                     "1 exec rank 0 of 1: results: all ranks have met",
                                     "2 exec rank 0 of 1: committed generation "};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); ++i)
    CHECK(strstr(heard.text, said[i]) != NULL);
  CHECK_OK(shw_load(context, state, NULL, path, NULL, NULL, &report, &error));
  shw_report_release(report);
  CHECK(strstr(heard.text, "2 exec rank 0 of 1: loading generation ") != NULL);
  CHECK(strstr(heard.text, "2 exec rank 0 of 1: loaded: ") != NULL);
  report = NULL;
  CHECK(shw_load(context, state, NULL, "/nowhere", NULL, NULL, &report, NULL) == SHW_NOT_FOUND);
  CHECK(strstr(heard.text, "2 exec rank 0 of 1: not loaded: NOT_FOUND") != NULL);
  says_what_it_looks_after(context, path);
  CHECK_INT(heard.worst, SHW_LOG_INFO); /* whoever called has been told of it */
  shw_state_release(state);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(says_what_it_does), TEST_ENTRY(takes_staging_memory_from_the_host),
          TEST_ENTRY(refuses_bad_options), TEST_ENTRY(a_released_handle_is_refused),
          TEST_ENTRY(releases_go_in_any_order),
          TEST_ENTRY(calls_may_have_threads_and_memory_of_their_own))
