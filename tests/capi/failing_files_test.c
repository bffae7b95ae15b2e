/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the operating system that fail, and what a save of two ranks makes of it: the status of
 * the table on both, which rank, which file, the number of the error and what ran out; the old
 * checkpoint stays, and nothing else. */
#include <errno.h>
#include <pthread.h>

#include "../crash/victim/seam.h"
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { RANKS = 2, FLOATS = 64 };

struct failure {
  uint32_t step;
  int number;
  shw_status status;
  const char* resource; /* "" = the error has none */
};

struct save {
  const char* path;
  const struct failure* failure; /* NULL = none */
};

static void check_failure(const shw_error* error, const struct failure* failure) {
  char number[12];
  snprintf(number, sizeof(number), "%d", failure->number);
  CHECK_TEXT(error_detail(error, "errno"), number);
  CHECK_TEXT(error_detail(error, "resource"), failure->resource);
  CHECK_TEXT(error_detail(error, "rank"), "1");
}

static void save_half(struct rank* rank) {
  const struct save* save = rank->user;
  float values[FLOATS];
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  for (int i = 0; i < FLOATS; ++i) values[i] = (float)(rank->rank * FLOATS + i);
  const struct shard half = {
      "w", values, SHAPE(RANKS * FLOATS), SHAPE(rank->rank * FLOATS), SHAPE(FLOATS), 1};
  add_shard(state, &half);
  const shw_status status =
      shw_save(context, state, NULL, save->path, rank->collective, NULL, &report, &error);
  if (save->failure == NULL) {
    CHECK_OK(status);
  } else {
    if (error != NULL) check_failure(error, save->failure);
    CHECK_FAILS(status, save->failure->status, "rank-00001.shw");
  }
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void the_status_of_a_failing_rank_comes_out_on_all(void) {
  static const struct failure failures[] = {
      {SEAM_WRITE, EDQUOT, SHW_RESOURCE_EXHAUSTED, "quota"},
      {SEAM_WRITE, ENOSPC, SHW_RESOURCE_EXHAUSTED, "disk"},
      {SEAM_CREATE, ENFILE, SHW_RESOURCE_EXHAUSTED, "file_descriptors"},
      {SEAM_CREATE, EROFS, SHW_PERMISSION_DENIED, ""},
      {SEAM_SYNC_FILE, EIO, SHW_DATA_LOSS, ""},
      {SEAM_WRITE, ESTALE, SHW_UNAVAILABLE, ""},
  };
  const struct seam_plan nothing = {.log = -1};
  shw_context* context = make_context();
  struct save save = {path_in(scratch_directory(), "c"), NULL};
  run_ranks(RANKS, save_half, &save);
  for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); ++i) {
    const struct seam_plan plan = {.log = -1,
                                   .fail_kind = failures[i].step,
                                   .fail_part = "rank-00001",
                                   .fail_errno = failures[i].number};
    printf("%s\n", strerror(failures[i].number));
    save.failure = &failures[i];
    seam_begin(&plan);
    run_ranks(RANKS, save_half, &save);
    seam_begin(&nothing);
    shw_error* error = NULL;
    shw_report* report = NULL;
    shw_checkpoint* checkpoint = open_at(context, save.path);
    CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
    shw_report_release(report);
    shw_checkpoint_release(checkpoint);
  }
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(the_status_of_a_failing_rank_comes_out_on_all))
