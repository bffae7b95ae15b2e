/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of reports: what is counted as payload, and that save, load and verification agree. */
#include "support/scratch.h"
#include "support/states.h"

enum { WEIGHT = 24 * 4, BIAS = 3 * 4, OBJECT = 7, PAYLOAD = WEIGHT + BIAS + OBJECT };
static float weight[24];
static float bias[3] = {7, 8, 9};

static shw_state* make_all(void) {
  shw_state* state = make_state();
  add_floats(state, "weight", weight, SHAPE(4, 6), 2);
  add_floats(state, "bias", bias, SHAPE(3), 1);
  add_object(state, "config", "application/json", "{\"a\":1}");
  return state;
}

static shw_report_summary figures(shw_report* report) {
  shw_error* error = NULL;
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  CHECK_OK(shw_report_summarize(report, &summary, &error));
  shw_report_release(report);
  CHECK_INT(summary.file_count, 1);
  CHECK_INT(summary.bytes_total, PAYLOAD); /* no header, no index, no padding, no manifest */
  return summary;
}

/* A context, a path and what a save at it reported. */
struct fixture {
  shw_context* context;
  const char* path;
  shw_report_summary saved;
};
static struct fixture begin(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  struct fixture fixture = {make_context(), path_in(scratch_directory(), "c"), {0}};
  shw_state* state = make_all();
  CHECK_OK(shw_save(fixture.context, state, NULL, fixture.path, NULL, NULL, &report, &error));
  fixture.saved = figures(report);
  shw_state_release(state);
  return fixture;
}

static void a_save_counts_what_it_stores(void) {
  const struct fixture fixture = begin();
  CHECK_INT(fixture.saved.tensor_count, 2);
  CHECK_INT(fixture.saved.object_count, 1);
  CHECK_INT(fixture.saved.chunk_count, 2);
  CHECK_INT(fixture.saved.bytes, PAYLOAD);
  CHECK_INT(fixture.saved.bytes_over_read, 0);
  CHECK(fixture.saved.plan_ns > 0 && fixture.saved.transfer_ns > 0 && fixture.saved.commit_ns > 0);
  CHECK(fixture.saved.sync_ns > 0 && fixture.saved.stage_ns == 0); /* nothing is staged */
  CHECK(fixture.saved.elapsed_ns >= fixture.saved.transfer_ns + fixture.saved.sync_ns);
  shw_context_release(fixture.context);
}

static void a_job_tells_how_long_it_staged(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_state* state = make_all();
  shw_job* job = NULL;
  shw_report* report = NULL;
  const char* path = path_in(scratch_directory(), "c");
  CHECK_OK(shw_save_async(context, state, NULL, path, NULL, NULL, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  CHECK_OK(shw_job_report(job, &report, &error));
  const shw_report_summary summary = figures(report);
  CHECK(summary.stage_ns > 0);
  CHECK(summary.elapsed_ns >= summary.stage_ns + summary.transfer_ns + summary.sync_ns);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void a_load_counts_what_it_reads(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  const struct fixture fixture = begin();
  shw_state* state = make_all();
  CHECK_OK(shw_load(fixture.context, state, NULL, fixture.path, NULL, NULL, &report, &error));
  shw_report_summary loaded = figures(report);
  CHECK_INT(loaded.bytes - loaded.bytes_over_read, PAYLOAD);
  CHECK(loaded.plan_ns > 0 && loaded.transfer_ns > 0);
  shw_state_release(state);
  state = make_state();
  add_floats(state, "bias", bias, SHAPE(3), 1);
  CHECK_OK(shw_load(fixture.context, state, NULL, fixture.path, NULL, NULL, &report, &error));
  loaded = figures(report);
  CHECK_INT(loaded.bytes - loaded.bytes_over_read, BIAS);
  CHECK_INT(loaded.tensor_count, 1);
  shw_state_release(state);
  shw_context_release(fixture.context);
}

static void reads_and_verifications_know_the_whole(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  const struct fixture fixture = begin();
  shw_checkpoint* checkpoint = open_at(fixture.context, fixture.path);
  CHECK_OK(shw_checkpoint_verify(checkpoint, 0, &report, &error));
  CHECK_INT(figures(report).bytes, 0); /* payload not read */
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  CHECK(figures(report).bytes >= PAYLOAD);
  const uint64_t index = tensor_number(checkpoint, "weight");
  float row[6];
  const shw_tensor target = float_tensor(row, SHAPE(1, 6), 2);
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  batch.count = 1;
  batch.tensors = &index;
  batch.targets = &target;
  batch.box_offsets = SHAPE(2, 0);
  batch.box_sizes = SHAPE(1, 6);
  CHECK_OK(shw_checkpoint_read_boxes(checkpoint, &batch, &report, &error));
  const shw_report_summary read = figures(report);
  CHECK_INT(read.bytes - read.bytes_over_read, sizeof(row));
  CHECK(read.bytes_over_read > 0); /* the rest of the digest block */
  shw_checkpoint_release(checkpoint);
  shw_context_release(fixture.context);
}

TEST_MAIN(TEST_ENTRY(a_save_counts_what_it_stores), TEST_ENTRY(a_job_tells_how_long_it_staged),
          TEST_ENTRY(a_load_counts_what_it_reads),
          TEST_ENTRY(reads_and_verifications_know_the_whole))
