/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose memory HSDP uses: hosts that own whole parameters, tensors handed over by DLPack in both
 * directions, and what lives how long. */
#include "support/dlpack.h"
#include "support/hsdp.h"
#include "support/states.h"

static int deleted;

static void count_deleted(struct DLManagedTensorVersioned* self) {
  (void)self;
  ++deleted;
}

static void count_deleted_legacy(struct DLManagedTensor* self) {
  (void)self;
  ++deleted;
}

static DLTensor floats(float* data, int64_t* shape, int32_t ndim) {
  const DLTensor tensor = {data, SHW_DEVICE_CPU, 0, ndim, DL_FLOAT, 32, 1, shape, NULL, 0};
  return tensor;
}

static int64_t weight_shape[] = {ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT};
static int64_t bias_shape[] = {COLUMNS_OF_WEIGHT};

static struct DLManagedTensorVersioned versioned(float* data, int64_t* shape, int32_t ndim) {
  const struct DLManagedTensorVersioned tensor = {
      1, 0, NULL, count_deleted, 0, floats(data, shape, ndim)};
  return tensor;
}

static void parameters_come_by_dlpack(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  struct DLManagedTensorVersioned weight = versioned(trainer.weight, weight_shape, 2);
  struct DLManagedTensorVersioned bias = versioned(trainer.bias, bias_shape, 1);
  struct DLManagedTensorVersioned* managed[] = {&weight, &bias};
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "by dlpack", 9, NULL, &unit, &error));
  deleted = 0;
  CHECK_FAILS(shw_hsdp_unit_add_params_dlpack(unit, &batch, managed, &error), SHW_INVALID_ARGUMENT,
              "tensors must be NULL");
  batch.tensors = NULL;
  bias.dl_tensor.lanes = 2;
  CHECK_FAILS(shw_hsdp_unit_add_params_dlpack(unit, &batch, managed, &error), SHW_UNIMPLEMENTED,
              "managed[1]");
  CHECK_INT(deleted, 0);
  bias.dl_tensor.lanes = 1;
  CHECK_OK(shw_hsdp_unit_add_params_dlpack(unit, &batch, managed, &error));
  CHECK_INT(deleted, 0);
  CHECK_OK(shw_hsdp_unit_seal(unit, &error));
  CHECK_INT(deleted, 2);
  shw_tensor local = SHW_TENSOR_INIT;
  CHECK_OK(shw_hsdp_unit_views(unit, SHW_HSDP_VIEW_LOCAL, BIAS, 1, &local, &error));
  CHECK(memcmp(local.data, trainer.bias, sizeof(trainer.bias)) == 0);
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
}

static void parameters_come_by_legacy_dlpack(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  struct DLManagedTensor weight = {floats(trainer.weight, weight_shape, 2), NULL,
                                   count_deleted_legacy};
  struct DLManagedTensor bias = {floats(trainer.bias, bias_shape, 1), NULL, count_deleted_legacy};
  struct DLManagedTensor* managed[] = {&weight, &bias};
  batch.tensors = NULL;
  deleted = 0;
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "never sealed", 12, NULL, &unit, &error));
  CHECK_OK(shw_hsdp_unit_add_params_dlpack_legacy(unit, &batch, managed, &error));
  shw_hsdp_unit_release(unit);
  CHECK_INT(deleted, 0); /* the unit goes on in its context */
  end_trainer(&trainer);
  CHECK_INT(deleted, 2);
}

static void gradients_are_taken_until_they_are_reduced(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  float grad[COLUMNS_OF_WEIGHT] = {1, 2, 3};
  struct DLManagedTensorVersioned managed = versioned(grad, bias_shape, 1);
  struct DLManagedTensorVersioned* list[] = {&managed};
  static const uint64_t params[] = {BIAS}, none[] = {PARAMS};
  deleted = 0;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_FAILS(shw_hsdp_unit_add_grads_dlpack(trainer.unit, params, list, 1, SHW_HSDP_TAKE, &error),
              SHW_FAILED_PRECONDITION, "SHARDED");
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer.unit, NULL, &error));
  CHECK_FAILS(shw_hsdp_unit_add_grads_dlpack(trainer.unit, none, list, 1, SHW_HSDP_TAKE, &error),
              SHW_OUT_OF_RANGE, "parameter 2");
  CHECK_FAILS(shw_hsdp_unit_add_grads_dlpack(trainer.unit, params, list, 1, 2, &error),
              SHW_INVALID_ARGUMENT, "mode");
  CHECK_INT(deleted, 0);
  CHECK_OK(shw_hsdp_unit_add_grads_dlpack(trainer.unit, params, list, 1, SHW_HSDP_TAKE, &error));
  CHECK_INT(deleted, 0); /* it is read where it lies */
  grad[0] = 5;
  CHECK_OK(shw_hsdp_unit_reduce(trainer.unit, NULL, &error));
  CHECK_INT(deleted, 1);
  CHECK(((const float*)view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS).data)[0] == 5);
  struct DLManagedTensor legacy = {floats(grad, bias_shape, 1), NULL, count_deleted_legacy};
  struct DLManagedTensor* legacy_list[] = {&legacy};
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_add_grads_dlpack_legacy(trainer.unit, params, legacy_list, 1, SHW_HSDP_ADD,
                                                 &error));
  CHECK_INT(deleted, 2); /* a copy was added */
  end_trainer(&trainer);
}

static void views_leave_by_dlpack_and_keep_the_context(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  struct DLManagedTensorVersioned* out = NULL;
  struct DLManagedTensor* legacy = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_FAILS(shw_hsdp_unit_view_dlpack(trainer.unit, SHW_HSDP_VIEW_GRAD, WEIGHT, &out, &error),
              SHW_FAILED_PRECONDITION, "has no gradient");
  CHECK_OK(shw_hsdp_unit_view_dlpack(trainer.unit, SHW_HSDP_VIEW_LOCAL, WEIGHT, &out, &error));
  CHECK_OK(
      shw_hsdp_unit_view_dlpack_legacy(trainer.unit, SHW_HSDP_VIEW_LOCAL, BIAS, &legacy, &error));
  end_trainer(&trainer);
  CHECK(out->dl_tensor.ndim == 2 && out->dl_tensor.shape[0] == ROWS_OF_WEIGHT &&
        out->dl_tensor.strides[0] == COLUMNS_OF_WEIGHT && out->dl_tensor.strides[1] == 1);
  CHECK(((const float*)out->dl_tensor.data)[14] == 15);
  CHECK(((const float*)legacy->dl_tensor.data)[2] == 102);
  out->deleter(out);
  legacy->deleter(legacy);
}

/* Reduces a gradient of the bias whose first element is as given. */
static void reduce_bias(struct trainer* trainer, float first) {
  shw_error* error = NULL;
  float grad[COLUMNS_OF_WEIGHT] = {first, 2, 3};
  struct DLManagedTensorVersioned managed = versioned(grad, bias_shape, 1);
  struct DLManagedTensorVersioned* list[] = {&managed};
  static const uint64_t params[] = {BIAS};
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer->unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_add_grads_dlpack(trainer->unit, params, list, 1, SHW_HSDP_ADD, &error));
  CHECK_OK(shw_hsdp_unit_reduce(trainer->unit, NULL, &error));
}

static uint64_t bytes_of_gradients(const struct trainer* trainer) {
  shw_error* error = NULL;
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  CHECK_OK(shw_hsdp_stats(trainer->hsdp, SHW_HSDP_MEMORY_SHARD_GRADS, &memory, &error));
  return memory.current_bytes;
}

static void a_gradient_is_taken_by_exporting_and_dropping_it(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  struct DLManagedTensorVersioned* out = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  reduce_bias(&trainer, 5);
  const uint64_t bytes = bytes_of_gradients(&trainer);
  CHECK_OK(shw_hsdp_unit_view_dlpack(trainer.unit, SHW_HSDP_VIEW_GRAD, BIAS, &out, &error));
  CHECK_OK(shw_hsdp_zero_grads(trainer.hsdp, &error));
  CHECK(view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS).data == NULL);
  CHECK(bytes > 0 && bytes_of_gradients(&trainer) == bytes); /* the tensor has them */
  reduce_bias(&trainer, 7);
  CHECK(bytes_of_gradients(&trainer) == 2 * bytes);
  CHECK(((const float*)out->dl_tensor.data)[0] == 5);
  CHECK(((const float*)view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS).data)[0] == 7);
  end_trainer(&trainer);
  CHECK(((const float*)out->dl_tensor.data)[0] == 5);
  out->deleter(out);
}

static void the_host_gives_memory_before_each_use(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  float weight[ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT], bias[COLUMNS_OF_WEIGHT];
  void* const memory[] = {weight, bias};
  static const uint64_t sizes[] = {sizeof(weight), sizeof(bias)};
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  options.flags = SHW_HSDP_UNIT_HOST_MEMORY;
  start_trainer(&trainer, 0, 1, NULL, &options);
  CHECK_OK(shw_hsdp_unit_set_memory(trainer.unit, 0, PARAMS, memory, sizes, &error));
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer.unit, NULL, &error));
  CHECK(view_of(&trainer, SHW_HSDP_VIEW_FULL, WEIGHT).data == weight && weight[14] == 15 &&
        bias[2] == 102);
  CHECK_FAILS(shw_hsdp_unit_set_memory(trainer.unit, 0, PARAMS, memory, sizes, &error),
              SHW_FAILED_PRECONDITION, "UNSHARDED");
  CHECK_OK(shw_hsdp_unit_reshard(trainer.unit, SHW_HSDP_BACKWARD, &error));
  void* const nothing[] = {NULL};
  CHECK_FAILS(shw_hsdp_unit_set_memory(trainer.unit, 0, 1, nothing, sizes, &error),
              SHW_INVALID_ARGUMENT, "memory[0] is NULL");
  CHECK_FAILS(shw_hsdp_unit_set_memory(trainer.unit, 1, PARAMS, memory, sizes, &error),
              SHW_OUT_OF_RANGE, "parameters 1 to 3");
  static const uint64_t short_size[] = {8};
  CHECK_OK(shw_hsdp_unit_set_memory(trainer.unit, WEIGHT, 1, memory, short_size, &error));
  CHECK_FAILS(shw_hsdp_unit_unshard(trainer.unit, NULL, &error), SHW_FAILED_PRECONDITION,
              "needs 60 bytes of the host");
  end_trainer(&trainer);
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_FAILS(shw_hsdp_unit_set_memory(trainer.unit, 0, PARAMS, memory, sizes, &error),
              SHW_FAILED_PRECONDITION, "SHW_HSDP_UNIT_HOST_MEMORY");
  end_trainer(&trainer);
}

/* A host with an allocator; memory is that of malloc. */
struct host {
  int allocated;
  int deallocated;
  int released;
  int fails;
};

static shw_status host_allocate(void* user, uint64_t param, uint64_t bytes, void** out,
                                shw_error** err) {
  struct host* host = user;
  CHECK(param < PARAMS);
  if (host->fails)
    return shw_error_create(SHW_RESOURCE_EXHAUSTED, "the arena is full", 17, NULL, 0, NULL, err);
  ++host->allocated;
  *out = malloc(bytes);
  return SHW_OK;
}

static void host_deallocate(void* user, uint64_t param, void* memory, uint64_t bytes) {
  struct host* host = user;
  CHECK(param < PARAMS && bytes > 0);
  ++host->deallocated;
  free(memory);
}

static void host_release(void* user) {
  ++((struct host*)user)->released;
}

static void the_host_allocates_whole_parameters(void) {
  struct trainer trainer;
  struct host host = {0, 0, 0, 0};
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  shw_hsdp_allocator table = SHW_HSDP_ALLOCATOR_INIT;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "allocated", 9, NULL, &unit, &error));
  CHECK_FAILS_WITH(shw_hsdp_unit_set_allocator(unit, &table, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "allocate");
  table.allocate = host_allocate;
  CHECK_FAILS_WITH(shw_hsdp_unit_set_allocator(unit, &table, &error), SHW_INVALID_ARGUMENT,
                   "required slot", "field", "deallocate");
  table.deallocate = host_deallocate;
  table.release = host_release;
  table.user = &host;
  CHECK_FAILS(shw_hsdp_unit_set_allocator(trainer.unit, &table, &error), SHW_FAILED_PRECONDITION,
              "is sealed");
  CHECK_INT(host.released, 0);
  CHECK_OK(shw_hsdp_unit_set_allocator(unit, &table, &error));
  const shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  CHECK_OK(shw_hsdp_unit_add_params(unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(unit, &error));
  CHECK_OK(shw_hsdp_unit_unshard(unit, NULL, &error));
  CHECK_INT(host.allocated, 2);
  CHECK_OK(shw_hsdp_unit_reshard(unit, SHW_HSDP_BACKWARD, &error));
  CHECK_INT(host.deallocated, 2);
  host.fails = 1;
  CHECK_FAILS(shw_hsdp_unit_unshard(unit, NULL, &error), SHW_RESOURCE_EXHAUSTED,
              "the arena is full");
  CHECK_OK(shw_hsdp_reset(trainer.hsdp, &error));
  host.fails = 0;
  CHECK_OK(shw_hsdp_unit_unshard(unit, NULL, &error));
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
  CHECK_INT(host.allocated, host.deallocated);
  CHECK_INT(host.released, 1);
}

static void a_second_way_to_own_memory_is_refused(void) {
  struct trainer trainer;
  struct host host = {0, 0, 0, 0};
  shw_error* error = NULL;
  shw_hsdp_unit* unit = NULL;
  shw_hsdp_allocator table = SHW_HSDP_ALLOCATOR_INIT;
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  options.flags = SHW_HSDP_UNIT_HOST_MEMORY;
  table.allocate = host_allocate;
  table.deallocate = host_deallocate;
  table.release = host_release;
  table.user = &host;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "given", 5, &options, &unit, &error));
  CHECK_FAILS(shw_hsdp_unit_set_allocator(unit, &table, &error), SHW_FAILED_PRECONDITION,
              "SHW_HSDP_UNIT_HOST_MEMORY");
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
  CHECK_INT(host.released, 0);
}

TEST_MAIN(TEST_ENTRY(parameters_come_by_dlpack), TEST_ENTRY(parameters_come_by_legacy_dlpack),
          TEST_ENTRY(gradients_are_taken_until_they_are_reduced),
          TEST_ENTRY(views_leave_by_dlpack_and_keep_the_context),
          TEST_ENTRY(a_gradient_is_taken_by_exporting_and_dropping_it),
          TEST_ENTRY(the_host_gives_memory_before_each_use),
          TEST_ENTRY(the_host_allocates_whole_parameters),
          TEST_ENTRY(a_second_way_to_own_memory_is_refused))
