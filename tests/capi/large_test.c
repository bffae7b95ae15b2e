/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of more than 2^31 elements and more than 4 GiB, in sparse files, so that only what is
 * touched costs memory. The plan is made in every run; the round trip writes and reads 4 GiB. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

#define ELEMENTS ((INT64_C(1) << 32) + 4096)
static const int64_t marks[] = {0, (INT64_C(1) << 31) + 5, (INT64_C(1) << 32) - 1, INT64_C(1) << 32,
                                ELEMENTS - 1};
enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

/* ELEMENTS bytes of a sparse file. */
static uint8_t* sparse(const char* path) {
  const int file = open(path, O_CREAT | O_EXCL | O_RDWR, 0600);
  CHECK(file >= 0 && ftruncate(file, ELEMENTS) == 0);
  void* memory = mmap(NULL, (size_t)ELEMENTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(memory != MAP_FAILED && close(file) == 0);
  return memory;
}

static shw_state* state_of(uint8_t* bytes) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = bytes;
  tensor.device_type = SHW_DEVICE_CPU;
  tensor.dtype = SHW_UINT8;
  tensor.shape = SHAPE(ELEMENTS);
  tensor.ndim = 1;
  CHECK_OK(try_add_one(state, "w", 1, &tensor, &error));
  return state;
}

static void plans_count_beyond_32_bits(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_storage* storage = NULL;
  shw_save_planner* planner = NULL;
  shw_buffer *local = NULL, *global = NULL;
  shw_plan* plan = NULL;
  uint8_t* bytes = sparse(path_in(scratch_directory(), "source"));
  shw_state* state = state_of(bytes);
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.verify_replicas = SHW_VERIFY_REPLICAS_OFF; /* reads nothing */
  CHECK_OK(shw_storage_create_memory(&storage, &error));
  CHECK_OK(shw_save_planner_create(context, state, 0, 1, &options, &planner, &error));
  CHECK_OK(shw_save_planner_local_plan(planner, &local, &error));
  const uint64_t end[] = {0, shw_buffer_size(local)};
  CHECK_OK(shw_save_planner_global_plan(planner, storage, "p", shw_buffer_data(local), end, 1,
                                        &global, &error));
  CHECK_OK(shw_save_planner_finish(planner, shw_buffer_data(global), shw_buffer_size(global), &plan,
                                   &error));
  shw_plan_item item = SHW_PLAN_ITEM_INIT;
  CHECK_OK(shw_plan_item_at(plan, 0, &item, &error));
  CHECK_INT(item.byte_size, ELEMENTS);
  shw_plan_release(plan);
  shw_buffer_release(global);
  shw_buffer_release(local);
  shw_save_planner_release(planner);
  shw_storage_release(storage);
  shw_state_release(state);
  shw_context_release(context);
  CHECK(munmap(bytes, (size_t)ELEMENTS) == 0);
}

static void check_slices(const shw_checkpoint* checkpoint) {
  shw_error* error = NULL;
  for (int i = 0; i < MARKS; ++i) {
    const int64_t first = marks[i] < 2 ? 0 : marks[i] - 2;
    shw_owned_tensor* slice = NULL;
    shw_tensor view = SHW_TENSOR_INIT;
    CHECK_OK(shw_checkpoint_read_tensor(checkpoint, 0, &first, SHAPE(marks[i] - first + 1), 1,
                                        &slice, &error));
    CHECK_OK(shw_owned_tensor_describe(slice, &view, &error));
    CHECK_INT(((const uint8_t*)view.data)[marks[i] - first], i + 1);
    shw_owned_tensor_release(slice);
  }
  shw_chunk_info chunk = SHW_CHUNK_INFO_INIT;
  CHECK_OK(shw_checkpoint_chunk_infos(checkpoint, 0, 1, &chunk, &error));
  CHECK_INT(chunk.byte_size, ELEMENTS);
  shw_owned_tensor* outside = NULL;
  CHECK_FAILS(
      shw_checkpoint_read_tensor(checkpoint, 0, SHAPE(ELEMENTS - 1), SHAPE(2), 1, &outside, &error),
      SHW_OUT_OF_RANGE, "leaves the shape in dimension 0");
}

static void a_tensor_above_4_gib_comes_back(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  const char* directory = scratch_directory();
  const char* path = path_in(directory, "c");
  uint8_t* bytes = sparse(path_in(directory, "source"));
  uint8_t* target = sparse(path_in(directory, "target"));
  for (int i = 0; i < MARKS; ++i) bytes[marks[i]] = (uint8_t)(i + 1);
  shw_state* state = state_of(bytes);
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.durability = SHW_DURABILITY_NONE;
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  CHECK_OK(shw_report_summarize(report, &summary, &error));
  CHECK_INT(summary.bytes, ELEMENTS);
  shw_report_release(report);
  shw_checkpoint* checkpoint = open_at(context, path);
  check_slices(checkpoint);
  shw_checkpoint_release(checkpoint);
  shw_state* into = state_of(target);
  CHECK_OK(shw_load(context, into, NULL, path, NULL, NULL, &report, &error));
  shw_report_release(report);
  CHECK(memcmp(bytes, target, (size_t)ELEMENTS) == 0);
  shw_state_release(into);
  shw_state_release(state);
  shw_context_release(context);
  CHECK(munmap(bytes, (size_t)ELEMENTS) == 0 && munmap(target, (size_t)ELEMENTS) == 0);
}

TEST_MAIN(TEST_ENTRY(plans_count_beyond_32_bits), TEST_ENTRY(a_tensor_above_4_gib_comes_back))
