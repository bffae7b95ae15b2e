/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs: terminal exactly once, cancelled at any time, released while they run, progress that never
 * goes down. */
#include <pthread.h>
#include <time.h>

#include "support/scratch.h"
#include "support/states.h"

enum { VALUES = 1 << 20 };
static float values[VALUES];

/* Written once: a job that was released may still read them, and only its files tell that it ended,
 * which is no order between threads. */
static void fill_values(void) {
  for (int i = 0; i < VALUES; ++i) values[i] = (float)i;
}

static shw_state* big_state(void) {
  static pthread_once_t filled = PTHREAD_ONCE_INIT;
  pthread_once(&filled, fill_values);
  shw_state* state = make_state();
  add_floats(state, "big", values, SHAPE(1024, 1024), 2);
  return state;
}

static void reports_progress_and_result(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_job* job = NULL;
  shw_report* report = NULL;
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
  shw_progress last = SHW_PROGRESS_INIT;
  for (int32_t found = SHW_JOB_QUEUED; found < SHW_JOB_SUCCEEDED; found = shw_job_poll(job)) {
    shw_progress now = SHW_PROGRESS_INIT;
    CHECK_OK(shw_job_progress(job, &now, &error));
    CHECK(now.bytes_done >= last.bytes_done && now.items_done >= last.items_done);
    CHECK(now.elapsed_ns >= last.elapsed_ns && now.state >= last.state && strlen(now.stage) > 0);
    last = now;
  }
  CHECK_OK(shw_job_wait(job, 0, &error));
  CHECK_OK(shw_job_wait_staged(job, 0, &error));
  CHECK(shw_job_error(job) == NULL);
  CHECK_OK(shw_job_report(job, &report, &error));
  CHECK(strstr(shw_report_json(report, NULL), "\"schema\":1") != NULL);
  shw_job_cancel(job); /* too late: no effect */
  CHECK_INT(shw_job_poll(job), SHW_JOB_SUCCEEDED);
  shw_report_release(report);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

/* What a callback was told; written by one call at a time, read when all have ended. */
struct told {
  shw_progress first, last;
  int calls, ends, went_down;
};

static void note_progress(void* user, const shw_progress* now) {
  struct told* told = user;
  if (told->calls++ == 0) told->first = *now;
  const shw_progress* last = &told->last;
  told->went_down += now->bytes_done < last->bytes_done || now->items_done < last->items_done ||
                     now->elapsed_ns < last->elapsed_ns;
  told->ends += now->state == SHW_JOB_SUCCEEDED;
  told->last = *now;
}

/* It begins before anything was done, ends once with all of it, and has its distance. */
static void check_told(const struct told* told) {
  CHECK(told->calls >= 2);
  CHECK_INT(told->went_down, 0);
  CHECK_INT(told->ends, 1);
  CHECK_INT(told->first.struct_size, sizeof(shw_progress));
  CHECK_INT(told->first.state, SHW_JOB_RUNNING);
  CHECK_INT(told->first.bytes_done, 0);
  CHECK_INT(told->last.state, SHW_JOB_SUCCEEDED);
  CHECK_TEXT(told->last.stage, "done");
  CHECK(told->last.bytes_done >= sizeof(values));
  CHECK_INT(told->last.bytes_done, told->last.bytes_total);
  CHECK_INT(told->last.items_done, told->last.items_total);
  CHECK(told->calls <= 3 + told->last.elapsed_ns / 100000000);
}

static void callbacks_are_told_how_far_a_call_is(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_report* report = NULL;
  shw_job* job = NULL;
  const char* path = path_in(scratch_directory(), "c");
  struct told told[4] = {{SHW_PROGRESS_INIT, SHW_PROGRESS_INIT, 0, 0, 0}};
  shw_save_options save = SHW_SAVE_OPTIONS_INIT;
  shw_load_options load = SHW_LOAD_OPTIONS_INIT;
  save.progress = load.progress = note_progress;
  save.progress_user = &told[0];
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &save, &report, &error));
  check_told(&told[0]);
  shw_report_release(report);
  report = NULL;
  load.progress_user = &told[1];
  CHECK_OK(shw_load(context, state, NULL, path, NULL, &load, &report, &error));
  check_told(&told[1]);
  shw_report_release(report);
  save.progress_user = &told[2];
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, &save, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  check_told(&told[2]);
  shw_job_release(job);
  load.progress_user = &told[3];
  CHECK_OK(shw_load_async(context, state, NULL, path, NULL, &load, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  check_told(&told[3]);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void a_call_that_fails_does_not_tell_of_an_end(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_report* report = NULL;
  struct told told = {SHW_PROGRESS_INIT, SHW_PROGRESS_INIT, 0, 0, 0};
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  options.progress = note_progress;
  options.progress_user = &told;
  const char* path = path_in(scratch_directory(), "nothing");
  CHECK_FAILS(shw_load(context, state, NULL, path, NULL, &options, &report, &error), SHW_NOT_FOUND,
              "nothing");
  CHECK_INT(told.ends, 0);
  shw_state_release(state);
  shw_context_release(context);
}

static void can_be_cancelled_at_any_time(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  const char* path = path_in(scratch_directory(), "c");
  save_at(context, state, path);
  int cancelled = 0;
  for (int turns = 0; turns < 40; ++turns) {
    shw_job* job = NULL;
    CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
    for (int spin = 0; spin < turns * 20; ++spin) (void)shw_job_poll(job);
    shw_job_cancel(job);
    shw_job_cancel(job);
    const shw_status status = shw_job_wait(job, -1, &error);
    CHECK(status == SHW_OK || status == SHW_CANCELLED);
    CHECK_INT(shw_job_poll(job), status == SHW_OK ? SHW_JOB_SUCCEEDED : SHW_JOB_CANCELLED);
    CHECK((shw_job_error(job) == NULL) == (status == SHW_OK));
    cancelled += status == SHW_CANCELLED;
    shw_error_release(error);
    error = NULL;
    shw_job_release(job);
    shw_checkpoint_release(open_at(context, path)); /* the old or the new one, whole */
  }
  CHECK(cancelled > 0);
  shw_state_release(state);
  shw_context_release(context);
}

static void goes_on_when_everything_is_released(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "c");
  shw_state* state = big_state();
  shw_job* job = NULL;
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context); /* does not wait */
  shw_context* second = make_context();
  for (;;) {
    shw_checkpoint* checkpoint = NULL;
    const shw_status status = shw_checkpoint_open(second, NULL, path, NULL, &checkpoint, NULL);
    shw_checkpoint_release(checkpoint);
    if (status == SHW_OK) break;
  }
  shw_context_release(second);
}

static void a_failed_job_keeps_its_error(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_job* job = NULL;
  shw_report* report = NULL;
  CHECK_OK(shw_load_async(context, state, NULL, path_in(scratch_directory(), "nothing"), NULL, NULL,
                          &job, &error));
  CHECK_FAILS(shw_job_wait(job, -1, &error), SHW_NOT_FOUND, "nothing is there");
  CHECK_FAILS(shw_job_wait_staged(job, -1, &error), SHW_NOT_FOUND, "nothing is there");
  CHECK_INT(shw_error_code(shw_job_error(job)), SHW_NOT_FOUND);
  CHECK(shw_job_error(job) == shw_job_error(job));
  CHECK_FAILS(shw_job_report(job, &report, &error), SHW_FAILED_PRECONDITION, "no report");
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void shutdown_ends_what_is_left(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_job* jobs[4] = {NULL, NULL, NULL, NULL};
  const char* directory = scratch_directory();
  for (int i = 0; i < 4; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "c%d", i);
    CHECK_OK(shw_save_async(context, state, NULL, path_in(directory, name), NULL, NULL, &jobs[i],
                            &error));
  }
  CHECK_OK(shw_context_shutdown(context, -1, &error));
  for (int i = 0; i < 4; ++i) {
    CHECK_INT(shw_job_poll(jobs[i]), SHW_JOB_SUCCEEDED);
    shw_job_release(jobs[i]);
  }
  shw_job* late = NULL;
  CHECK_FAILS(
      shw_save_async(context, state, NULL, path_in(directory, "late"), NULL, NULL, &late, &error),
      SHW_FAILED_PRECONDITION, "shut down");
  shw_state_release(state);
  shw_context_release(context);
}

static void waits_give_pending_when_time_is_over(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_collective_group* group = NULL;
  shw_collective* first = NULL;
  shw_collective* second = NULL;
  shw_state* state = big_state();
  shw_job* job = NULL;
  CHECK_OK(shw_collective_group_create(2, &group, &error));
  CHECK_OK(shw_collective_group_member(group, 0, &first, &error));
  CHECK_OK(shw_collective_group_member(group, 1, &second, &error));
  shw_collective_group_release(group);
  CHECK_OK(shw_save_async(context, state, NULL, path_in(scratch_directory(), "c"), first, NULL,
                          &job, &error));
  CHECK_INT(shw_job_wait(job, 0, &error), SHW_PENDING);
  CHECK_INT(shw_job_wait(job, 1000000, &error), SHW_PENDING);
  CHECK(error == NULL);
  shw_collective_release(first);  /* the job keeps it */
  shw_collective_release(second); /* the rank is gone: the other one gets to know */
  CHECK_FAILS(shw_job_wait(job, -1, &error), SHW_ABORTED, "rank 1");
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void a_limit_keeps_the_state_from_being_copied(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_job* job = NULL;
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.memory_budget = 4096;
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, &options, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  shw_job_release(job);
  shw_checkpoint_release(open_at(context, path));
  shw_state_release(state);
  shw_context_release(context);
}

/* Staging memory that was given and not taken back; `freed` tells of the last one. */
static pthread_mutex_t staging_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t staging_changed = PTHREAD_COND_INITIALIZER;
static int staging_blocks, staging_given;

static void* give_staging(void* user, uint64_t size, uint64_t alignment) {
  (void)user;
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, size) != 0) return NULL;
  pthread_mutex_lock(&staging_mutex);
  ++staging_blocks, ++staging_given;
  pthread_mutex_unlock(&staging_mutex);
  return memory;
}
static void take_staging(void* user, void* pointer, uint64_t size, uint64_t alignment) {
  (void)user, (void)size, (void)alignment;
  free(pointer);
  pthread_mutex_lock(&staging_mutex);
  --staging_blocks;
  pthread_cond_signal(&staging_changed);
  pthread_mutex_unlock(&staging_mutex);
}

/* Nobody calls the library any more, and the job's own memory comes back when it ends. The copy of
 * the state stays with the context, for the next one. */
static void a_dropped_job_gives_its_memory_back(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_job* job = NULL;
  shw_allocator allocator = SHW_ALLOCATOR_INIT;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  shw_save_options save = SHW_SAVE_OPTIONS_INIT;
  allocator.allocate = give_staging;
  allocator.release = take_staging;
  options.allocator = &allocator;
  save.threads = 1;
  save.priority = SHW_PRIORITY_BACKGROUND; /* it stages in memory of its own */
  CHECK_OK(shw_context_create(&options, &context, &error));
  shw_state* state = big_state();
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, &save, &job, &error));
  shw_job_release(job);
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 60;
  pthread_mutex_lock(&staging_mutex);
  while (staging_given < 2 || staging_blocks != 1) {
    CHECK(pthread_cond_timedwait(&staging_changed, &staging_mutex, &limit) == 0);
  }
  pthread_mutex_unlock(&staging_mutex);
  shw_state_release(state);
  shw_context_release(context);
}

/* Ends of jobs as they are told. Each gives the memory of its job back. */
static pthread_mutex_t end_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end_changed = PTHREAD_COND_INITIALIZER;
static int ends;

static void take_back(void* memory) {
  free(memory);
  shw_report* report = NULL; /* what it must not do is refused */
  CHECK_INT(shw_job_report(NULL, &report, NULL), SHW_FAILED_PRECONDITION);
  pthread_mutex_lock(&end_mutex);
  ++ends;
  pthread_cond_signal(&end_changed);
  pthread_mutex_unlock(&end_mutex);
}

static void wait_for_ends(int count) {
  pthread_mutex_lock(&end_mutex);
  while (ends < count) pthread_cond_wait(&end_changed, &end_mutex);
  pthread_mutex_unlock(&end_mutex);
}

/* A context whose jobs wait behind one that ends, ABORTED, when `key` is released. */
static shw_context* make_held_context(shw_collective** key, shw_job** first) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_collective_group* group = NULL;
  shw_collective* member = NULL;
  shw_state* state = big_state();
  CHECK_OK(shw_collective_group_create(2, &group, &error));
  CHECK_OK(shw_collective_group_member(group, 0, &member, &error));
  CHECK_OK(shw_collective_group_member(group, 1, key, &error));
  shw_collective_group_release(group);
  CHECK_OK(shw_save_async(context, state, NULL, path_in(scratch_directory(), "held"), member, NULL,
                          first, &error));
  shw_collective_release(member);
  shw_state_release(state);
  return context;
}

/* A job that saves memory of its own, which its end gives back. */
static shw_job* save_lent(shw_context* context, const char* path) {
  enum { LENT = 1000 };
  shw_error* error = NULL;
  shw_job* job = NULL;
  float* lent = malloc(LENT * sizeof(*lent));
  for (int i = 0; i < LENT; ++i) lent[i] = (float)i;
  shw_state* state = make_state();
  add_floats(state, "lent", lent, SHAPE(LENT), 1);
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
  shw_state_release(state);
  CHECK_OK(shw_job_on_done(job, take_back, lent, &error));
  CHECK_FAILS(shw_job_on_done(job, take_back, lent, &error), SHW_FAILED_PRECONDITION, "else");
  return job;
}

/* Dropped, cancelled and failed jobs: the memory comes back once each, and nobody calls. */
static void the_end_of_a_job_is_told_once(void) {
  shw_error* error = NULL;
  shw_collective* key = NULL;
  shw_job* first = NULL;
  shw_context* context = make_held_context(&key, &first);
  const char* directory = scratch_directory();
  ends = 0;
  CHECK_OK(shw_job_on_done(first, take_back, NULL, &error));
  shw_job* dropped = save_lent(context, path_in(directory, "dropped"));
  shw_job* cancelled = save_lent(context, path_in(directory, "cancelled"));
  shw_job* failed = save_lent(context, "/dev/null/not/a/directory");
  shw_job_release(dropped);
  shw_job_cancel(cancelled);
  CHECK_INT(ends, 0);
  shw_collective_release(key);
  wait_for_ends(4);
  CHECK_INT(shw_job_poll(first), SHW_JOB_FAILED);
  CHECK_INT(shw_job_poll(cancelled), SHW_JOB_CANCELLED);
  CHECK_INT(shw_job_poll(failed), SHW_JOB_FAILED);
  CHECK_OK(shw_context_shutdown(context, -1, &error));
  CHECK_INT(ends, 4);
  shw_checkpoint_release(open_at(context, path_in(directory, "dropped")));
  shw_job_release(first);
  shw_job_release(cancelled);
  shw_job_release(failed);
  shw_context_release(context);
}

static void a_job_that_has_ended_tells_nobody(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = big_state();
  shw_job* job = NULL;
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  ends = 0;
  CHECK_FAILS(shw_job_on_done(job, take_back, NULL, &error), SHW_FAILED_PRECONDITION, "ended");
  CHECK_FAILS(shw_job_on_done(job, NULL, NULL, &error), SHW_INVALID_ARGUMENT, "on_done");
  CHECK_OK(shw_context_shutdown(context, -1, &error));
  CHECK_INT(ends, 0);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(the_end_of_a_job_is_told_once), TEST_ENTRY(a_job_that_has_ended_tells_nobody),
          TEST_ENTRY(a_dropped_job_gives_its_memory_back), TEST_ENTRY(reports_progress_and_result),
          TEST_ENTRY(callbacks_are_told_how_far_a_call_is),
          TEST_ENTRY(a_call_that_fails_does_not_tell_of_an_end),
          TEST_ENTRY(can_be_cancelled_at_any_time), TEST_ENTRY(goes_on_when_everything_is_released),
          TEST_ENTRY(a_failed_job_keeps_its_error), TEST_ENTRY(shutdown_ends_what_is_left),
          TEST_ENTRY(waits_give_pending_when_time_is_over),
          TEST_ENTRY(a_limit_keeps_the_state_from_being_copied))
