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

/* From the mesh to the state, on one rank; what was made is released whatever failed. */
struct training {
  shw_context* context;
  shw_hsdp_mesh* mesh;
  shw_hsdp* hsdp;
  shw_hsdp_unit* unit;
};

static shw_status seal_unit(struct training* training, shw_error** err) {
  shw_hsdp_param_batch batch = SHW_HSDP_PARAM_BATCH_INIT;
  static const uint64_t name_offsets[] = {0, 30};
  const shw_tensor tensor = float_tensor(values, SHAPE(4, 2), 2);
  batch.count = 1;
  batch.names = "a.rather.long.parameter.name.x";
  batch.name_offsets = name_offsets;
  batch.tensors = &tensor;
  shw_status status = shw_hsdp_unit_create(training->hsdp, "a rather long name of a unit", 28, NULL,
                                           &training->unit, err);
  CHECK((training->unit != NULL) == (status == SHW_OK));
  if (status == SHW_OK) status = shw_hsdp_unit_add_params(training->unit, &batch, err);
  if (status == SHW_OK) status = shw_hsdp_unit_seal(training->unit, err);
  return status;
}

static shw_status iterate(struct training* training, shw_error** err) {
  static const uint64_t params[] = {0};
  const shw_tensor grad = float_tensor(values, SHAPE(4, 2), 2);
  shw_hsdp_unit* unit = training->unit;
  shw_status status = shw_hsdp_unit_pre_forward(unit, NULL, err);
  if (status == SHW_OK) status = shw_hsdp_unit_post_forward(unit, NULL, err);
  if (status == SHW_OK) status = shw_hsdp_unit_pre_backward(unit, err);
  if (status == SHW_OK) status = shw_hsdp_unit_add_grads(unit, params, &grad, 1, SHW_HSDP_ADD, err);
  if (status == SHW_OK) status = shw_hsdp_unit_post_backward(unit, err);
  if (status == SHW_OK) status = shw_hsdp_finalize_backward(training->hsdp, err);
  return status;
}

static shw_status describe(struct training* training, shw_error** err) {
  shw_state* state = NULL;
  shw_layout* layout = NULL;
  shw_hsdp_box box = SHW_HSDP_BOX_INIT;
  shw_status status = shw_state_create(&state, err);
  if (status == SHW_OK) {
    status = shw_hsdp_add_to_state(training->hsdp, "model.", 6, SHW_HSDP_PARAMS, state, err);
    CHECK_INT(shw_state_tensor_count(state), status == SHW_OK);
  }
  if (status == SHW_OK) status = shw_hsdp_unit_layout(training->unit, 0, &layout, err);
  if (status == SHW_OK) status = shw_hsdp_unit_box(training->unit, 0, &box, err);
  shw_layout_release(layout);
  shw_state_release(state);
  return status;
}

static shw_status train_once(void* user, shw_error** err) {
  struct training training = {user, NULL, NULL, NULL};
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  shw_hsdp_options options = SHW_HSDP_OPTIONS_INIT;
  spec.mesh_ndim = 1;
  spec.mesh_shape = SHAPE(1);
  shw_status status = shw_hsdp_mesh_create(&spec, 0, &training.mesh, err);
  options.mesh = training.mesh;
  if (status == SHW_OK) status = shw_hsdp_create(training.context, &options, &training.hsdp, err);
  CHECK((training.hsdp != NULL) == (status == SHW_OK));
  if (status == SHW_OK) status = seal_unit(&training, err);
  if (status == SHW_OK) status = iterate(&training, err);
  if (status == SHW_OK) status = describe(&training, err);
  shw_hsdp_unit_release(training.unit);
  shw_hsdp_release(training.hsdp);
  shw_hsdp_mesh_release(training.mesh);
  return status;
}

static void training_fails_cleanly(void) {
  shw_context* context = make_context();
  CHECK(fail_each_allocation(train_once, context) >= 30);
  shw_context_release(context);
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
          TEST_ENTRY(plans_and_checkpoints_fail_cleanly), TEST_ENTRY(training_fails_cleanly),
          TEST_ENTRY(errors_can_be_made_without_memory))
