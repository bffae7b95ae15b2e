/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the table of statuses that need ranks, files of others or files of a newer version: which
 * status comes, and what the message names. The other rows stand in bad_input_test.c,
 * struct_size_test.c, arguments_test.c and the files named after their subject. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { HEADER_BYTES = 4096, TRAILER_BYTES = 128, DIGEST_BYTES = 16 };

static float values[6] = {0, 1, 2, 3, 4, 5};

static void save_floats(shw_context* context, const char* path) {
  shw_state* state = make_state();
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  save_at(context, state, path);
  shw_state_release(state);
}

/* ---- ranks that disagree ---- */

static void add_as(shw_state* state, int32_t dtype, int32_t kind) {
  static const uint64_t offsets[] = {0, 1};
  shw_error* error = NULL;
  shw_tensor tensor = float_tensor(values, SHAPE(2, 3), 2);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  tensor.dtype = dtype;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = offsets;
  batch.tensors = &tensor;
  batch.kinds = &kind;
  CHECK_OK(shw_state_add_tensors(state, &batch, &error));
}

struct disagreement {
  const char* text;
  int32_t dtypes[2];
  int32_t kinds[2];
  const char* path;
};

static void save_differently(struct rank* rank) {
  const struct disagreement* given = rank->user;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  add_as(state, given->dtypes[rank->rank], given->kinds[rank->rank]);
  CHECK_FAILS(shw_save(context, state, NULL, given->path, rank->collective, NULL, &report, &error),
              SHW_INVALID_ARGUMENT, given->text);
  shw_state_release(state);
  shw_context_release(context);
}

static void ranks_that_disagree_on_dtype_or_kind_are_named(void) {
  struct disagreement cases[] = {
      {"float32", {SHW_FLOAT32, SHW_INT32}, {0, 0}, NULL},
      {"rank_local", {SHW_FLOAT32, SHW_FLOAT32}, {SHW_KIND_RANK_LOCAL, SHW_KIND_REPLICATED}, NULL}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    cases[i].path = path_in(scratch_directory(), "c");
    run_ranks(2, save_differently, &cases[i]);
    CHECK(!exists(path_in(cases[i].path, "manifest.shw")));
  }
}

/* ---- files of others, and of a newer library ---- */

static void formats_that_are_only_recognised_are_named(void) {
  static const struct {
    const char *name, *head, *wanted;
    uint64_t size;
  } files[] = {{"torch.tar", "storages\0.....", "tar archive of torch", 14},
               {"old.pt", "\x80\x02}q\x00.........", "pickle", 14},
               {"arrays.npz", "PK\x03\x04.........", "numpy archive", 13},
               {"weights.h5", "\x89HDF\r\n\x1a\n........", "HDF5", 16}};
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* directory = scratch_directory();
  shw_checkpoint* checkpoint = NULL;
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
    const char* path = path_in(directory, files[i].name);
    write_file(path, files[i].head, files[i].size);
    CHECK_FAILS(shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error),
                SHW_UNIMPLEMENTED, files[i].wanted);
    CHECK(checkpoint == NULL);
  }
  const char* distributed = path_in(directory, "megatron");
  CHECK(mkdir(distributed, 0777) == 0);
  const char* const marker = "{\"sharded_backend\": \"zarr\", \"sharded_backend_version\": 1}";
  write_file(path_in(distributed, "metadata.json"), marker, strlen(marker));
  CHECK_FAILS(shw_checkpoint_open(context, NULL, distributed, NULL, &checkpoint, &error),
              SHW_UNIMPLEMENTED, "torch_dist");
  shw_context_release(context);
}

/* Bytes of a block of the file that ends with its own digest become others, under a digest that
 * holds. */
static void forge(const char* file, uint64_t begin, uint64_t size, uint64_t place,
                  const void* value, uint64_t value_size) {
  static uint8_t block[HEADER_BYTES];
  shw_error* error = NULL;
  shw_buffer* digest = NULL;
  FILE* stream = fopen(file, "r+b");
  CHECK(size <= HEADER_BYTES && stream != NULL);
  CHECK(fseek(stream, (long)begin, SEEK_SET) == 0 && fread(block, 1, size, stream) == size);
  memcpy(block + place, value, value_size);
  CHECK_OK(shw_content_digest(block, size - DIGEST_BYTES, &digest, &error));
  CHECK_INT(shw_buffer_size(digest), DIGEST_BYTES);
  memcpy(block + size - DIGEST_BYTES, shw_buffer_data(digest), DIGEST_BYTES);
  CHECK(fseek(stream, (long)begin, SEEK_SET) == 0 && fwrite(block, 1, size, stream) == size);
  CHECK(fclose(stream) == 0);
  shw_buffer_release(digest);
}

static shw_status verify(shw_context* context, const char* path, shw_error** err) {
  shw_checkpoint* checkpoint = open_at(context, path);
  shw_report* report = NULL;
  const shw_status status = shw_checkpoint_verify(checkpoint, 0, &report, err);
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  return status;
}

static void a_newer_format_is_told_from_damage(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "c");
  save_floats(context, path);
  const char* file = find_file(path, "rank-00000.shw");
  const uint32_t version = 9;
  forge(file, 0, HEADER_BYTES, 8, &version, sizeof(version));
  const shw_status status = verify(context, path, &error);
  CHECK_INT(status, SHW_UNIMPLEMENTED);
  CHECK(strstr(shw_error_message(error, NULL), "format version 9.") != NULL);
  CHECK(strncmp(error_detail(error, "needed_version"), "9.", 2) == 0);
  shw_error_release(error);
  error = NULL;
  flip_byte(file, 8, 1); /* now the digest does not hold */
  CHECK_FAILS(verify(context, path, &error), SHW_DATA_LOSS, "rank-00000.shw");
  shw_context_release(context);
}

static void a_data_file_of_another_save_is_damage(void) {
  static uint8_t kept[1 << 16];
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "c");
  save_floats(context, path);
  const char* file = find_file(path, "rank-00000.shw");
  const uint64_t size = file_size(file);
  CHECK(size <= sizeof(kept));
  FILE* stream = fopen(file, "rb");
  CHECK(stream != NULL && fread(kept, 1, size, stream) == size && fclose(stream) == 0);
  save_floats(context, path);
  write_file(find_file(path, "rank-00000.shw"), kept, size);
  CHECK_FAILS(verify(context, path, &error), SHW_DATA_LOSS, "rank-00000.shw");
  shw_context_release(context);
}

/* ---- files that nobody should read ---- */

static void what_is_no_file_inside_a_generation_is_unsafe(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "c");
  save_floats(context, path);
  const char* file = find_file(path, "rank-00000.shw");
  const char* moved = path_in(scratch_directory(), "moved");
  CHECK(rename(file, moved) == 0 && mkfifo(file, 0600) == 0);
  CHECK_FAILS_WITH(verify(context, path, &error), SHW_PERMISSION_DENIED, file, "unsafe",
                   "special file");
  /* The folder of the generation leads elsewhere. */
  CHECK(unlink(file) == 0 && rename(moved, file) == 0);
  char generation[600];
  snprintf(generation, sizeof(generation), "%s", file);
  *strrchr(generation, '/') = '\0';
  CHECK(rename(generation, moved) == 0 && symlink(moved, generation) == 0);
  CHECK_FAILS_WITH(verify(context, path, &error), SHW_PERMISSION_DENIED, generation, "unsafe",
                   "symlink");
  shw_context_release(context);
}

static void sizes_that_no_file_has_are_damage(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = NULL;
  const char* path = path_in(scratch_directory(), "c");
  save_floats(context, path);
  const char* file = find_file(path, "rank-00000.shw");
  const uint64_t index_bytes = (uint64_t)1 << 62;
  forge(file, file_size(file) - TRAILER_BYTES, TRAILER_BYTES, 48, &index_bytes,
        sizeof(index_bytes));
  CHECK_FAILS(verify(context, path, &error), SHW_DATA_LOSS, "rank-00000.shw");
  const char* manifest = path_in(path, "manifest.shw");
  truncate_file(manifest, (uint64_t)1 << 31); /* grows, without taking room */
  CHECK_FAILS_WITH(shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error),
                   SHW_DATA_LOSS, "manifest", "file", "manifest.shw");
  shw_context_release(context);
}

/* ---- ranks that are silent ---- */

static void save_while_one_is_silent(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  if (rank->rank == 1) {
    *(shw_collective**)rank->user = rank->collective;
    rank->collective = NULL; /* stays open until the others are done */
    return;
  }
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  shw_context* context = make_context();
  shw_state* state = make_state();
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  options.deadline_ns = 50 * 1000 * 1000;
  CHECK_FAILS(shw_save(context, state, NULL, path_in(scratch_directory(), "c"), rank->collective,
                       &options, &report, &error),
              SHW_DEADLINE_EXCEEDED, "rank 1");
  shw_state_release(state);
  shw_context_release(context);
}

static void a_silent_rank_ends_the_save_at_the_deadline(void) {
  shw_collective* silent = NULL;
  run_ranks(2, save_while_one_is_silent, &silent);
  shw_collective_release(silent);
}

TEST_MAIN(TEST_ENTRY(ranks_that_disagree_on_dtype_or_kind_are_named),
          TEST_ENTRY(formats_that_are_only_recognised_are_named),
          TEST_ENTRY(a_newer_format_is_told_from_damage),
          TEST_ENTRY(a_data_file_of_another_save_is_damage),
          TEST_ENTRY(what_is_no_file_inside_a_generation_is_unsafe),
          TEST_ENTRY(sizes_that_no_file_has_are_damage),
          TEST_ENTRY(a_silent_rank_ends_the_save_at_the_deadline))
