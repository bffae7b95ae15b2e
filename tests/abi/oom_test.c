/* SPDX-License-Identifier: Apache-2.0
 *
 * Out of memory at every allocation of a call: the n-th one fails, for all n until the call
 * succeeds. Each failure is a clean status with an error object, nothing leaks into out parameters,
 * and the state is as it was. This program's malloc stands in front of the C library's, and
 * operator new of libstdc++ calls it. */
#include <dlfcn.h>
#include <errno.h>

#include "support/scratch.h"
#include "support/states.h"

static __thread int64_t countdown = -1; /* allocations of this thread until one fails; -1 = off */
static __thread int failing;            /* set by the failure; all later ones fail as well */

static int must_fail(void) {
  if (failing) return 1;
  if (countdown < 0) return 0;
  if (countdown > 0) {
    --countdown;
    return 0;
  }
  failing = 1;
  return 1;
}

#define EXPORTED __attribute__((visibility("default")))

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

EXPORTED void* malloc(size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_malloc(size);
}
EXPORTED void* calloc(size_t count, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_calloc(count, size);
}
EXPORTED void* realloc(void* memory, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_realloc(memory, size);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_memalign(alignment, size);
}

typedef shw_status (*call_function)(void* user, shw_error** err);

/* Runs the call with more and more allocations allowed; gives the number that it needs. */
static int64_t fail_each_allocation(call_function call, void* user) {
  for (int64_t allowed = 0;; ++allowed) {
    shw_error* error = NULL;
    countdown = allowed;
    failing = 0;
    const shw_status status = call(user, &error);
    const int failed = failing;
    countdown = -1;
    failing = 0;
    if (!failed) {
      CHECK_INT(status, SHW_OK);
      CHECK(error == NULL);
      return allowed;
    }
    if (status == SHW_OK) continue; /* what failed could be done without */
    if (status != SHW_RESOURCE_EXHAUSTED) {
      fprintf(stderr, "allocation %lld: %s: %s\n", (long long)allowed, shw_status_name(status),
              shw_error_message(error, NULL));
      exit(1);
    }
    CHECK_INT(shw_error_code(error), SHW_RESOURCE_EXHAUSTED);
    CHECK(shw_error_detail_count(error) >= 1);
    shw_error_release(error);
  }
}

static shw_status make_buffer(void* user, shw_error** err) {
  shw_buffer* buffer = NULL;
  (void)user;
  const shw_status status = shw_buffer_create("abc", 3, &buffer, err);
  CHECK((buffer != NULL) == (status == SHW_OK));
  shw_buffer_release(buffer);
  return status;
}

static shw_status make_tensor(void* user, shw_error** err) {
  shw_owned_tensor* tensor = NULL;
  (void)user;
  const shw_status status = shw_owned_tensor_create(SHW_FLOAT32, SHAPE(4), 1, &tensor, err);
  CHECK((tensor != NULL) == (status == SHW_OK));
  shw_owned_tensor_release(tensor);
  return status;
}

static void makers_fail_cleanly(void) {
  CHECK(fail_each_allocation(make_buffer, NULL) >= 2);
  CHECK(fail_each_allocation(make_tensor, NULL) >= 2);
}

static int added;
static float values[8];
static shw_status add_entry(void* user, shw_error** err) {
  char name[48];
  const shw_tensor tensor = float_tensor(values, SHAPE(2, 4), 2);
  const uint64_t before = shw_state_tensor_count(user);
  const int length = snprintf(name, sizeof(name), "a.rather.long.name.of.a.tensor.%d", added++);
  const shw_status status = try_add_one(user, name, (uint64_t)length, &tensor, err);
  CHECK_INT(shw_state_tensor_count(user), before + (status == SHW_OK));
  return status;
}

static void a_state_stays_as_it_was(void) {
  shw_state* state = make_state();
  CHECK(fail_each_allocation(add_entry, state) >= 3);
  shw_state_release(state);
}

struct planned {
  shw_context* context;
  shw_state* state;
  const char* path;
};

static shw_status plan_locally(void* user, shw_error** err) {
  struct planned* planned = user;
  shw_save_planner* planner = NULL;
  shw_buffer* plan = NULL;
  shw_status status =
      shw_save_planner_create(planned->context, planned->state, 0, 1, NULL, &planner, err);
  if (status == SHW_OK) status = shw_save_planner_local_plan(planner, &plan, err);
  CHECK((plan != NULL) == (status == SHW_OK));
  shw_buffer_release(plan);
  shw_save_planner_release(planner);
  return status;
}

static shw_status open_checkpoint(void* user, shw_error** err) {
  struct planned* planned = user;
  shw_checkpoint* checkpoint = NULL;
  const shw_status status =
      shw_checkpoint_open(planned->context, NULL, planned->path, NULL, &checkpoint, err);
  CHECK((checkpoint != NULL) == (status == SHW_OK));
  shw_checkpoint_release(checkpoint);
  return status;
}

static shw_status fail_to_find(void* user, shw_error** err) {
  uint64_t index = 0;
  const shw_status status =
      shw_state_find_tensor(user, "a name that is not there", 24, &index, err);
  if (status != SHW_NOT_FOUND) return status;
  CHECK(err == NULL || *err != NULL);
  shw_error_release(*err);
  *err = NULL;
  return SHW_OK;
}

static void plans_and_checkpoints_fail_cleanly(void) {
  struct planned planned = {make_context(), make_state(), path_in(scratch_directory(), "c")};
  add_floats(planned.state, "w", values, SHAPE(8), 1);
  add_object(planned.state, "o", "application/json", "{}");
  save_at(planned.context, planned.state, planned.path);
  CHECK(fail_each_allocation(plan_locally, &planned) >= 5);
  CHECK(fail_each_allocation(open_checkpoint, &planned) >= 5);
  CHECK(fail_each_allocation(fail_to_find, planned.state) >= 1);
  shw_state_release(planned.state);
  shw_context_release(planned.context);
}

static void errors_can_be_made_without_memory(void) {
  shw_error* error = NULL;
  countdown = 0;
  CHECK_INT(shw_error_create(SHW_ABORTED, "text", 4, NULL, 0, NULL, &error), SHW_ABORTED);
  countdown = -1;
  failing = 0;
  CHECK_INT(shw_error_code(error), SHW_RESOURCE_EXHAUSTED);
  CHECK(strstr(shw_error_message(error, NULL), "out of memory") != NULL);
  shw_error_release(error); /* the immortal one: twice is fine */
  shw_error_release(error);
}

TEST_MAIN(TEST_ENTRY(makers_fail_cleanly), TEST_ENTRY(a_state_stays_as_it_was),
          TEST_ENTRY(plans_and_checkpoints_fail_cleanly),
          TEST_ENTRY(errors_can_be_made_without_memory))
