/* SPDX-License-Identifier: Apache-2.0
 *
 * What bad input gives: for each kind the status, a message that names what and where, and data
 * left as it was. Storage faults, plugins, tensors, states and plans have test files of their
 * own. */
#include <errno.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

static float values[6] = {0, 1, 2, 3, 4, 5};

/* A context and a checkpoint of tensor "w" (2 x 3) and object "o" at `path`. */
struct fixture {
  shw_context* context;
  const char* path;
};
static struct fixture saved(void) {
  struct fixture made = {make_context(), path_in(scratch_directory(), "c")};
  shw_state* state = make_state();
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  add_object(state, "o", "application/json", "{}");
  save_at(made.context, state, made.path);
  shw_state_release(state);
  return made;
}

static shw_status try_open(const struct fixture* fixture, const char* path, shw_error** err) {
  shw_checkpoint* checkpoint = NULL;
  const shw_status status =
      shw_checkpoint_open(fixture->context, NULL, path, NULL, &checkpoint, err);
  shw_checkpoint_release(checkpoint);
  return status;
}

/* Opens and checks structure, sizes, trailers and index digests. */
static shw_status try_verify(const struct fixture* fixture, shw_error** err) {
  shw_checkpoint* checkpoint = NULL;
  shw_report* report = NULL;
  shw_status status =
      shw_checkpoint_open(fixture->context, NULL, fixture->path, NULL, &checkpoint, err);
  if (status == SHW_OK) status = shw_checkpoint_verify(checkpoint, 0, &report, err);
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  return status;
}

/* Saves w; the caller looks at the outcome. */
static shw_status try_save(shw_context* context, const char* path, const shw_save_options* options,
                           shw_error** err) {
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "w", values, SHAPE(2, 3), 2);
  const shw_status status = shw_save(context, state, NULL, path, NULL, options, &report, err);
  shw_report_release(report);
  shw_state_release(state);
  return status;
}

static shw_status try_load(const struct fixture* fixture, const char* name,
                           const shw_tensor* tensor, const shw_load_options* options,
                           shw_error** err) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  shw_report* report = NULL;
  CHECK_OK(try_add_one(state, name, strlen(name), tensor, &error));
  const shw_status status =
      shw_load(fixture->context, state, NULL, fixture->path, NULL, options, &report, err);
  CHECK((report != NULL) == (status == SHW_OK));
  shw_report_release(report);
  shw_state_release(state);
  return status;
}

static void unknown_option_values_are_refused(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  int32_t* const words[] = {&options.overwrite, &options.durability,      &options.digests,
                            &options.owner,     &options.verify_replicas, &options.preset,
                            &options.format};
  static const char* const names[] = {"overwrite",       "durability", "digests", "owner",
                                      "verify_replicas", "preset",     "format"};
  for (int i = 0; i < 7; ++i) {
    *words[i] = 9;
    CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_INVALID_ARGUMENT,
                names[i]);
    *words[i] = 0;
  }
  options.flags = 4;
  CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_UNIMPLEMENTED,
              "flags");
  options.flags = 0;
  options.struct_size = 24;
  CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_INVALID_ARGUMENT,
              "struct_size");
  shw_context_release(fixture.context);
}

/* Ranks of one save differ; every rank gets the same status. */
struct disagreement {
  const char* path;
  shw_status wanted;
  const char* text;
  void (*prepare)(int32_t rank, shw_state* state, shw_save_options* options);
};

static float rank_values[4][6];
static void save_differently(struct rank* rank) {
  const struct disagreement* given = rank->user;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  shw_context* context = make_context();
  shw_state* state = make_state();
  given->prepare(rank->rank, state, &options);
  CHECK_FAILS(
      shw_save(context, state, NULL, given->path, rank->collective, &options, &report, &error),
      given->wanted, given->text);
  CHECK(report == NULL);
  shw_state_release(state);
  shw_context_release(context);
}

static void add_rows(shw_state* state, int32_t rank, int64_t begin, int64_t count) {
  const int64_t offsets[] = {begin, 0}, sizes[] = {count, 3};
  const struct shard shard = {"w", rank_values[rank], SHAPE(4, 3), offsets, sizes, 2};
  add_shard(state, &shard);
}
static void overlap(int32_t rank, shw_state* state, shw_save_options* options) {
  (void)options;
  add_rows(state, rank, rank, 2);
}
static void hole(int32_t rank, shw_state* state, shw_save_options* options) {
  (void)options;
  add_rows(state, rank, rank * 2, rank == 0 ? 2 : 1);
}
static void other_shape(int32_t rank, shw_state* state, shw_save_options* options) {
  (void)options;
  add_floats(state, "w", rank_values[rank], rank == 0 ? SHAPE(2, 3) : SHAPE(3, 2), 2);
}
static void other_values(int32_t rank, shw_state* state, shw_save_options* options) {
  (void)options;
  for (int i = 0; i < 6; ++i) rank_values[rank][i] = (float)rank;
  add_floats(state, "w", rank_values[rank], SHAPE(2, 3), 2);
}
static void other_options(int32_t rank, shw_state* state, shw_save_options* options) {
  options->owner = rank == 0 ? SHW_OWNER_BALANCED : SHW_OWNER_LOWEST_RANK;
  add_rows(state, rank, rank * 2, 2);
}

static void ranks_that_disagree_all_get_the_same_error(void) {
  static const struct disagreement cases[] = {
      {NULL, SHW_INVALID_ARGUMENT, "overlap", overlap},
      {NULL, SHW_INVALID_ARGUMENT, "no rank holds box [3:4, 0:3]", hole},
      {NULL, SHW_INVALID_ARGUMENT, "[2, 3] on rank 0 and [3, 2] on rank 1", other_shape},
      {NULL, SHW_INVALID_ARGUMENT, "rank_local", other_values},
      {NULL, SHW_INVALID_ARGUMENT, "owner", other_options}};
  struct fixture fixture = saved();
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    struct disagreement now = cases[i];
    now.path = fixture.path;
    run_ranks(2, save_differently, &now);
  }
  shw_checkpoint* checkpoint = open_at(fixture.context, fixture.path); /* still the old one */
  CHECK_INT(shw_checkpoint_object_count(checkpoint), 1);
  shw_checkpoint_release(checkpoint);
  shw_context_release(fixture.context);
}

static void what_differs_from_the_stored_is_refused(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  float wanted[6] = {-1, -1, -1, -1, -1, -1};
  shw_tensor tensor = float_tensor(wanted, SHAPE(2, 3), 2);
  CHECK_FAILS(try_load(&fixture, "v", &tensor, NULL, &error), SHW_NOT_FOUND, "'v' is not stored");
  tensor.shape = SHAPE(3, 2);
  CHECK_FAILS(try_load(&fixture, "w", &tensor, NULL, &error), SHW_INVALID_ARGUMENT,
              "stored with shape [2, 3] and wanted with shape [3, 2]");
  tensor.shape = SHAPE(2, 3);
  tensor.dtype = SHW_INT32;
  CHECK_FAILS(try_load(&fixture, "w", &tensor, NULL, &error), SHW_INVALID_ARGUMENT, "int32");
  tensor.dtype = SHW_FLOAT32;
  tensor.flags = SHW_TENSOR_READ_ONLY;
  CHECK_FAILS(try_load(&fixture, "w", &tensor, NULL, &error), SHW_INVALID_ARGUMENT, "read-only");
  tensor.flags = 0;
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  options.unexpected = SHW_UNEXPECTED_ERROR;
  CHECK_FAILS(try_load(&fixture, "w", &tensor, &options, &error), SHW_INVALID_ARGUMENT,
              "unexpected = error): 'o'");
  for (int i = 0; i < 6; ++i) CHECK(wanted[i] == -1); /* nothing was touched */
  options.unexpected = 0;
  options.missing = SHW_MISSING_REPORT;
  CHECK_OK(try_load(&fixture, "v", &tensor, &options, &error));
  for (int i = 0; i < 6; ++i) CHECK(wanted[i] == -1);
  shw_context_release(fixture.context);
}

static void a_cast_must_be_allowed_and_is_reported(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  double wide[6] = {0};
  shw_tensor tensor = float_tensor(NULL, SHAPE(2, 3), 2);
  tensor.data = wide;
  tensor.dtype = SHW_FLOAT64;
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  shw_state* state = make_state();
  shw_report* report = NULL;
  options.cast = SHW_CAST_ALLOW;
  CHECK_OK(try_add_one(state, "w", 1, &tensor, &error));
  CHECK_OK(shw_load(fixture.context, state, NULL, fixture.path, NULL, &options, &report, &error));
  CHECK(wide[5] == 5.0);
  CHECK_TEXT(shw_report_name(report, SHW_REPORT_CAST, 0, NULL), "w: float32 -> float64");
  shw_report_release(report);
  report = NULL;
  const uint64_t globs[] = {0, 1};
  const int32_t rules[] = {SHW_MISSING_ERROR, SHW_UNEXPECTED_REPORT, SHW_CAST_ERROR};
  options.strict_globs = "w";
  options.strict_offsets = globs;
  options.strict_rules = rules;
  options.strict_count = 1;
  CHECK_FAILS(shw_load(fixture.context, state, NULL, fixture.path, NULL, &options, &report, &error),
              SHW_INVALID_ARGUMENT, "float64");
  shw_state_release(state);
  shw_context_release(fixture.context);
}

static void paths_without_a_checkpoint_are_told_apart(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  const char* directory = scratch_directory();
  CHECK_FAILS(try_open(&fixture, path_in(directory, "nothing"), &error), SHW_NOT_FOUND, "nothing");
  CHECK_FAILS(try_open(&fixture, directory, &error), SHW_NOT_FOUND, "nothing is there");
  write_file(path_in(directory, "file"), "hello", 5);
  CHECK_FAILS(try_open(&fixture, path_in(directory, "file"), &error), SHW_INVALID_ARGUMENT,
              "no known checkpoint format");
  CHECK_FAILS(try_open(&fixture, directory, &error), SHW_INVALID_ARGUMENT,
              "looked for manifest.shw");
  char longest[5000];
  memset(longest, 'p', sizeof(longest));
  longest[sizeof(longest) - 1] = '\0';
  CHECK_FAILS(try_open(&fixture, longest, &error), SHW_INVALID_ARGUMENT, "4095");
  longest[300] = '\0';
  CHECK_FAILS(try_save(fixture.context, path_in(directory, longest), NULL, &error),
              SHW_INVALID_ARGUMENT, "limit of 255 bytes");
  CHECK_FAILS(try_open(&fixture, "", &error), SHW_INVALID_ARGUMENT, "path");
  shw_checkpoint_options options = SHW_CHECKPOINT_OPTIONS_INIT;
  shw_checkpoint* checkpoint = NULL;
  options.format = SHW_FORMAT_TORCH_DCP;
  CHECK_FAILS(
      shw_checkpoint_open(fixture.context, NULL, fixture.path, &options, &checkpoint, &error),
      SHW_INVALID_ARGUMENT, "torch-dcp");
  shw_context_release(fixture.context);
}

static void an_existing_checkpoint_can_be_protected(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.overwrite = SHW_OVERWRITE_REFUSE;
  CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_ALREADY_EXISTS,
              "overwrite 'replace'");
  shw_checkpoint_release(open_at(fixture.context, fixture.path));
  shw_context_release(fixture.context);
}

static void damage_of_every_file_is_found(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  static uint8_t kept[1 << 20];
  const char* const files[] = {"manifest.shw", "rank-00000.shw"};
  for (int i = 0; i < 2; ++i) {
    char path[600];
    snprintf(path, sizeof(path), "%s", find_file(fixture.path, files[i]));
    const uint64_t size = file_size(path);
    FILE* file = fopen(path, "rb");
    CHECK(file != NULL && fread(kept, 1, size, file) == size && fclose(file) == 0);
    truncate_file(path, size - 1);
    CHECK_FAILS(try_verify(&fixture, &error), SHW_DATA_LOSS, files[i]);
    write_file(path, kept, size);
    flip_byte(path, size - 1, 0x10); /* digest of the manifest, trailer of the data file */
    CHECK_FAILS(try_verify(&fixture, &error), SHW_DATA_LOSS, files[i]);
    write_file(path, kept, size);
    CHECK_OK(try_verify(&fixture, &error));
    CHECK(unlink(path) == 0);
    if (i == 1) CHECK_FAILS(try_verify(&fixture, &error), SHW_DATA_LOSS, files[i]);
    write_file(path, kept, size);
  }
  shw_context_release(fixture.context);
}

static void flipped_payload_is_found_on_read(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  shw_checkpoint* checkpoint = open_at(fixture.context, fixture.path);
  shw_chunk_info chunk = SHW_CHUNK_INFO_INIT;
  CHECK_OK(shw_checkpoint_chunk_infos(checkpoint, 0, 1, &chunk, &error));
  flip_byte(find_file(fixture.path, "rank-00000.shw"), chunk.offset + 5, 0x80);
  shw_owned_tensor* tensor = NULL;
  CHECK_FAILS(shw_checkpoint_read_tensor(checkpoint, 0, NULL, NULL, 2, &tensor, &error),
              SHW_DATA_LOSS, "tensor 'w' [0:2, 0:3] is damaged");
  CHECK(tensor == NULL);
  float wanted[6];
  const shw_tensor target = float_tensor(wanted, SHAPE(2, 3), 2);
  CHECK_FAILS(try_load(&fixture, "w", &target, NULL, &error), SHW_DATA_LOSS, "rank-00000.shw");
  shw_checkpoint_release(checkpoint);
  shw_context_release(fixture.context);
}

static void links_inside_a_generation_are_unsafe(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  char path[600], moved[620];
  snprintf(path, sizeof(path), "%s", find_file(fixture.path, "rank-00000.shw"));
  snprintf(moved, sizeof(moved), "%s.moved", path);
  CHECK(rename(path, moved) == 0 && symlink(moved, path) == 0);
  CHECK_FAILS_WITH(try_verify(&fixture, &error), SHW_PERMISSION_DENIED, "rank-00000.shw", "unsafe",
                   "symlink");
  shw_context_release(fixture.context);
}

static void a_file_that_may_not_grow_leaves_the_old_checkpoint(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  enum { COUNT = 1 << 20 };
  static float big[COUNT];
  struct rlimit old, small;
  CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
  small = old;
  small.rlim_cur = 1 << 20;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "big", big, SHAPE(COUNT), 1);
  CHECK_FAILS(shw_save(fixture.context, state, NULL, fixture.path, NULL, NULL, &report, &error),
              SHW_RESOURCE_EXHAUSTED, "File too large");
  CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
  shw_state_release(state);
  shw_checkpoint* checkpoint = open_at(fixture.context, fixture.path);
  CHECK_INT(tensor_number(checkpoint, "w"), 0);
  shw_checkpoint_release(checkpoint);
  shw_context_release(fixture.context);
}

static void a_plan_of_another_checkpoint_is_refused(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  float wanted[6];
  shw_state* state = make_state();
  shw_load_planner* planner = NULL;
  shw_load_planner* later = NULL;
  shw_plan* plan = NULL;
  shw_report* report = NULL;
  add_floats(state, "w", wanted, SHAPE(2, 3), 2);
  shw_checkpoint* checkpoint = open_at(fixture.context, fixture.path);
  CHECK_OK(shw_load_planner_create(checkpoint, state, 0, NULL, &planner, &error));
  CHECK_OK(shw_load_planner_local_plan(planner, &plan, &error));
  CHECK_OK(try_save(fixture.context, fixture.path, NULL, &error));
  shw_checkpoint* newer = open_at(fixture.context, fixture.path);
  CHECK_OK(shw_load_planner_create(newer, state, 0, NULL, &later, &error));
  CHECK_FAILS(shw_load_execute(later, plan, &report, &error), SHW_FAILED_PRECONDITION,
              "the load plan is of generation");
  CHECK_FAILS(shw_load_execute(planner, plan, &report, &error), SHW_ABORTED,
              "replaced while reading"); /* replaced */
  shw_plan_release(plan);
  shw_load_planner_release(planner);
  shw_load_planner_release(later);
  shw_checkpoint_release(checkpoint);
  shw_checkpoint_release(newer);
  shw_state_release(state);
  shw_context_release(fixture.context);
}

static void doubled_and_broken_metadata_is_refused(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  const uint64_t twice[] = {0, 1, 2, 3, 4}, bad[] = {0, 1, 2};
  options.metadata = "a1a2";
  options.metadata_offsets = twice;
  options.metadata_count = 2;
  CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_ALREADY_EXISTS,
              "key 'a' twice");
  options.metadata = "a\xFF";
  options.metadata_offsets = bad;
  options.metadata_count = 1;
  CHECK_FAILS(try_save(fixture.context, fixture.path, &options, &error), SHW_INVALID_ARGUMENT,
              "UTF-8");
  shw_context_release(fixture.context);
}

static void a_dead_rank_ends_the_save_of_the_others(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  if (rank->rank == 1) return; /* never calls; its collective goes */
  shw_context* context = make_context();
  shw_state* state = make_state();
  add_rows(state, rank->rank, rank->rank * 2, 2);
  CHECK_FAILS(shw_save(context, state, NULL, rank->user, rank->collective, NULL, &report, &error),
              SHW_ABORTED, "rank 1");
  shw_state_release(state);
  shw_context_release(context);
}
static void a_dead_rank_ends_the_save(void) {
  char path[300];
  snprintf(path, sizeof(path), "%s/c", scratch_directory());
  run_ranks(2, a_dead_rank_ends_the_save_of_the_others, path);
}

/* Root may write anywhere, so it becomes somebody else for the files it touches; threads that are
 * made meanwhile are so too. */
static void become_nobody_with(const char* directory) {
  enum { NOBODY = 65534 };
  if (geteuid() != 0) return;
  CHECK(chown(directory, NOBODY, (gid_t)-1) == 0);
  (void)setfsuid(NOBODY);
  CHECK_INT(setfsuid(NOBODY), NOBODY);
}

static void read_only_directories_are_told(void) {
  shw_error* error = NULL;
  const char* directory = scratch_directory();
  const char* path = path_in(directory, "c");
  become_nobody_with(directory);
  shw_context* context = make_context();
  CHECK_OK(try_save(context, path, NULL, &error)); /* may be written until it is made read-only */
  CHECK(chmod(path, 0500) == 0 && chmod(directory, 0500) == 0);
  char number[12];
  snprintf(number, sizeof(number), "%d", EACCES);
  CHECK_FAILS_WITH(try_save(context, path, NULL, &error), SHW_PERMISSION_DENIED, path, "errno",
                   number);
  CHECK_FAILS_WITH(try_save(context, path_in(directory, "d"), NULL, &error), SHW_PERMISSION_DENIED,
                   directory, "errno", number);
  shw_checkpoint_release(open_at(context, path));
  CHECK(chmod(path, 0700) == 0 && chmod(directory, 0700) == 0);
  shw_context_release(context);
  (void)setfsuid(geteuid());
}

/* With one file more in every turn, each step of a save runs out of files once. */
static void too_many_open_files_lose_nothing(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  struct rlimit old, few;
  int failures = 0;
  CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
  const int first_free = dup(0);
  CHECK(first_free > 0 && close(first_free) == 0);
  shw_status status = SHW_RESOURCE_EXHAUSTED;
  for (int more = 0; status != SHW_OK; ++more) {
    CHECK(more < 64);
    few = old;
    few.rlim_cur = (rlim_t)(first_free + more);
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    status = try_save(fixture.context, fixture.path, NULL, &error);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    if (status != SHW_OK) {
      CHECK_INT(status, SHW_RESOURCE_EXHAUSTED);
      CHECK_TEXT(error_detail(error, "resource"), "file_descriptors");
      CHECK(strstr(shw_error_message(error, NULL), fixture.path) != NULL);
      ++failures;
    }
    shw_error_release(error);
    error = NULL;
    CHECK_OK(try_verify(&fixture, &error));
  }
  CHECK(failures > 0);
  shw_context_release(fixture.context);
}

TEST_MAIN(TEST_ENTRY(unknown_option_values_are_refused),
          TEST_ENTRY(ranks_that_disagree_all_get_the_same_error),
          TEST_ENTRY(what_differs_from_the_stored_is_refused),
          TEST_ENTRY(a_cast_must_be_allowed_and_is_reported),
          TEST_ENTRY(paths_without_a_checkpoint_are_told_apart),
          TEST_ENTRY(an_existing_checkpoint_can_be_protected),
          TEST_ENTRY(damage_of_every_file_is_found), TEST_ENTRY(flipped_payload_is_found_on_read),
          TEST_ENTRY(links_inside_a_generation_are_unsafe),
          TEST_ENTRY(a_file_that_may_not_grow_leaves_the_old_checkpoint),
          TEST_ENTRY(a_plan_of_another_checkpoint_is_refused),
          TEST_ENTRY(doubled_and_broken_metadata_is_refused), TEST_ENTRY(a_dead_rank_ends_the_save),
          TEST_ENTRY(read_only_directories_are_told), TEST_ENTRY(too_many_open_files_lose_nothing))
