/* SPDX-License-Identifier: Apache-2.0
 *
 * A path that names its place by a scheme, without a storage for it: refused by every call, and no
 * folder of that name appears. */
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

static const char* const schemes[] = {"s3://bucket/x", "gs://b", "file:///tmp/x", "a+b-c.1://x"};
enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

static float values[2] = {1, 2};

static shw_state* one_tensor(void) {
  shw_state* state = make_state();
  add_floats(state, "w", values, SHAPE(2), 1);
  return state;
}

static void check_nothing_is_made(void) {
  CHECK(!exists("s3:") && !exists("gs:") && !exists("file:") && !exists("a+b-c.1:"));
}

static void saves_and_loads_refuse_a_scheme_without_a_storage(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_job* job = NULL;
  shw_context* context = make_context();
  shw_state* state = one_tensor();
  CHECK(chdir(scratch_directory()) == 0);
  for (int i = 0; i < SCHEMES; ++i) {
    const char* path = schemes[i];
    CHECK_FAILS(shw_save(context, state, NULL, path, NULL, NULL, &report, &error),
                SHW_UNIMPLEMENTED, path);
    CHECK_FAILS(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error),
                SHW_UNIMPLEMENTED, path);
    CHECK_FAILS(shw_load(context, state, NULL, path, NULL, NULL, &report, &error),
                SHW_UNIMPLEMENTED, path);
    CHECK_FAILS(shw_load_async(context, state, NULL, path, NULL, NULL, &job, &error),
                SHW_UNIMPLEMENTED, path);
  }
  check_nothing_is_made();
  shw_state_release(state);
  shw_context_release(context);
}

static void other_calls_refuse_a_scheme_without_a_storage(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_buffer* buffer = NULL;
  shw_checkpoint* checkpoint = NULL;
  shw_storage* storage = NULL;
  shw_context* context = make_context();
  CHECK(chdir(scratch_directory()) == 0);
  for (int i = 0; i < SCHEMES; ++i) {
    const char* path = schemes[i];
    CHECK_FAILS(shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error),
                SHW_UNIMPLEMENTED, path);
    CHECK_FAILS(shw_checkpoint_gc(context, NULL, path, 0, SHW_GC_APPLY, &report, &error),
                SHW_UNIMPLEMENTED, path);
    CHECK_FAILS(shw_checkpoint_list_steps(context, NULL, path, &buffer, &error), SHW_UNIMPLEMENTED,
                path);
    CHECK_FAILS(shw_checkpoint_latest(context, NULL, path, &buffer, &error), SHW_UNIMPLEMENTED,
                path);
    CHECK_FAILS(shw_storage_create_posix(path, &storage, &error), SHW_UNIMPLEMENTED, path);
  }
  check_nothing_is_made();
  shw_context_release(context);
}

static void planners_refuse_a_scheme_without_a_storage(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = one_tensor();
  shw_save_planner* planner = NULL;
  shw_buffer* local = NULL;
  shw_buffer* global = NULL;
  CHECK(chdir(scratch_directory()) == 0);
  CHECK_OK(shw_save_planner_create(context, state, 0, 1, NULL, &planner, &error));
  CHECK_OK(shw_save_planner_local_plan(planner, &local, &error));
  const uint64_t offsets[2] = {0, shw_buffer_size(local)};
  CHECK_FAILS(shw_save_planner_global_plan(planner, NULL, "s3://bucket/x", shw_buffer_data(local),
                                           offsets, 1, &global, &error),
              SHW_UNIMPLEMENTED, "s3://");
  check_nothing_is_made();
  shw_buffer_release(local);
  shw_save_planner_release(planner);
  shw_state_release(state);
  shw_context_release(context);
}

/* Names that only look alike are paths. */
static void other_names_with_colons_are_paths(void) {
  static const char* const paths[] = {"s3:", "a:b/c", "://x", "1s://x", "./s3://x", "a/b://c"};
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = NULL;
  CHECK(chdir(scratch_directory()) == 0);
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); ++i) {
    CHECK_FAILS(shw_checkpoint_open(context, NULL, paths[i], NULL, &checkpoint, &error),
                SHW_NOT_FOUND, "no checkpoint");
  }
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(saves_and_loads_refuse_a_scheme_without_a_storage),
          TEST_ENTRY(other_calls_refuse_a_scheme_without_a_storage),
          TEST_ENTRY(planners_refuse_a_scheme_without_a_storage),
          TEST_ENTRY(other_names_with_colons_are_paths))
