/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards as Megatron Core describes them: grids, replicas, cells of objects; and states that a
 * mapping makes. Two tensor-parallel ranks hold halves of a fused weight, [W; V] each; one rank
 * loads them. */
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { ROWS = 8, COLUMNS = 2, WIDTH = ROWS * COLUMNS };
static const char kWeight[] = "decoder.layers.0.mlp.linear_fc1.weight";

static shw_mapping* mapping_of(const char* shipped, const char* json) {
  shw_error* error = NULL;
  shw_mapping* mapping = NULL;
  shw_mapping_spec spec = SHW_MAPPING_SPEC_INIT;
  spec.shipped = shipped;
  spec.json = json;
  spec.json_size = json ? strlen(json) : 0;
  CHECK_OK(shw_mapping_create(&spec, &mapping, &error));
  return mapping;
}

static shw_state* mapped(shw_state* state, const char* shipped) {
  shw_error* error = NULL;
  shw_mapping* mapping = mapping_of(shipped, NULL);
  shw_state* made = NULL;
  CHECK_OK(shw_state_map(state, mapping, &made, &error));
  shw_mapping_release(mapping);
  shw_state_release(state);
  return made;
}

struct held {
  float weight[WIDTH];
  float norm[2];
};

/* The state of rank `rank` of `size`: its part of the weight, a norm that rank 0 saves, a cell of
 * an object and an object that rank 0 saves. */
static shw_state* state_of(struct held* held, int32_t rank, int32_t size) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  const uint64_t names[] = {0, sizeof(kWeight) - 1, sizeof(kWeight) + 3}, grids[] = {0, 2, 2};
  char text[64];
  memcpy(text, kWeight, sizeof(kWeight) - 1);
  memcpy(text + sizeof(kWeight) - 1, "norm", 4);
  const shw_tensor tensors[] = {float_tensor(held->weight, SHAPE(ROWS / size, COLUMNS), 2),
                                float_tensor(held->norm, SHAPE(2), 1)};
  const int32_t replicas[] = {0, rank};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 2;
  batch.names = text;
  batch.name_offsets = names;
  batch.tensors = tensors;
  batch.grid_offsets = grids;
  batch.grid_fragments = SHAPE(size, 1);
  batch.grid_indices = SHAPE(rank, 0);
  batch.replica_ids = replicas;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  const uint64_t object_names[] = {0, 5, 9}, data[] = {0, 1, 2}, cells[] = {0, 1, 1};
  const char digits[] = {(char)('0' + rank), (char)('5' + rank)};
  shw_object_batch objects = SHW_OBJECT_BATCH_INIT;
  objects.count = 2;
  objects.names = "extrastep";
  objects.name_offsets = object_names;
  objects.data = digits;
  objects.data_offsets = data;
  objects.grid_offsets = cells;
  objects.grid_shapes = SHAPE(size);
  objects.grid_indices = SHAPE(rank);
  objects.replica_ids = replicas;
  CHECK_OK(shw_state_add_objects(state, &objects, &error));
  return state;
}

/* Rank r holds rows 2r, 2r + 1 of W and of V; row i of the whole [W; V] is 10 i, 10 i + 1. */
static void fill(struct held* held, int32_t rank) {
  for (int half = 0; half < 2; ++half) {
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < COLUMNS; ++column) {
        held->weight[(half * 2 + row) * COLUMNS + column] =
            (float)(10 * (half * 4 + rank * 2 + row) + column);
      }
    }
  }
  held->norm[0] = (float)(100 + rank);
  held->norm[1] = (float)(200 + rank);
}

struct job {
  const char* path;
  int32_t format;
  int in_background;
};

static void save_rank(struct rank* rank) {
  const struct job* job = rank->user;
  shw_error* error = NULL;
  shw_context* context = make_context();
  struct held held;
  fill(&held, rank->rank);
  shw_state* state = mapped(state_of(&held, rank->rank, rank->size), "swiglu");
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.format = job->format;
  shw_report* report = NULL;
  if (job->in_background) {
    shw_job* handle = NULL;
    CHECK_OK(shw_save_async(context, state, NULL, job->path, rank->collective, &options, &handle,
                            &error));
    CHECK_OK(shw_job_wait_staged(handle, -1, &error));
    memset(&held, 0, sizeof(held)); /* what is saved was copied */
    CHECK_OK(shw_job_wait(handle, -1, &error));
    shw_job_release(handle);
  } else {
    CHECK_OK(
        shw_save(context, state, NULL, job->path, rank->collective, &options, &report, &error));
    shw_report_release(report);
  }
  shw_state_release(state);
  shw_context_release(context);
}

static void check_whole(const char* path) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  struct held held;
  memset(&held, 0, sizeof(held));
  shw_state* plain = make_state();
  add_floats(plain, kWeight, held.weight, SHAPE(ROWS, COLUMNS), 2);
  add_floats(plain, "norm", held.norm, SHAPE(2), 1);
  add_object(plain, "extra/shard_1_2", "application/octet-stream", "");
  add_object(plain, "step", "application/octet-stream", "");
  shw_state* state = mapped(plain, "swiglu");
  shw_report* report = NULL;
  CHECK_OK(shw_load(context, state, NULL, path, NULL, NULL, &report, &error));
  for (int row = 0; row < ROWS; ++row) CHECK(held.weight[row * COLUMNS] == (float)(10 * row));
  CHECK(held.weight[WIDTH - 1] == 71);
  CHECK(held.norm[0] == 100 && held.norm[1] == 200);
  uint64_t size = 0;
  CHECK(*(const char*)shw_state_object_data(state, 0, &size) == '1' && size == 1);
  CHECK(*(const char*)shw_state_object_data(state, 1, &size) == '5' && size == 1);
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_MISSING), 0);
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_UNEXPECTED), 1); /* the other cell */
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void load_rank(struct rank* rank) {
  const struct job* job = rank->user;
  shw_error* error = NULL;
  shw_context* context = make_context();
  struct held held, wanted;
  memset(&held, 0, sizeof(held));
  fill(&wanted, rank->rank);
  shw_state* state = mapped(state_of(&held, rank->rank, rank->size), "swiglu");
  shw_report* report = NULL;
  CHECK_OK(shw_load(context, state, NULL, job->path, rank->collective, NULL, &report, &error));
  CHECK(memcmp(held.weight, wanted.weight, sizeof(float) * WIDTH / 2) == 0);
  CHECK(held.norm[0] == 100); /* a replica is loaded */
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void saves_and_loads_halves(void) {
  const int32_t formats[] = {SHW_FORMAT_NATIVE, SHW_FORMAT_TORCH_DCP};
  for (int i = 0; i < 4; ++i) {
    struct job job = {path_in(scratch_directory(), "c"), formats[i % 2], i / 2};
    run_ranks(2, save_rank, &job);
    check_whole(job.path);
    run_ranks(2, load_rank, &job);
  }
}

static void says_boxes_of_grids(void) {
  shw_error* error = NULL;
  float data[6] = {0};
  shw_state* state = make_state();
  const uint64_t names[] = {0, 1}, grids[] = {0, 3};
  const shw_tensor tensor = float_tensor(data, SHAPE(2, 3), 2);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = names;
  batch.tensors = &tensor;
  batch.grid_offsets = grids;
  batch.grid_fragments = SHAPE(5, 1, 2);
  batch.grid_indices = SHAPE(3, 0, 1);
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  int64_t values[8] = {0};
  uint64_t size = 0;
  CHECK_OK(shw_state_global_shape(state, 0, values, 8, &size, &error));
  CHECK(size == 3 && values[0] == 5 && values[1] == 2 && values[2] == 6);
  CHECK_OK(shw_state_boxes(state, 0, values, 8, &size, &error));
  CHECK_INT(size, 6);
  CHECK(memcmp(values, SHAPE(3, 0, 3, 1, 2, 3), 6 * sizeof(int64_t)) == 0);
  CHECK_INT(shw_state_boxes(state, 0, values, 5, &size, &error), SHW_BUFFER_TOO_SMALL);
  CHECK_FAILS(shw_state_boxes(state, 1, values, 8, &size, &error), SHW_OUT_OF_RANGE, "number 1");
  batch.names = "x";
  batch.grid_indices = SHAPE(5, 0, 1);
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "'x'");
  const uint64_t few[] = {0, 1};
  batch.grid_offsets = few;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "grid of 1 axes");
  batch.grid_fragments = NULL;
  batch.grid_offsets = grids;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "grid_fragments");
  const uint64_t shapes[] = {0, 0};
  batch.global_shape_offsets = shapes;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "grid_offsets");
  CHECK_INT(shw_state_tensor_count(state), 1);
  shw_state_release(state);
}

/* A flat range of part 1 of two, [W; V] of two rows each: its last row of W and its first of V. */
static void splits_flat_ranges_as_their_part(void) {
  shw_error* error = NULL;
  float data[4] = {0};
  shw_state* state = make_state();
  const uint64_t names[] = {0, 1}, extents[] = {0, 2}, boxes[] = {0, 1};
  const shw_tensor tensor = float_tensor(data, SHAPE(4), 1);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = names;
  batch.tensors = &tensor;
  batch.global_shapes = SHAPE(8, 2);
  batch.global_shape_offsets = extents;
  batch.box_ranges = boxes;
  batch.box_offsets = SHAPE(5, 0);
  batch.box_sizes = SHAPE(2, 2);
  batch.grid_offsets = extents;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT, "grid_fragments");
  batch.grid_fragments = SHAPE(3, 1);
  CHECK_FAILS_WITH(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT,
                   "not cut into 3 equal parts", "tensor", "w");
  batch.grid_offsets = names;
  CHECK_FAILS(shw_state_add_tensors(state, &batch, &error), SHW_INVALID_ARGUMENT,
              "1 fragments for 2 axes");
  batch.grid_offsets = extents;
  batch.grid_fragments = SHAPE(2, 1);
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
  shw_mapping* mapping =
      mapping_of(NULL,
                 "{\"schema\": 1, \"rules\": [{\"match\": \"w\", \"steps\": "
                 "[{\"split\": {\"axis\": 0, \"suffixes\": [\"0\", \"1\"]}}]}]}");
  shw_state* made = NULL;
  CHECK_OK(shw_state_map(state, mapping, &made, &error));
  CHECK_INT(shw_state_tensor_count(made), 2);
  int64_t values[4] = {0};
  uint64_t size = 0;
  CHECK_OK(shw_state_boxes(made, 0, values, 4, &size, &error));
  CHECK(size == 4 && memcmp(values, SHAPE(3, 0, 1, 2), sizeof(values)) == 0);
  CHECK_OK(shw_state_boxes(made, 1, values, 4, &size, &error));
  CHECK(size == 4 && memcmp(values, SHAPE(2, 0, 1, 2), sizeof(values)) == 0);
  shw_tensor half = SHW_TENSOR_INIT;
  CHECK_OK(shw_state_tensor(made, 1, &half, &error));
  CHECK(half.data == data + 2);
  shw_mapping_release(mapping);
  shw_state_release(made);
  shw_state_release(state);
}

static void makes_and_parses_keys_of_objects(void) {
  shw_error* error = NULL;
  shw_buffer* text = NULL;
  CHECK_OK(shw_object_key("a/b", 3, SHAPE(0, 3), SHAPE(1, 8), 2, &text, &error));
  CHECK_TEXT((const char*)shw_buffer_data(text), "a/b/shard_0.3_1.8");
  int64_t cell[4] = {0};
  uint64_t size = 0, key = 0;
  CHECK_OK(shw_object_key_parse(shw_buffer_data(text), shw_buffer_size(text), cell, 4, &size, &key,
                                &error));
  CHECK(size == 4 && key == 3 && cell[1] == 3 && cell[3] == 8);
  key = 7;
  CHECK_INT(shw_object_key_parse(shw_buffer_data(text), shw_buffer_size(text), cell, 3, &size, &key,
                                 &error),
            SHW_BUFFER_TOO_SMALL);
  CHECK(size == 4 && key == 7);
  shw_buffer_release(text);
  CHECK_FAILS(shw_object_key("a", 1, SHAPE(2), SHAPE(2), 1, &text, &error), SHW_INVALID_ARGUMENT,
              "outside");
  CHECK_FAILS(shw_object_key_parse("a", 1, cell, 4, &size, &key, &error), SHW_INVALID_ARGUMENT,
              "shard_");
}

static void tells_what_is_wrong_with_mappings(void) {
  shw_error* error = NULL;
  shw_mapping* mapping = NULL;
  shw_mapping_spec spec = SHW_MAPPING_SPEC_INIT;
  CHECK_FAILS(shw_mapping_create(&spec, &mapping, &error), SHW_INVALID_ARGUMENT, "json");
  spec.shipped = "bert";
  CHECK_FAILS(shw_mapping_create(&spec, &mapping, &error), SHW_NOT_FOUND, "gpt_swiglu");
  const uint64_t names[] = {0, 6};
  spec.shipped = "gpt";
  spec.parameter_names = "layers";
  spec.parameter_name_offsets = names;
  spec.parameter_values = SHAPE(4);
  spec.parameter_count = 1;
  CHECK_FAILS(shw_mapping_create(&spec, &mapping, &error), SHW_INVALID_ARGUMENT, "first_layer");
  const char json[] = "{\"schema\": 1, \"rules\": [{\"match\": \"w\"}, {\"match\": \"v\"}]}";
  mapping = mapping_of(NULL, json);
  float data[2] = {0};
  shw_state *state = make_state(), *made = NULL;
  add_floats(state, "w", data, SHAPE(2), 1);
  CHECK_FAILS_WITH(shw_state_map(state, mapping, &made, &error), SHW_INVALID_ARGUMENT,
                   "rule 2 ('v')", "rule", "2");
  shw_mapping* both =
      mapping_of(NULL, "{\"schema\": 1, \"rules\": [{\"match\": \"*\"}, {\"match\": \"w\"}]}");
  CHECK_FAILS_WITH(shw_state_map(state, both, &made, &error), SHW_INVALID_ARGUMENT,
                   "both match the entry 'w'", "rule", "1,2");
  shw_mapping_release(both);
  CHECK_FAILS(shw_state_map(state, NULL, &made, &error), SHW_INVALID_ARGUMENT, "mapping");
  CHECK_FAILS(shw_state_map(NULL, mapping, &made, &error), SHW_INVALID_ARGUMENT, "state");
  CHECK(made == NULL);
  shw_mapping_release(mapping);
  shw_mapping_release(NULL);
  shw_state_release(state);
}

static void gives_memory_of_single_boxes_only(void) {
  shw_error* error = NULL;
  float data[8] = {0};
  shw_state* state = make_state();
  add_floats(state, kWeight, data, SHAPE(4, 2), 2);
  add_floats(state, "norm", data, SHAPE(2), 1);
  state = mapped(state, "swiglu");
  shw_tensor tensor = SHW_TENSOR_INIT;
  uint64_t index = 0;
  CHECK_OK(shw_state_find_tensor(state, "norm", 4, &index, &error));
  CHECK_OK(shw_state_tensor(state, index, &tensor, &error));
  CHECK(tensor.data == data);
  CHECK_FAILS(shw_state_tensor(state, 1 - index, &tensor, &error), SHW_FAILED_PRECONDITION,
              "linear_fc1.weight");
  shw_state_release(state);
}

TEST_MAIN(TEST_ENTRY(saves_and_loads_halves), TEST_ENTRY(says_boxes_of_grids),
          TEST_ENTRY(splits_flat_ranges_as_their_part),
          TEST_ENTRY(makes_and_parses_keys_of_objects),
          TEST_ENTRY(tells_what_is_wrong_with_mappings),
          TEST_ENTRY(gives_memory_of_single_boxes_only))
