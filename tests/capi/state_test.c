/* SPDX-License-Identifier: Apache-2.0
 *
 * States: bulk adds, getters, names of every kind, all-or-nothing. */
#include "support/states.h"

static void adds_many_tensors_in_one_call(void) {
  enum { COUNT = 1000 };
  static float data[COUNT];
  static char names[COUNT * 8];
  static uint64_t offsets[COUNT + 1];
  static shw_tensor tensors[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    offsets[i + 1] = offsets[i] + (uint64_t)sprintf(names + offsets[i], "t.%d", i);
    tensors[i] = float_tensor(&data[i], NULL, 0);
  }
  shw_error* error = NULL;
  shw_state* state = make_state();
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = COUNT;
  batch.names = names;
  batch.name_offsets = offsets;
  batch.tensors = tensors;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  CHECK_INT(shw_state_tensor_count(state), COUNT);
  uint64_t index = 0;
  CHECK_OK(shw_state_find_tensor(state, "t.777", 5, &index, &error));
  CHECK_INT(index, 777);
  CHECK_TEXT(shw_state_tensor_name(state, 777, NULL), "t.777");
  shw_tensor described = SHW_TENSOR_INIT;
  CHECK_OK(shw_state_tensor(state, 777, &described, &error));
  CHECK(described.data == &data[777] && described.name_index == 777);
  shw_state_release(state);
}

static void adds_one_entry_in_one_call(void) {
  shw_error* error = NULL;
  float values[4] = {1, 2, 3, 4};
  shw_tensor tensor = float_tensor(values, SHAPE(2, 2), 2);
  shw_state* state = make_state();
  CHECK_OK(shw_state_add_tensor(state, "w", 1, &tensor, NULL, NULL, SHW_KIND_AUTO, &error));
  CHECK_OK(shw_state_add_tensor(state, "part", 4, &tensor, SHAPE(4, 2), SHAPE(2, 0), SHW_KIND_AUTO,
                                &error));
  CHECK_OK(shw_state_add_object(state, "o", 1, NULL, "xy", 2, SHW_KIND_RANK_LOCAL, &error));
  CHECK_OK(shw_state_add_object(state, "none", 4, "text/plain", NULL, 0, SHW_KIND_AUTO, &error));
  CHECK_INT(shw_state_tensor_count(state), 2);
  CHECK_TEXT(shw_state_object_content_type(state, 0, NULL), "application/octet-stream");
  CHECK_TEXT(shw_state_object_content_type(state, 1, NULL), "text/plain");
  CHECK_FAILS(shw_state_add_tensor(state, "w", 1, &tensor, NULL, NULL, 0, &error),
              SHW_ALREADY_EXISTS, "'w'");
  CHECK_FAILS(shw_state_add_object(state, "o", 1, NULL, "z", 1, 0, &error), SHW_ALREADY_EXISTS,
              "'o'");
  CHECK_FAILS(shw_state_add_tensor(state, "x", 1, &tensor, SHAPE(4, 2), SHAPE(3, 0), 0, &error),
              SHW_OUT_OF_RANGE, "'x'");
  CHECK_FAILS(shw_state_add_tensor(state, "x", 1, &tensor, SHAPE(4, 2), NULL, 0, &error),
              SHW_INVALID_ARGUMENT, "offsets");
  CHECK_FAILS(shw_state_add_tensor(state, "x", 1, &tensor, NULL, SHAPE(0, 0), 0, &error),
              SHW_INVALID_ARGUMENT, "global_shape");
  CHECK_FAILS(shw_state_add_tensor(state, "x", 1, &tensor, NULL, NULL, 4, &error),
              SHW_INVALID_ARGUMENT, "kind");
  CHECK_FAILS(shw_state_add_object(state, "x", 1, NULL, NULL, 1, 0, &error), SHW_INVALID_ARGUMENT,
              "data");
  tensor.ndim = 65;
  CHECK_FAILS(shw_state_add_tensor(state, "x", 1, &tensor, SHAPE(4, 2), SHAPE(0, 0), 0, &error),
              SHW_INVALID_ARGUMENT, "ndim");
  CHECK_INT(shw_state_tensor_count(state), 2);
  CHECK_INT(shw_state_object_count(state), 2);
  shw_state_release(state);
}

static void takes_pieces_into_memory_set_aside(void) {
  shw_error* error = NULL;
  float values[2] = {1, 2};
  shw_state* state = make_state();
  CHECK_OK(shw_state_reserve(state, 1, 1, &error));
  add_floats(state, "a", &values[0], NULL, 0);
  CHECK_OK(shw_state_reserve(state, 0, 0, &error));
  CHECK_OK(
      shw_state_reserve(state, 100, UINT64_MAX, &error)); /* of names, at most what they may have */
  add_floats(state, "a longer name than was foreseen", &values[1], NULL, 0);
  CHECK_INT(shw_state_tensor_count(state), 2);
  uint64_t index = 9;
  CHECK_OK(shw_state_find_tensor(state, "a", 1, &index, &error));
  CHECK_INT(index, 0);
  CHECK_FAILS(shw_state_reserve(state, UINT64_MAX, 0, &error), SHW_RESOURCE_EXHAUSTED, "at most");
  CHECK_FAILS(shw_state_reserve(NULL, 1, 0, &error), SHW_INVALID_ARGUMENT, "state");
  CHECK_TEXT(shw_state_tensor_name(state, 0, NULL), "a");
  shw_state_release(state);
}

static void keeps_names_of_any_character(void) {
  static const char name[] = "a\0b.\xF0\x9F\x98\x80/../[0]";
  shw_error* error = NULL;
  float value = 1;
  const shw_tensor tensor = float_tensor(&value, NULL, 0);
  shw_state* state = make_state();
  CHECK_OK(try_add_one(state, name, sizeof(name) - 1, &tensor, &error));
  uint64_t size = 0;
  const char* found = shw_state_tensor_name(state, 0, &size);
  CHECK_INT(size, sizeof(name) - 1);
  CHECK(memcmp(found, name, sizeof(name)) == 0);
  shw_state_release(state);
}

static void keeps_nested_paths(void) {
  shw_error* error = NULL;
  float value = 1;
  const uint64_t names[] = {0, 9}, paths[] = {0, 15}, wrong[] = {0, 5};
  const shw_tensor tensor = float_tensor(&value, NULL, 0);
  shw_state* state = make_state();
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "optim.0.1";
  batch.name_offsets = names;
  batch.tensors = &tensor;
  batch.paths = "[\"optim\",0,[1]]";
  batch.path_offsets = paths;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  CHECK_TEXT(shw_state_tensor_path(state, 0, NULL), "[\"optim\",0,[1]]");
  batch.paths = "[\"x\"]";
  batch.path_offsets = wrong;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "joins to 'x'");
  shw_state_release(state);
}

static void keeps_objects(void) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  add_object(state, "config", "application/json", "{}");
  add_object(state, "blob", "", "xyz");
  CHECK_INT(shw_state_object_count(state), 2);
  uint64_t size = 0, index = 9;
  CHECK(memcmp(shw_state_object_data(state, 1, &size), "xyz", 3) == 0);
  CHECK_INT(size, 3);
  CHECK_TEXT(shw_state_object_content_type(state, 1, NULL), "application/octet-stream");
  CHECK_OK(shw_state_find_object(state, "config", 6, &index, &error));
  CHECK_INT(index, 0);
  CHECK_FAILS(shw_state_find_object(state, "confih", 6, &index, &error), SHW_NOT_FOUND, "config");
  CHECK(shw_state_object_data(state, 2, &size) == NULL && size == 0);
  CHECK_TEXT(shw_state_object_name(state, 2, NULL), "");
  shw_state_release(state);
}

static void adds_all_or_nothing(void) {
  shw_error* error = NULL;
  float values[2] = {1, 2};
  shw_state* state = make_state();
  shw_tensor tensors[2] = {float_tensor(&values[0], NULL, 0), float_tensor(&values[1], NULL, 0)};
  const uint64_t offsets[] = {0, 1, 2};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 2;
  batch.names = "aa";
  batch.name_offsets = offsets;
  batch.tensors = tensors;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_ALREADY_EXISTS,
              "two entries are called 'a'");
  CHECK_INT(shw_state_tensor_count(state), 0);
  batch.names = "a\xFF";
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "UTF-8");
  batch.names = "ab";
  tensors[1].ndim = -1;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "tensors[1]");
  tensors[1].ndim = 0;
  tensors[1].struct_size = 104;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "struct_size");
  CHECK_INT(shw_state_tensor_count(state), 0);
  static char long_name[70000];
  memset(long_name, 'n', sizeof(long_name));
  tensors[0].struct_size = SHW_TENSOR_SIZE_V1;
  CHECK_FAILS(try_add_one(state, long_name, 65536, &tensors[0], &error), SHW_INVALID_ARGUMENT,
              "65536 bytes, the limit is 65535");
  CHECK_OK(try_add_one(state, long_name, 65535, &tensors[0], &error));
  shw_state_release(state);
}

/* Rows over a mesh of two ranks. */
static shw_layout* rows_of_two(void) {
  static const int32_t kinds[] = {SHW_PLACEMENT_SHARD}, dims[] = {0};
  shw_error* error = NULL;
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = 1;
  spec.mesh_shape = SHAPE(2);
  spec.placement_kinds = kinds;
  spec.placement_dims = dims;
  shw_layout* layout = NULL;
  CHECK_OK(shw_layout_create(&spec, &layout, &error));
  return layout;
}

static void takes_boxes_and_layouts(void) {
  shw_error* error = NULL;
  float data[12] = {0};
  shw_state* state = make_state();
  const struct shard good = {"w", data, SHAPE(4, 6), SHAPE(2, 0), SHAPE(2, 6), 2};
  add_shard(state, &good);
  const struct shard outside = {"v", data, SHAPE(4, 6), SHAPE(3, 0), SHAPE(2, 6), 2};
  CHECK_FAILS(try_add_shard(state, &outside, &error), SHW_OUT_OF_RANGE, "leaves the shape");

  shw_layout* layout = rows_of_two();
  const shw_layout* const layouts[] = {layout};
  const uint64_t name_offsets[] = {0, 1}, shape_offsets[] = {0, 2};
  const shw_tensor local = float_tensor(data, SHAPE(2, 6), 2);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "l";
  batch.name_offsets = name_offsets;
  batch.tensors = &local;
  batch.global_shapes = SHAPE(4, 6);
  batch.global_shape_offsets = shape_offsets;
  batch.layouts = layouts;
  batch.layout_count = 1;
  batch.rank = 1;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  batch.layout_indices = (const uint32_t[]){2};
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "layout 2");
  shw_layout_release(layout);
  shw_state_release(state);
}

/* Boxes beside a layout must be those of the layout; entries of one batch have either or both. */
static void compares_boxes_with_layouts(void) {
  shw_error* error = NULL;
  float data[24] = {0};
  shw_state* state = make_state();
  shw_layout* layout = rows_of_two();
  const shw_layout* const layouts[] = {layout};
  const uint64_t name_offsets[] = {0, 1, 2, 3}, shape_offsets[] = {0, 2, 4, 6};
  const shw_tensor half = float_tensor(data, SHAPE(2, 6), 2);
  const shw_tensor tensors[] = {half, half, half};
  /* a: both; b: its layout alone; c: its box alone. */
  const uint64_t box_ranges[] = {0, 1, 1, 2};
  int64_t box_offsets[] = {2, 0, 0, 0};
  const int64_t box_sizes[] = {2, 6, 2, 6};
  const uint32_t indices[] = {1, 1, 0};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 3;
  batch.names = "abc";
  batch.name_offsets = name_offsets;
  batch.tensors = tensors;
  batch.global_shapes = SHAPE(4, 6, 4, 6, 4, 6);
  batch.global_shape_offsets = shape_offsets;
  batch.box_ranges = box_ranges;
  batch.box_offsets = box_offsets;
  batch.box_sizes = box_sizes;
  batch.layouts = layouts;
  batch.layout_count = 1;
  batch.layout_indices = indices;
  batch.rank = 0;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT,
              "rank 0 holds [2:4, 0:6] by its boxes and [0:2, 0:6] by its layout");
  box_offsets[0] = 3;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_OUT_OF_RANGE, "leaves the shape");
  CHECK_INT(shw_state_tensor_count(state), 0);
  box_offsets[0] = 2;
  batch.rank = 1;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  CHECK_INT(shw_state_tensor_count(state), 3);
  shw_layout_release(layout); /* the state keeps it */

  shw_context* context = make_context();
  shw_save_planner* planner = NULL;
  CHECK_OK(shw_save_planner_create(context, state, 1, 2, NULL, &planner, &error));
  shw_buffer* local = NULL;
  CHECK_OK(shw_save_planner_local_plan(planner, &local, &error));
  shw_plan* plan = NULL;
  CHECK_OK(shw_plan_create(shw_buffer_data(local), shw_buffer_size(local), &plan, &error));
  CHECK_INT(shw_plan_kind(plan), SHW_PLAN_LOCAL_SAVE);
  CHECK_INT(shw_plan_rank(plan), 1);
  shw_plan_release(plan);
  shw_buffer_release(local);
  shw_save_planner_release(planner);
  shw_context_release(context);
  shw_state_release(state);
}

TEST_MAIN(TEST_ENTRY(adds_one_entry_in_one_call), TEST_ENTRY(adds_many_tensors_in_one_call),
          TEST_ENTRY(takes_pieces_into_memory_set_aside), TEST_ENTRY(keeps_names_of_any_character),
          TEST_ENTRY(keeps_nested_paths), TEST_ENTRY(keeps_objects),
          TEST_ENTRY(adds_all_or_nothing), TEST_ENTRY(takes_boxes_and_layouts),
          TEST_ENTRY(compares_boxes_with_layouts))
