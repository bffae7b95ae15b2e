/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack in (both structs; consumed on success only; deleter exactly once, on a host thread), every
 * refusal, and out. */
#include "support/dlpack.h"

#include <pthread.h>

#include "support/scratch.h"
#include "support/states.h"

static int deletions;
static pthread_t deleting_thread;

static void count_versioned(struct DLManagedTensorVersioned* self) {
  (void)self;
  ++deletions;
  deleting_thread = pthread_self();
}
static void count_legacy(struct DLManagedTensor* self) {
  (void)self;
  ++deletions;
}

static float values[6] = {0, 1, 2, 3, 4, 5};
static int64_t shape[] = {2, 3};

static DLTensor plain(void) {
  const DLTensor tensor = {values, 1, 0, 2, DL_FLOAT, 32, 1, shape, NULL, 0};
  return tensor;
}

static struct DLManagedTensorVersioned versioned(void) {
  const struct DLManagedTensorVersioned managed = {1, 1, NULL, count_versioned, 0, plain()};
  return managed;
}

static shw_status add(shw_state* state, struct DLManagedTensorVersioned* managed, shw_error** err) {
  static const uint64_t offsets[] = {0, 1};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = offsets;
  return shw_state_add_dlpack(state, &batch, &managed, err);
}

static void describes_both_kinds(void) {
  shw_error* error = NULL;
  shw_tensor tensor = SHW_TENSOR_INIT;
  struct DLManagedTensorVersioned managed = versioned();
  managed.flags = 1;
  managed.dl_tensor.byte_offset = 4;
  CHECK_OK(shw_tensor_from_dlpack(&managed, &tensor, &error));
  CHECK(tensor.data == values && tensor.byte_offset == 4);
  CHECK_INT(tensor.flags, SHW_TENSOR_READ_ONLY);
  CHECK_INT(tensor.ndim, 2);
  const struct DLManagedTensor legacy = {plain(), NULL, count_legacy};
  CHECK_OK(shw_tensor_from_dlpack_legacy(&legacy, &tensor, &error));
  CHECK_INT(tensor.flags, 0);
  CHECK_INT(tensor.dtype, SHW_FLOAT32);
}

static void consumes_on_success_and_deletes_once(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  struct DLManagedTensorVersioned managed = versioned();
  deletions = 0;
  CHECK_OK(add(state, &managed, &error));
  CHECK_INT(deletions, 0);
  shw_state_release(state);
  CHECK_INT(deletions, 1);
}

static void takes_legacy_tensors_and_null_deleters(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  static const uint64_t offsets[] = {0, 1, 2};
  struct DLManagedTensor first = {plain(), NULL, count_legacy};
  struct DLManagedTensor second = {plain(), NULL, NULL};
  struct DLManagedTensor* const list[] = {&first, &second};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 2;
  batch.names = "ab";
  batch.name_offsets = offsets;
  deletions = 0;
  CHECK_OK(shw_state_add_dlpack_legacy(state, &batch, list, &error));
  CHECK_INT(shw_state_tensor_count(state), 2);
  shw_state_release(state);
  CHECK_INT(deletions, 1);
}

static shw_status add_legacy(shw_state* state, struct DLManagedTensor* managed, shw_error** err) {
  static const uint64_t offsets[] = {0, 1};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = offsets;
  return shw_state_add_dlpack_legacy(state, &batch, &managed, err);
}

/* What both structs can get wrong. */
static int64_t negative[] = {2, -3};
static int64_t overflowing[] = {INT64_MAX, 3};
static int64_t backwards[] = {-3, 1};
static void spoil_opaque(DLTensor* tensor) {
  tensor->code = DL_OPAQUE;
}
static void spoil_lanes(DLTensor* tensor) {
  tensor->lanes = 4;
}
static void spoil_no_lanes(DLTensor* tensor) {
  tensor->lanes = 0;
}
static void spoil_code(DLTensor* tensor) {
  tensor->code = 99;
}
static void spoil_float6(DLTensor* tensor) {
  tensor->code = DL_FLOAT6_E2M3FN;
  tensor->bits = 8;
}
static void spoil_float4(DLTensor* tensor) {
  tensor->code = DL_FLOAT4_E2M1FN;
  tensor->bits = 8;
}
static void spoil_device(DLTensor* tensor) {
  tensor->device_type = 77;
}
static void spoil_no_device(DLTensor* tensor) {
  tensor->device_type = 0;
}
static void spoil_reach(DLTensor* tensor) {
  tensor->device_type = SHW_DEVICE_CUDA;
}
static void spoil_extent(DLTensor* tensor) {
  tensor->shape = negative;
}
static void spoil_count(DLTensor* tensor) {
  tensor->shape = overflowing;
}
static void spoil_stride(DLTensor* tensor) {
  tensor->strides = backwards;
}
static void spoil_few_dimensions(DLTensor* tensor) {
  tensor->ndim = -1;
}
static void spoil_many_dimensions(DLTensor* tensor) {
  tensor->ndim = 65;
}
static void spoil_shape(DLTensor* tensor) {
  tensor->shape = NULL;
}
static void spoil_data(DLTensor* tensor) {
  tensor->data = NULL;
}
static void spoil_offset(DLTensor* tensor) {
  tensor->byte_offset = UINT64_MAX;
}

static const struct {
  void (*spoil)(DLTensor* tensor);
  shw_status status;
  const char* text;
} kRefusals[] = {
    {spoil_opaque, SHW_UNIMPLEMENTED, "opaque"},
    {spoil_lanes, SHW_UNIMPLEMENTED, "4 lanes"},
    {spoil_no_lanes, SHW_UNIMPLEMENTED, "0 lanes"},
    {spoil_code, SHW_UNIMPLEMENTED, "code 99"},
    {spoil_float6, SHW_INVALID_ARGUMENT, "float6 element has 6 bits, not 8"},
    {spoil_float4, SHW_INVALID_ARGUMENT, "float4 element has 4 bits, not 8"},
    {spoil_device, SHW_UNIMPLEMENTED, "device type 77"},
    {spoil_no_device, SHW_UNIMPLEMENTED, "device type 0"},
    {spoil_reach, SHW_UNIMPLEMENTED, "lies on cuda:0"},
    {spoil_extent, SHW_INVALID_ARGUMENT, "extent 1 of the shape is negative: -3"},
    {spoil_count, SHW_INVALID_ARGUMENT, "does not fit 63 bits"},
    {spoil_stride, SHW_INVALID_ARGUMENT, "stride 0 of the tensor is negative: -3"},
    {spoil_few_dimensions, SHW_INVALID_ARGUMENT, "ndim is -1"},
    {spoil_many_dimensions, SHW_INVALID_ARGUMENT, "ndim is 65"},
    {spoil_shape, SHW_INVALID_ARGUMENT, "shape is NULL"},
    {spoil_data, SHW_INVALID_ARGUMENT, "data pointer"},
    {spoil_offset, SHW_INVALID_ARGUMENT, "63 bits"},
};

static void leaves_what_both_kinds_get_wrong_to_the_caller(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  deletions = 0;
  for (size_t i = 0; i < sizeof(kRefusals) / sizeof(kRefusals[0]); ++i) {
    struct DLManagedTensorVersioned managed = versioned();
    struct DLManagedTensor legacy = {plain(), NULL, count_legacy};
    kRefusals[i].spoil(&managed.dl_tensor);
    kRefusals[i].spoil(&legacy.dl_tensor);
    CHECK_FAILS(add(state, &managed, &error), kRefusals[i].status, kRefusals[i].text);
    CHECK_FAILS(add_legacy(state, &legacy, &error), kRefusals[i].status, kRefusals[i].text);
  }
  CHECK_INT(shw_state_tensor_count(state), 0);
  shw_state_release(state);
  CHECK_INT(deletions, 0);
}

static void leaves_the_tensor_to_the_caller_on_failure(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  struct DLManagedTensorVersioned managed = versioned();
  deletions = 0;
  managed.major = 0;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "DLPack version is 0.1");
  managed.major = 2;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "DLPack version is 2.1");
  managed = versioned();
  managed.flags = 9;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "unknown flags 0x8");
  managed = versioned();
  managed.dl_tensor.code = DL_FLOAT4_E2M1FN;
  managed.dl_tensor.bits = 4;
  managed.flags = 4;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "pack them");
  static int64_t columns_first[] = {1, 2};
  managed.flags = 0;
  managed.dl_tensor.strides = columns_first;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "must be contiguous");
  CHECK_FAILS(add(state, NULL, &error), SHW_INVALID_ARGUMENT, "a DLPack tensor is NULL");
  CHECK_FAILS(add_legacy(state, NULL, &error), SHW_INVALID_ARGUMENT, "a DLPack tensor is NULL");
  managed = versioned();
  CHECK_OK(add(state, &managed, &error));
  struct DLManagedTensorVersioned doubled = versioned();
  CHECK_FAILS(add(state, &doubled, &error), SHW_ALREADY_EXISTS, "two entries are called 'w'");
  shw_state_release(state);
  CHECK_INT(deletions, 1);
}

static void takes_newer_versions_scalars_and_empty_tensors(void) {
  shw_error* error = NULL;
  struct DLManagedTensorVersioned managed = versioned();
  static int64_t none[] = {0, 3};
  shw_tensor tensor = SHW_TENSOR_INIT;
  managed.minor = 99;
  managed.flags = 2;
  CHECK_OK(shw_tensor_from_dlpack(&managed, &tensor, &error));
  CHECK_INT(tensor.flags, SHW_TENSOR_READ_ONLY); /* a copy: writing to it never reaches its owner */
  managed.dl_tensor.ndim = 0;
  managed.dl_tensor.shape = NULL;
  shw_state* state = make_state();
  CHECK_OK(add(state, &managed, &error));
  shw_state_release(state);
  managed = versioned();
  managed.dl_tensor.shape = none;
  managed.dl_tensor.data = NULL;
  state = make_state();
  CHECK_OK(add(state, &managed, &error));
  shw_state_release(state);
}

static void deletes_on_a_host_thread_after_a_job(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  struct DLManagedTensorVersioned managed = versioned();
  shw_job* job = NULL;
  deletions = 0;
  CHECK_OK(add(state, &managed, &error));
  CHECK_OK(shw_save_async(context, state, NULL, path_in(scratch_directory(), "c"), NULL, NULL, &job,
                          &error));
  shw_state_release(state);
  CHECK_OK(shw_job_wait(job, -1, &error));
  shw_job_release(job);
  shw_context_release(context);
  CHECK_INT(deletions, 1);
  CHECK(pthread_equal(deleting_thread, pthread_self()));
}

static void exports_owned_tensors_that_outlive_their_handle(void) {
  shw_error* error = NULL;
  shw_owned_tensor* owned = NULL;
  struct DLManagedTensorVersioned* out = NULL;
  struct DLManagedTensor* legacy = NULL;
  CHECK_OK(shw_owned_tensor_create(SHW_INT64, SHAPE(2, 4), 2, &owned, &error));
  CHECK_OK(shw_owned_tensor_dlpack(owned, &out, &error));
  CHECK_OK(shw_owned_tensor_dlpack_legacy(owned, &legacy, &error));
  shw_owned_tensor_release(owned);
  CHECK_INT(out->major, 1);
  CHECK_INT(out->dl_tensor.ndim, 2);
  CHECK_INT(out->dl_tensor.strides[0], 4);
  CHECK_INT(out->dl_tensor.bits, 64);
  CHECK(out->dl_tensor.data == legacy->dl_tensor.data);
  ((int64_t*)out->dl_tensor.data)[7] = 42;
  out->deleter(out);
  CHECK_INT(((int64_t*)legacy->dl_tensor.data)[7], 42);
  legacy->deleter(legacy);
}

/* What was exported is taken again as it was. */
static void takes_back_what_it_exports(void) {
  static const struct {
    int32_t dtype;
    int64_t shape[3];
    int32_t ndim;
  } kTensors[] = {{SHW_BFLOAT16, {2, 3, 4}, 3},
                  {SHW_FLOAT32, {0}, 0},
                  {SHW_INT8, {0, 5}, 2},
                  {SHW_FLOAT4_E2M1FN, {2, 6}, 2}};
  shw_error* error = NULL;
  for (size_t i = 0; i < sizeof(kTensors) / sizeof(kTensors[0]); ++i) {
    shw_owned_tensor* owned = NULL;
    struct DLManagedTensorVersioned* out = NULL;
    struct DLManagedTensor* legacy = NULL;
    CHECK_OK(shw_owned_tensor_create(kTensors[i].dtype, kTensors[i].shape, kTensors[i].ndim, &owned,
                                     &error));
    CHECK_OK(shw_owned_tensor_dlpack(owned, &out, &error));
    CHECK_OK(shw_owned_tensor_dlpack_legacy(owned, &legacy, &error));
    CHECK_INT(out->flags, 0);
    shw_tensor wanted = SHW_TENSOR_INIT;
    shw_tensor found[2] = {SHW_TENSOR_INIT, SHW_TENSOR_INIT};
    CHECK_OK(shw_owned_tensor_describe(owned, &wanted, &error));
    CHECK_OK(shw_tensor_from_dlpack(out, &found[0], &error));
    CHECK_OK(shw_tensor_from_dlpack_legacy(legacy, &found[1], &error));
    for (int k = 0; k < 2; ++k) {
      CHECK(found[k].data == wanted.data && found[k].byte_offset == 0);
      CHECK_INT(found[k].device_type, SHW_DEVICE_CPU);
      CHECK_INT(found[k].dtype, kTensors[i].dtype);
      CHECK_INT(found[k].ndim, kTensors[i].ndim);
      for (int32_t d = 0; d < kTensors[i].ndim; ++d)
        CHECK_INT(found[k].shape[d], kTensors[i].shape[d]);
      CHECK_OK(shw_tensor_check(&found[k], &error));
    }
    shw_owned_tensor_release(owned);
    out->deleter(out);
    legacy->deleter(legacy);
  }
}

TEST_MAIN(TEST_ENTRY(describes_both_kinds), TEST_ENTRY(consumes_on_success_and_deletes_once),
          TEST_ENTRY(takes_legacy_tensors_and_null_deleters),
          TEST_ENTRY(takes_newer_versions_scalars_and_empty_tensors),
          TEST_ENTRY(leaves_what_both_kinds_get_wrong_to_the_caller),
          TEST_ENTRY(leaves_the_tensor_to_the_caller_on_failure),
          TEST_ENTRY(deletes_on_a_host_thread_after_a_job),
          TEST_ENTRY(exports_owned_tensors_that_outlive_their_handle),
          TEST_ENTRY(takes_back_what_it_exports))
