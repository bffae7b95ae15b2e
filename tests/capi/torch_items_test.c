/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories for torch.distributed.checkpoint through the C surface: what ranks write together,
 * and items for an index of the host's. What torch reads of them is in tests/interop. */
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { ROWS = 7, COLUMNS = 3 };
static const char generation[] = "0123456789abcdef0123456789abcdef";

/* ---- what ranks write together ---- */

/* Rows that torch.chunk gives a rank; the last ranks may have none. */
static void save_rows(struct rank* rank) {
  const int64_t chunk = (ROWS + rank->size - 1) / rank->size;
  const int64_t begin = rank->rank * chunk < ROWS ? rank->rank * chunk : ROWS;
  const int64_t end = begin + chunk < ROWS ? begin + chunk : ROWS;
  float rows[ROWS * COLUMNS];
  for (int64_t i = begin * COLUMNS; i < end * COLUMNS; ++i) rows[i - begin * COLUMNS] = (float)i;
  const struct shard shard = {
      "rows", rows, SHAPE(ROWS, COLUMNS), SHAPE(begin, 0), SHAPE(end - begin, COLUMNS), 2};
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  shw_error* error = NULL;
  add_shard(state, &shard);
  add_object(state, "step", "application/json", "12");
  options.format = SHW_FORMAT_TORCH_DCP;
  CHECK_OK(shw_save(context, state, NULL, rank->user, rank->collective, &options, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void ranks_write_a_directory_that_has_the_digests_of_one_rank(void) {
  char alone[64];
  shw_context* context = make_context();
  for (int32_t ranks = 1; ranks <= 4; ++ranks) {
    char path[256];
    snprintf(path, sizeof(path), "%s/p", scratch_directory());
    run_ranks(ranks, save_rows, path);
    shw_checkpoint* checkpoint = open_at(context, path);
    CHECK_TEXT(shw_checkpoint_format(checkpoint, NULL), "torch-dcp");
    if (ranks == 1) snprintf(alone, sizeof(alone), "%s", digest_of(checkpoint, "rows"));
    CHECK_TEXT(digest_of(checkpoint, "rows"), alone);
    CHECK_INT(shw_checkpoint_object_count(checkpoint), 1);
    shw_checkpoint_release(checkpoint);
  }
  shw_context_release(context);
}

/* ---- items for an index of the host's ---- */

static float weights[] = {1, 2, 3, 4, 5, 6};

static shw_state* items(void) {
  shw_state* state = make_state();
  add_floats(state, "w", weights, SHAPE(2, 3), 2);
  add_object(state, "step", "application/json", "7");
  return state;
}

/* The bytes of a file; static memory. */
static const char* read_file(const char* path, uint64_t* size) {
  static char bytes[65536];
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL);
  *size = fread(bytes, 1, sizeof(bytes), file);
  CHECK(*size < sizeof(bytes));
  fclose(file);
  return bytes;
}

/* Saves the items, so that an index names them by file, offset and length; gives the name of the
 * file. */
static const char* save_items(shw_context* context, const char* path) {
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  shw_state* state = items();
  shw_report* report = NULL;
  shw_error* error = NULL;
  options.format = SHW_FORMAT_TORCH_DCP;
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &options, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  return strrchr(find_file(path, ".distcp"), '/') + 1;
}

static shw_buffer* write_items(shw_context* context, const char* path, const char* name) {
  shw_state* state = items();
  shw_buffer* written = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_torch_items_write(context, state, NULL, path, name, NULL, &written, &error));
  CHECK_INT(shw_buffer_part_count(written), 2);
  CHECK_FAILS(shw_torch_items_write(context, state, NULL, path, name, NULL, &written, &error),
              SHW_ALREADY_EXISTS, name);
  shw_state_release(state);
  return written;
}

/* Entry, offset and length of each item. */
static void check_places(const shw_buffer* written, uint64_t file_bytes) {
  const uint64_t* rows = shw_buffer_part_data(written, 0);
  CHECK_INT(shw_buffer_part_size(written, 0), 2 * 3 * sizeof(uint64_t));
  for (uint64_t i = 0; i < 2; ++i, rows += 3) {
    CHECK_INT(rows[0], i); /* the object is numbered behind the tensor */
    CHECK(rows[2] > 0 && rows[1] + rows[2] <= file_bytes);
  }
}

static shw_status try_digests(shw_context* context, const char* path, const char* index,
                              uint64_t size, const shw_buffer* written, shw_error** error) {
  const uint64_t offsets[] = {0, shw_buffer_part_size(written, 1)};
  return shw_torch_digests_write(context, NULL, path, index, size, shw_buffer_part_data(written, 1),
                                 offsets, 1, NULL, error);
}

static void items_and_digests_make_a_checkpoint_of_an_index(void) {
  shw_context* context = make_context();
  const char* saved = path_in(scratch_directory(), "saved");
  const char* path = path_in(scratch_directory(), "p");
  const char* name = save_items(context, saved);
  shw_error* error = NULL;
  uint64_t size = 0;
  const char* index = read_file(path_in(saved, ".metadata"), &size);
  shw_buffer* written = write_items(context, path, name);
  check_places(written, file_size(path_in(path, name)));
  CHECK_OK(try_digests(context, path, index, size, written, &error));
  write_file(path_in(path, ".metadata"), index, size);
  shw_checkpoint* checkpoint = open_at(context, path);
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  /* The digests are those of this index: a bit of the payload that flips is noticed. */
  const uint64_t begin = ((const uint64_t*)shw_buffer_part_data(written, 0))[1];
  const char* file = read_file(path_in(path, name), &size);
  uint64_t at = begin;
  while (memcmp(file + at, weights, sizeof(weights)) != 0) CHECK(++at + sizeof(weights) <= size);
  flip_byte(path_in(path, name), at, 1);
  checkpoint = open_at(context, path);
  shw_owned_tensor* loaded = NULL;
  CHECK_FAILS(shw_checkpoint_read_tensor(checkpoint, tensor_number(checkpoint, "w"), NULL, NULL, 2,
                                         &loaded, &error),
              SHW_DATA_LOSS, name);
  shw_checkpoint_release(checkpoint);
  shw_buffer_release(written);
  shw_context_release(context);
}

static void items_that_do_not_fit_are_refused(void) {
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "p");
  const char* saved = path_in(scratch_directory(), "saved");
  char first[80], second[80];
  snprintf(first, sizeof(first), "__0_0.%s.distcp", generation);
  snprintf(second, sizeof(second), "__1_0.f%s.distcp", generation + 1);
  shw_buffer *one = write_items(context, path, first), *other = write_items(context, path, second);
  shw_state* state = items();
  shw_buffer* written = NULL;
  shw_error* error = NULL;
  CHECK_FAILS_WITH(
      shw_torch_items_write(context, state, NULL, path, "__0_0.distcp", NULL, &written, &error),
      SHW_INVALID_ARGUMENT, "GENERATION", "parameter", "name");
  CHECK_FAILS(try_digests(context, path, "no pickle", 9, one, &error), SHW_DATA_LOSS, "pickle");
  uint64_t size = 0;
  save_items(context, saved);
  const char* index = read_file(path_in(saved, ".metadata"), &size);
  const uint64_t sizes[] = {shw_buffer_part_size(one, 1), shw_buffer_part_size(other, 1)};
  const uint64_t offsets[] = {0, sizes[0], sizes[0] + sizes[1]};
  char results[4096];
  CHECK(offsets[2] <= sizeof(results));
  memcpy(results, shw_buffer_part_data(one, 1), sizes[0]);
  memcpy(results + sizes[0], shw_buffer_part_data(other, 1), sizes[1]);
  CHECK_FAILS(
      shw_torch_digests_write(context, NULL, path, index, size, results, offsets, 2, NULL, &error),
      SHW_INVALID_ARGUMENT, "generation");
  CHECK_FAILS(
      shw_torch_digests_write(context, NULL, path, index, size, results, offsets, 0, NULL, &error),
      SHW_INVALID_ARGUMENT, "no file");
  shw_buffer_release(one);
  shw_buffer_release(other);
  shw_state_release(state);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(ranks_write_a_directory_that_has_the_digests_of_one_rank),
          TEST_ENTRY(items_and_digests_make_a_checkpoint_of_an_index),
          TEST_ENTRY(items_that_do_not_fit_are_refused))
