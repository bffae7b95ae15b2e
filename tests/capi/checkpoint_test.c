/* SPDX-License-Identifier: Apache-2.0
 *
 * Open checkpoints: getters, bulk reads, slices, digests, verification, clean-up, steps of a
 * run. */
#include "support/scratch.h"
#include "support/states.h"

static float weight[24];
static float bias[3] = {7, 8, 9};

static const char* saved(shw_context* context) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_state* state = make_state();
  const char* path = path_in(scratch_directory(), "c");
  for (int i = 0; i < 24; ++i) weight[i] = (float)i;
  add_floats(state, "layer.weight", weight, SHAPE(4, 6), 2);
  add_floats(state, "layer.bias", bias, SHAPE(3), 1);
  add_floats(state, "scale", bias, NULL, 0);
  add_floats(state, "empty", NULL, SHAPE(0, 5), 2);
  add_object(state, "config", "application/json", "{\"a\":1}");
  add_object(state, "blob", "application/octet-stream", "bytes");
  const uint64_t offsets[] = {0, 4, 7, 12, 13};
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.metadata = "step100epoch3";
  options.metadata_offsets = offsets;
  options.metadata_count = 2;
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  return path;
}

static void tells_what_it_holds(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  CHECK_TEXT(shw_checkpoint_format(checkpoint, NULL), "native");
  CHECK_INT(strlen(shw_checkpoint_generation(checkpoint, NULL)), 32);
  CHECK_INT(shw_checkpoint_world_size(checkpoint), 1);
  CHECK(shw_checkpoint_created_ns(checkpoint) > INT64_C(1600000000) * 1000000000);
  CHECK_INT(shw_checkpoint_metadata_count(checkpoint), 2);
  CHECK_TEXT(shw_checkpoint_metadata_key(checkpoint, 0, NULL), "epoch");
  CHECK_TEXT(shw_checkpoint_metadata_value(checkpoint, 1, NULL), "100");
  CHECK_TEXT(shw_checkpoint_metadata_value(checkpoint, 2, NULL), "");
  CHECK_INT(shw_checkpoint_tensor_count(checkpoint), 4);
  CHECK_INT(shw_checkpoint_object_count(checkpoint), 2);
  CHECK_INT(shw_checkpoint_file_count(checkpoint), 1);
  CHECK(strstr(shw_checkpoint_file_name(checkpoint, 0, NULL), "rank-00000.shw") != NULL);
  CHECK(shw_checkpoint_file_size(checkpoint, 0) > 4096);

  const uint64_t index = tensor_number(checkpoint, "layer.weight");
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  CHECK_OK(shw_checkpoint_tensor_infos(checkpoint, index, 1, &info, &error));
  CHECK_INT(info.ndim, 2);
  CHECK_INT(info.dtype, SHW_FLOAT32);
  CHECK_INT(info.byte_size, 96);
  CHECK_INT(info.element_count, 24);
  CHECK_INT(info.kind, SHW_KIND_REPLICATED);
  CHECK_INT(info.rank, -1);
  CHECK_INT(info.chunk_count, 1);
  CHECK_INT(shw_checkpoint_tensor_shape(checkpoint, index)[1], 6);
  CHECK_TEXT(shw_checkpoint_tensor_name(checkpoint, index, NULL), "layer.weight");
  CHECK_TEXT(shw_checkpoint_tensor_path(checkpoint, index, NULL), "");

  shw_chunk_info chunk = SHW_CHUNK_INFO_INIT;
  int64_t box[4];
  uint64_t size = 0;
  CHECK_OK(shw_checkpoint_chunk_infos(checkpoint, info.first_chunk, 1, &chunk, &error));
  CHECK_INT(chunk.tensor, index);
  CHECK_INT(chunk.byte_size, 96);
  CHECK_INT(chunk.rank, 0);
  CHECK_OK(shw_checkpoint_chunk_box(checkpoint, info.first_chunk, box, 4, &size, &error));
  CHECK(size == 4 && box[0] == 0 && box[2] == 4 && box[3] == 6);
  CHECK_INT(shw_checkpoint_chunk_box(checkpoint, info.first_chunk, box, 1, &size, &error),
            SHW_BUFFER_TOO_SMALL);
  CHECK_FAILS(shw_checkpoint_tensor_infos(checkpoint, 4, 1, &info, &error), SHW_OUT_OF_RANGE,
              "1 from number 4 on do not exist");
  CHECK_FAILS(shw_checkpoint_chunk_infos(checkpoint, UINT64_MAX, 2, &chunk, &error),
              SHW_OUT_OF_RANGE, "do not exist");
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void gives_names_and_texts_in_bulk(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  shw_buffer* names = NULL;
  shw_buffer* info = NULL;
  shw_tensor_info infos[4] = {SHW_TENSOR_INFO_INIT, SHW_TENSOR_INFO_INIT, SHW_TENSOR_INFO_INIT,
                              SHW_TENSOR_INFO_INIT};
  CHECK_OK(shw_checkpoint_tensor_names(checkpoint, &names, &error));
  CHECK_INT(shw_buffer_part_count(names), 4);
  CHECK_OK(shw_checkpoint_tensor_infos(checkpoint, 0, 4, infos, &error));
  shw_buffer_release(names);
  names = NULL;
  CHECK_OK(shw_checkpoint_object_names(checkpoint, &names, &error));
  CHECK_INT(shw_buffer_part_count(names), 2);
  shw_buffer_release(names);
  CHECK_OK(shw_checkpoint_info(checkpoint, &info, &error));
  CHECK(strstr(shw_buffer_data(info), "\"schema\":1") != NULL);
  CHECK(strstr(shw_buffer_data(info), "layer.weight") != NULL);
  shw_buffer_release(info);
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void finds_by_name_and_suggests(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  uint64_t index = 99;
  CHECK_FAILS(shw_checkpoint_find_tensor(checkpoint, "layer.wait", 10, -1, &index, &error),
              SHW_NOT_FOUND, "layer.weight");
  CHECK_INT(index, 99);
  CHECK_OK(shw_checkpoint_find_object(checkpoint, "blob", 4, -1, &index, &error));
  CHECK_TEXT(shw_checkpoint_object_content_type(checkpoint, index, NULL),
             "application/octet-stream");
  CHECK_INT(shw_checkpoint_object_size(checkpoint, index), 5);
  CHECK_INT(shw_checkpoint_object_rank(checkpoint, index), -1);
  shw_buffer* bytes = NULL;
  CHECK_OK(shw_checkpoint_read_objects(checkpoint, &index, 1, &bytes, &error));
  CHECK_TEXT(shw_buffer_data(bytes), "bytes");
  shw_buffer_release(bytes);
  bytes = NULL;
  CHECK_OK(shw_checkpoint_read_objects(checkpoint, NULL, 2, &bytes, &error));
  CHECK_INT(shw_buffer_part_count(bytes), 2);
  shw_buffer_release(bytes);
  bytes = NULL;
  CHECK_OK(shw_checkpoint_read_object_part(checkpoint, index, 1, 3, &bytes, &error));
  CHECK_INT(shw_buffer_size(bytes), 3);
  CHECK(memcmp(shw_buffer_data(bytes), "yte", 3) == 0);
  shw_buffer_release(bytes);
  bytes = NULL;
  CHECK_OK(shw_checkpoint_read_object_part(checkpoint, index, 4, 100, &bytes, &error));
  CHECK_INT(shw_buffer_size(bytes), 1);
  shw_buffer_release(bytes);
  bytes = NULL;
  CHECK_OK(shw_checkpoint_read_object_part(checkpoint, index, 5, 100, &bytes, &error));
  CHECK_INT(shw_buffer_size(bytes), 0);
  shw_buffer_release(bytes);
  bytes = NULL;
  CHECK_FAILS(shw_checkpoint_read_object_part(checkpoint, index, 6, 1, &bytes, &error),
              SHW_OUT_OF_RANGE, "'blob' has 5 bytes");
  CHECK_FAILS(shw_checkpoint_read_object_part(checkpoint, 77, 0, 1, &bytes, &error),
              SHW_OUT_OF_RANGE, "no object number 77");
  CHECK(bytes == NULL);
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void reads_boxes_into_memory_of_the_caller(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  const uint64_t tensors[] = {tensor_number(checkpoint, "layer.weight"),
                              tensor_number(checkpoint, "scale"),
                              tensor_number(checkpoint, "layer.weight")};
  float slice[4], scale = 0, columns[12] = {0};
  shw_tensor targets[3] = {float_tensor(slice, SHAPE(2, 2), 2), float_tensor(&scale, NULL, 0),
                           float_tensor(columns, SHAPE(4, 1), 2)};
  targets[2].strides = SHAPE(3, 1); /* every third element */
  const int64_t offsets[] = {1, 3, 0, 5}, sizes[] = {2, 2, 4, 1};
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  shw_report* report = NULL;
  batch.count = 3;
  batch.tensors = tensors;
  batch.targets = targets;
  batch.box_offsets = offsets;
  batch.box_sizes = sizes;
  CHECK_OK(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error));
  CHECK(slice[0] == 9 && slice[1] == 10 && slice[2] == 15 && slice[3] == 16 && scale == 7);
  CHECK(columns[0] == 5 && columns[3] == 11 && columns[6] == 17 && columns[9] == 23 &&
        columns[1] == 0);
  shw_report_release(report);
  report = NULL;
  const int64_t outside[] = {3, 3, 0, 5};
  batch.box_offsets = outside;
  CHECK_FAILS(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error), SHW_OUT_OF_RANGE,
              "leaves the shape in dimension 0");
  batch.box_offsets = offsets;
  targets[0].dtype = SHW_FLOAT16;
  CHECK_FAILS(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error), SHW_INVALID_ARGUMENT,
              "float32");
  targets[0] = float_tensor(slice, SHAPE(4), 1);
  CHECK_FAILS(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error), SHW_INVALID_ARGUMENT,
              "shape");
  targets[0] = float_tensor(slice, SHAPE(2, 2), 2);
  targets[0].flags = SHW_TENSOR_READ_ONLY;
  CHECK_FAILS(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error), SHW_INVALID_ARGUMENT,
              "read-only");
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void reads_into_memory_of_its_own(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  shw_owned_tensor* tensor = NULL;
  shw_tensor described = SHW_TENSOR_INIT;
  const uint64_t index = tensor_number(checkpoint, "layer.weight");
  CHECK_OK(shw_checkpoint_read_tensor(checkpoint, index, NULL, NULL, 2, &tensor, &error));
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
  CHECK_OK(shw_owned_tensor_describe(tensor, &described, &error));
  CHECK(memcmp(described.data, weight, sizeof(weight)) == 0);
  shw_owned_tensor_release(tensor);
}

static void digests_do_not_depend_on_who_asks(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, saved(context));
  shw_buffer* all = NULL;
  CHECK_OK(shw_checkpoint_digests(checkpoint, NULL, 4, SHW_DIGEST_SHA256, &all, &error));
  CHECK_INT(shw_buffer_part_count(all), 4);
  for (uint64_t i = 0; i < 4; ++i) CHECK_INT(shw_buffer_part_size(all, i), 64);
  /* SHA-256 of the empty text belongs to the tensor without elements. */
  const uint64_t empty = tensor_number(checkpoint, "empty");
  CHECK(memcmp(shw_buffer_part_data(all, empty),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 64) == 0);
  shw_buffer_release(all);
  CHECK_INT(strlen(digest_of(checkpoint, "layer.weight")), 32);
  CHECK(strcmp(digest_of(checkpoint, "layer.weight"), digest_of(checkpoint, "layer.bias")) != 0);
  all = NULL;
  CHECK_FAILS(shw_checkpoint_digests(checkpoint, NULL, 5, SHW_DIGEST_XXH3, &all, &error),
              SHW_OUT_OF_RANGE, "has 4 tensors, not 5");
  CHECK_FAILS(shw_checkpoint_digests(checkpoint, NULL, 4, 2, &all, &error), SHW_INVALID_ARGUMENT,
              "algorithm");
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void verifies_and_lists_damage(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = saved(context);
  shw_checkpoint* checkpoint = open_at(context, path);
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_verify(checkpoint, 0, &report, &error));
  CHECK(strstr(shw_report_json(report, NULL), "structure") != NULL);
  shw_report_release(report);
  report = NULL;
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_FINDING), 0);
  shw_report_release(report);
  report = NULL;
  shw_chunk_info chunk = SHW_CHUNK_INFO_INIT;
  CHECK_OK(shw_checkpoint_chunk_infos(checkpoint, 0, 1, &chunk, &error));
  flip_byte(find_file(path, "rank-00000.shw"), chunk.offset, 1);
  CHECK_FAILS(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error), SHW_DATA_LOSS,
              "'layer.weight' [0:4, 0:6] is damaged");
  CHECK(report == NULL);
  CHECK_OK(shw_checkpoint_find_damage(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  CHECK(shw_report_name_count(report, SHW_REPORT_FINDING) >= 1);
  CHECK(strlen(shw_report_name(report, SHW_REPORT_FINDING, 0, NULL)) > 0);
  shw_report_release(report);
  report = NULL;
  CHECK_FAILS(shw_checkpoint_verify(checkpoint, 2, &report, &error), SHW_UNIMPLEMENTED, "flags");
  CHECK_FAILS(shw_checkpoint_find_damage(checkpoint, 2, &report, &error), SHW_UNIMPLEMENTED,
              "flags");
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

static void removes_generations_that_nobody_names(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = saved(context);
  char orphan[600];
  snprintf(orphan, sizeof(orphan), "mkdir %s/0123456789abcdef0123456789abcdef", path);
  CHECK_INT(system(orphan), 0);
  const char* file = path_in(path, "0123456789abcdef0123456789abcdef/rank-00000.shw");
  write_file(file, "torn", 4);
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_gc(context, NULL, path, -1, 0, &report, &error));
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_REMOVED), 1);
  CHECK(exists(file)); /* a dry run */
  shw_report_release(report);
  report = NULL;
  CHECK_OK(shw_checkpoint_gc(context, NULL, path, 0, SHW_GC_APPLY, &report, &error));
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_REMOVED), 0); /* too young */
  shw_report_release(report);
  report = NULL;
  CHECK_OK(shw_checkpoint_gc(context, NULL, path, -1, SHW_GC_APPLY, &report, &error));
  CHECK(!exists(file));
  shw_report_release(report);
  shw_checkpoint_release(open_at(context, path));
  shw_context_release(context);
}

static shw_status removed(shw_context* context, const char* path, const char* prefix,
                          uint64_t flags, shw_report** report, shw_error** error) {
  return shw_checkpoint_remove(context, NULL, path, prefix, flags, report, error);
}

static void takes_entries_out(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  const char* path = path_in(scratch_directory(), "torch");
  add_floats(state, "layer1.w", weight, SHAPE(4, 6), 2);
  add_floats(state, "layer10.w", bias, SHAPE(3), 1);
  add_object(state, "layer1.step", "application/json", "7");
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.format = SHW_FORMAT_TORCH_DCP;
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  const uint64_t whole = SHW_REMOVE_WHOLE_PARTS;
  for (int applied = 0; applied < 2; ++applied) {
    const uint64_t flags = applied ? whole | SHW_REMOVE_APPLY : whole;
    report = NULL;
    CHECK_OK(removed(context, path, "layer1", flags, &report, &error));
    CHECK_INT(shw_report_name_count(report, SHW_REPORT_REMOVED), 2);
    CHECK_TEXT(shw_report_name(report, SHW_REPORT_REMOVED, 0, NULL), "layer1.step");
    shw_report_release(report);
    shw_checkpoint* checkpoint = open_at(context, path);
    CHECK_INT(shw_checkpoint_tensor_count(checkpoint), applied ? 1 : 2);
    CHECK_INT(shw_checkpoint_object_count(checkpoint), applied ? 0 : 1);
    shw_checkpoint_release(checkpoint);
  }
  report = NULL;
  CHECK_FAILS(removed(context, path, "layer1", whole, &report, &error), SHW_NOT_FOUND, "layer1");
  CHECK_FAILS(removed(context, path, "", 0, &report, &error), SHW_INVALID_ARGUMENT, "prefix");
  CHECK_FAILS(removed(context, path, NULL, 0, &report, &error), SHW_INVALID_ARGUMENT, "prefix");
  CHECK_FAILS(removed(context, path, "layer", 4, &report, &error), SHW_UNIMPLEMENTED, "flags");
  CHECK_FAILS(removed(context, saved(context), "layer", 0, &report, &error), SHW_UNIMPLEMENTED,
              "torch-dcp and megatron");
  CHECK(report == NULL);
  shw_context_release(context);
}

static void sets_metadata_pair_by_pair(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  shw_buffer *texts = NULL, *more = NULL, *none = NULL;
  const char* path = path_in(scratch_directory(), "c");
  add_floats(state, "b", bias, SHAPE(3), 1);
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  static const uint64_t offsets[] = {0, 1, 2};
  options.metadata = "ab";
  options.metadata_offsets = offsets;
  options.metadata_count = 1;
  CHECK_OK(shw_save_options_set_metadata(&options, "step", "1", &texts, &error));
  CHECK_OK(shw_save_options_set_metadata(&options, "step", "2", &more, &error));
  shw_buffer_release(texts);
  CHECK_FAILS(shw_save_options_set_metadata(&options, "\xFF", "2", &none, &error),
              SHW_INVALID_ARGUMENT, "UTF-8");
  CHECK_INT(options.metadata_count, 2);
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  shw_buffer_release(more);
  shw_checkpoint* checkpoint = open_at(context, path);
  CHECK_INT(shw_checkpoint_metadata_count(checkpoint), 2);
  CHECK_TEXT(shw_checkpoint_metadata_key(checkpoint, 0, NULL), "a");
  CHECK_TEXT(shw_checkpoint_metadata_value(checkpoint, 0, NULL), "b");
  CHECK_TEXT(shw_checkpoint_metadata_key(checkpoint, 1, NULL), "step");
  CHECK_TEXT(shw_checkpoint_metadata_value(checkpoint, 1, NULL), "2");
  shw_checkpoint_release(checkpoint);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void lists_the_steps_of_a_run(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* run = scratch_directory();
  shw_state* state = make_state();
  shw_buffer* steps = NULL;
  add_floats(state, "b", bias, SHAPE(3), 1);
  save_at(context, state, path_in(run, "step-00000100"));
  save_at(context, state, path_in(run, "step-00000200"));
  const char* manifest = path_in(run, "step-00000200/manifest.shw");
  truncate_file(manifest, file_size(manifest) / 2);
  CHECK_OK(shw_checkpoint_list_steps(context, NULL, run, &steps, &error));
  CHECK(strstr(shw_buffer_data(steps), "\"newest_whole\":\"step-00000100\"") != NULL);
  CHECK(strstr(shw_buffer_data(steps), "step-00000200") != NULL);
  shw_buffer_release(steps);
  shw_buffer* latest = NULL;
  CHECK_OK(shw_checkpoint_latest(context, NULL, run, &latest, &error));
  shw_checkpoint_release(open_at(context, shw_buffer_data(latest)));
  CHECK_INT(strcmp(shw_buffer_data(latest), path_in(run, "step-00000100")), 0);
  shw_buffer_release(latest);
  latest = NULL;
  CHECK_FAILS(shw_checkpoint_latest(context, NULL, path_in(run, "step-00000100"), &latest, &error),
              SHW_NOT_FOUND, "no step directories");
  shw_state_release(state);
  shw_context_release(context);
}

static void outlives_context_storage_and_state(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_storage* storage = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = NULL;
  shw_state* state = make_state();
  CHECK_OK(shw_storage_create_memory(&storage, &error));
  add_floats(state, "b", bias, SHAPE(3), 1);
  CHECK_OK(shw_save(context, state, storage, "x", NULL, NULL, &report, &error));
  CHECK_OK(shw_checkpoint_open(context, storage, "x/", NULL, &checkpoint, &error));
  shw_context_release(context);
  shw_storage_release(storage);
  shw_state_release(state);
  shw_report_release(report);
  CHECK_INT(strlen(digest_of(checkpoint, "b")), 32);
  shw_checkpoint_release(checkpoint);
}

/* A format without digests, generations and folders: one file with four floats. */
static void opens_a_file_of_another_format(void) {
  static const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}";
  const float values[4] = {1, 2, 3, 4};
  const uint64_t length = strlen(header);
  char file[256] = {0};
  memcpy(file, &length, 8);
  memcpy(file + 8, header, length);
  memcpy(file + 8 + length, values, sizeof(values));
  const char* path = path_in(scratch_directory(), "m.safetensors");
  write_file(path, file, 8 + length + sizeof(values));

  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = open_at(context, path);
  CHECK_TEXT(shw_checkpoint_format(checkpoint, NULL), "safetensors");
  CHECK_TEXT(shw_checkpoint_generation(checkpoint, NULL), "");
  CHECK_INT(shw_checkpoint_created_ns(checkpoint), 0);
  CHECK_TEXT(shw_checkpoint_file_name(checkpoint, 0, NULL), "m.safetensors");
  CHECK_TEXT(shw_checkpoint_metadata_value(checkpoint, 0, NULL), "pt");
  const uint64_t index = tensor_number(checkpoint, "w");
  float column[2] = {0};
  shw_tensor target = float_tensor(column, SHAPE(2, 1), 2);
  const int64_t offsets[] = {0, 1}, sizes[] = {2, 1};
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  batch.count = 1;
  batch.tensors = &index;
  batch.targets = &target;
  batch.box_offsets = offsets;
  batch.box_sizes = sizes;
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error));
  CHECK(column[0] == 2 && column[1] == 4);
  shw_report_release(report);
  report = NULL;
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  CHECK_OK(shw_report_summarize(report, &summary, &error));
  CHECK((summary.flags & SHW_REPORT_WITHOUT_DIGESTS) != 0);
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(tells_what_it_holds), TEST_ENTRY(opens_a_file_of_another_format),
          TEST_ENTRY(gives_names_and_texts_in_bulk), TEST_ENTRY(finds_by_name_and_suggests),
          TEST_ENTRY(reads_boxes_into_memory_of_the_caller),
          TEST_ENTRY(reads_into_memory_of_its_own), TEST_ENTRY(digests_do_not_depend_on_who_asks),
          TEST_ENTRY(verifies_and_lists_damage), TEST_ENTRY(removes_generations_that_nobody_names),
          TEST_ENTRY(takes_entries_out), TEST_ENTRY(sets_metadata_pair_by_pair),
          TEST_ENTRY(lists_the_steps_of_a_run), TEST_ENTRY(outlives_context_storage_and_state))
