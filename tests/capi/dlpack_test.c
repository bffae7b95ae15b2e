/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack in (both structs; consumed on success only; deleter exactly once, on a host thread) and out. */
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
  const DLTensor tensor = {values, 1, 0, 2, SHW_DTYPE_FLOAT, 32, 1, shape, NULL, 0};
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
  CHECK_INT(tensor.dtype_bits, 32);
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

static void leaves_the_tensor_to_the_caller_on_failure(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  struct DLManagedTensorVersioned managed = versioned();
  deletions = 0;
  managed.major = 2;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "DLPack version");
  managed = versioned();
  managed.dl_tensor.code = SHW_DTYPE_OPAQUE;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "opaque");
  managed = versioned();
  managed.dl_tensor.lanes = 4;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "lanes");
  managed = versioned();
  managed.dl_tensor.device_type = 77;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "device");
  managed = versioned();
  managed.dl_tensor.device_type = SHW_DEVICE_CUDA;
  CHECK_FAILS(add(state, &managed, &error), SHW_UNIMPLEMENTED, "device type 2");
  managed = versioned();
  managed.dl_tensor.code = SHW_DTYPE_FLOAT6_E2M3FN;
  managed.dl_tensor.bits = 8;
  CHECK_FAILS(add(state, &managed, &error), SHW_INVALID_ARGUMENT,
              "float6 element has 6 bits, not 8");
  managed = versioned();
  static int64_t negative[] = {2, -3};
  managed.dl_tensor.shape = negative;
  CHECK_FAILS(add(state, &managed, &error), SHW_INVALID_ARGUMENT,
              "extent 1 of the shape is negative: -3");
  managed = versioned();
  CHECK_OK(add(state, &managed, &error));
  struct DLManagedTensorVersioned doubled = versioned();
  CHECK_FAILS(add(state, &doubled, &error), SHW_ALREADY_EXISTS, "two entries are called 'w'");
  shw_state_release(state);
  CHECK_INT(deletions, 1);
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
  CHECK_OK(shw_owned_tensor_create(SHW_DTYPE_INT, 64, SHAPE(2, 4), 2, &owned, &error));
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

TEST_MAIN(TEST_ENTRY(describes_both_kinds), TEST_ENTRY(consumes_on_success_and_deletes_once),
          TEST_ENTRY(takes_legacy_tensors_and_null_deleters),
          TEST_ENTRY(leaves_the_tensor_to_the_caller_on_failure),
          TEST_ENTRY(deletes_on_a_host_thread_after_a_job),
          TEST_ENTRY(exports_owned_tensors_that_outlive_their_handle))
