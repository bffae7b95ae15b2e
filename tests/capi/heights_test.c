/* SPDX-License-Identifier: Apache-2.0
 *
 * The same workflow at three heights: plans that the host moves, one call with a collective, jobs.
 * Four ranks save a tensor of 10 x 6 split by rows (unevenly), a replica and a rank-local entry;
 * other numbers of ranks load it. */
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { ROWS = 10, COLUMNS = 6 };

struct rank_data {
  float rows[ROWS * COLUMNS];
  float replica[4];
  float local[2];
};

/* Rows of a rank when `size` ranks share ROWS, as torch.chunk splits. */
static void row_range(int32_t rank, int32_t size, int64_t* begin, int64_t* count) {
  const int64_t chunk = (ROWS + size - 1) / size;
  *begin = rank * chunk < ROWS ? rank * chunk : ROWS;
  const int64_t end = *begin + chunk < ROWS ? *begin + chunk : ROWS;
  *count = end - *begin;
}

static void fill(struct rank_data* data, int32_t rank, int32_t size) {
  int64_t begin = 0, count = 0;
  row_range(rank, size, &begin, &count);
  memset(data, 0, sizeof(*data));
  for (int64_t i = 0; i < count * COLUMNS; ++i) data->rows[i] = (float)(begin * COLUMNS + i);
  for (int i = 0; i < 4; ++i) data->replica[i] = (float)(100 + i);
  for (int i = 0; i < 2; ++i) data->local[i] = (float)(1000 * rank + i);
}

static shw_state* state_of(struct rank_data* data, int32_t rank, int32_t size, int with_local) {
  shw_error* error = NULL;
  shw_state* state = make_state();
  int64_t begin = 0, count = 0;
  row_range(rank, size, &begin, &count);
  const int64_t global[] = {ROWS, COLUMNS}, offsets[] = {begin, 0}, sizes[] = {count, COLUMNS};
  const struct shard shard = {"model.weight", data->rows, global, offsets, sizes, 2};
  add_shard(state, &shard);
  add_floats(state, "model.bias", data->replica, SHAPE(4), 1);
  add_object(state, "config", "application/json", "{\"a\":1}");
  if (!with_local) return state;
  const shw_tensor tensor = float_tensor(data->local, SHAPE(2), 1);
  CHECK_OK(shw_state_add_tensor(state, "rng.state", 9, &tensor, NULL, NULL, SHW_KIND_RANK_LOCAL,
                                &error));
  return state;
}

static void check_loaded(const struct rank_data* loaded, int32_t rank, int32_t size) {
  struct rank_data wanted;
  fill(&wanted, rank, size);
  CHECK(memcmp(loaded->rows, wanted.rows, sizeof(wanted.rows)) == 0);
  CHECK(memcmp(loaded->replica, wanted.replica, sizeof(wanted.replica)) == 0);
}

/* What a preset saves it loads, whoever wrote the replica. */
static void round_trip(int32_t preset) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  struct rank_data data, loaded;
  shw_save_options save = SHW_SAVE_OPTIONS_INIT;
  shw_load_options load = SHW_LOAD_OPTIONS_INIT;
  save.preset = load.preset = preset;
  save.owner = SHW_OWNER_EXACT;
  shw_context* context = make_context();
  const char* path = path_in(scratch_directory(), "c");
  fill(&data, 0, 1);
  shw_state* state = state_of(&data, 0, 1, 1);
  CHECK_OK(shw_save(context, state, NULL, path, NULL, &save, &report, &error));
  shw_report_release(report);
  report = NULL;
  memset(&loaded, 0, sizeof(loaded));
  shw_state* target = state_of(&loaded, 0, 1, 0);
  CHECK_OK(shw_load(context, target, NULL, path, NULL, &load, &report, &error));
  check_loaded(&loaded, 0, 1);
  shw_report_release(report);
  shw_state_release(target);
  shw_state_release(state);
  shw_context_release(context);
}

static void every_preset_saves_and_loads(void) {
  for (int32_t preset = SHW_PRESET_NATIVE; preset <= SHW_PRESET_MEGATRON; ++preset)
    round_trip(preset);
}

/* One call, every rank of a group. */
static void save_one_call(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  struct rank_data data;
  fill(&data, rank->rank, rank->size);
  shw_context* context = make_context();
  shw_state* state = state_of(&data, rank->rank, rank->size, 1);
  CHECK_OK(shw_save(context, state, NULL, rank->user, rank->collective, NULL, &report, &error));
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  CHECK_OK(shw_report_summarize(report, &summary, &error));
  CHECK(summary.bytes_total >= ROWS * COLUMNS * 4);
  CHECK_INT(summary.flags, 0);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void load_one_call(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  struct rank_data data;
  memset(&data, 0, sizeof(data));
  shw_context* context = make_context();
  shw_state* state = state_of(&data, rank->rank, rank->size, 0);
  CHECK_OK(shw_load(context, state, NULL, rank->user, rank->collective, NULL, &report, &error));
  check_loaded(&data, rank->rank, rank->size);
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_MISSING), 0);
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_LOADED), 3);
  uint64_t size = 0;
  CHECK(memcmp(shw_state_object_data(state, 0, &size), "{\"a\":1}", 7) == 0 && size == 7);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void one_call_reshards(void) {
  char path[256];
  snprintf(path, sizeof(path), "%s/run", scratch_directory());
  run_ranks(4, save_one_call, path);
  run_ranks(3, load_one_call, path);
  run_ranks(1, load_one_call, path);
  run_ranks(16, load_one_call, path); /* more ranks than rows: some hold nothing */
}

/* Height 1 in one thread: the host moves every buffer itself. */
enum { RANKS = 4 };
struct host {
  shw_context* context;
  struct rank_data data[RANKS];
  shw_state* states[RANKS];
  shw_save_planner* planners[RANKS];
  const char* path;
};

/* Joins buffers to one blob, as an all-gather does. */
struct blob {
  uint8_t bytes[65536];
  uint64_t offsets[RANKS + 1];
};
static void append(struct blob* blob, int rank, shw_buffer* buffer) {
  const uint64_t size = shw_buffer_size(buffer);
  if (rank == 0) blob->offsets[0] = 0;
  CHECK(blob->offsets[rank] + size <= sizeof(blob->bytes));
  memcpy(blob->bytes + blob->offsets[rank], shw_buffer_data(buffer), size);
  blob->offsets[rank + 1] = blob->offsets[rank] + size;
  shw_buffer_release(buffer);
}

static void start_host(struct host* host) {
  shw_error* error = NULL;
  host->context = make_context();
  host->path = path_in(scratch_directory(), "planned");
  for (int rank = 0; rank < RANKS; ++rank) {
    fill(&host->data[rank], rank, RANKS);
    host->states[rank] = state_of(&host->data[rank], rank, RANKS, 1);
    CHECK_OK(shw_save_planner_create(host->context, host->states[rank], rank, RANKS, NULL,
                                     &host->planners[rank], &error));
  }
}

static void stop_host(struct host* host) {
  for (int rank = 0; rank < RANKS; ++rank) {
    shw_save_planner_release(host->planners[rank]);
    shw_state_release(host->states[rank]);
  }
  shw_context_release(host->context);
}

static shw_buffer* make_global_plan(struct host* host) {
  static struct blob locals;
  shw_error* error = NULL;
  shw_buffer* global = NULL;
  for (int rank = 0; rank < RANKS; ++rank) {
    shw_buffer* local = NULL;
    CHECK_OK(shw_save_planner_local_plan(host->planners[rank], &local, &error));
    append(&locals, rank, local);
  }
  CHECK_OK(shw_save_planner_global_plan(host->planners[0], NULL, host->path, locals.bytes,
                                        locals.offsets, RANKS, &global, &error));
  CHECK_INT(shw_buffer_part_count(global), RANKS);
  return global;
}

/* Writes all files; the results lie in `results`. */
static void execute_all(struct host* host, shw_buffer* global, struct blob* results) {
  shw_error* error = NULL;
  for (int rank = 0; rank < RANKS; ++rank) {
    const uint64_t part = (uint64_t)rank;
    shw_plan* plan = NULL;
    shw_buffer* result = NULL;
    CHECK_OK(shw_save_planner_finish(host->planners[rank], shw_buffer_part_data(global, part),
                                     shw_buffer_part_size(global, part), &plan, &error));
    CHECK_INT(shw_plan_kind(plan), SHW_PLAN_WRITE_LIST);
    CHECK_INT(shw_plan_rank(plan), rank);
    CHECK(shw_plan_item_count(plan) >= 1);
    CHECK_OK(shw_save_execute(host->planners[rank], plan, NULL, host->path, &result, &error));
    append(results, rank, result);
    shw_plan_release(plan);
  }
}

static void check_planner_load(struct host* host) {
  shw_error* error = NULL;
  shw_checkpoint* checkpoint = open_at(host->context, host->path);
  CHECK_INT(shw_checkpoint_world_size(checkpoint), RANKS);
  for (int32_t rank = 0; rank < 3; ++rank) {
    struct rank_data loaded;
    memset(&loaded, 0, sizeof(loaded));
    shw_state* state = state_of(&loaded, rank, 3, 1);
    shw_load_planner* planner = NULL;
    shw_plan* plan = NULL;
    shw_report* report = NULL;
    CHECK_OK(shw_load_planner_create(checkpoint, state, rank, NULL, &planner, &error));
    CHECK_OK(shw_load_planner_local_plan(planner, &plan, &error));
    CHECK_INT(shw_plan_kind(plan), SHW_PLAN_LOAD);
    CHECK_OK(shw_load_execute(planner, plan, &report, &error));
    check_loaded(&loaded, rank, 3);
    CHECK(loaded.local[0] == (float)(1000 * rank)); /* rank-local entries come back by rank */
    shw_report_release(report);
    shw_plan_release(plan);
    shw_load_planner_release(planner);
    shw_state_release(state);
  }
  shw_checkpoint_release(checkpoint);
}

static void plans_are_moved_by_the_host(void) {
  static struct blob results;
  struct host host;
  shw_error* error = NULL;
  shw_report* report = NULL;
  start_host(&host);
  shw_buffer* global = make_global_plan(&host);
  execute_all(&host, global, &results);
  CHECK(!exists(path_in(host.path, "manifest.shw")));
  CHECK_OK(
      shw_save_commit(host.planners[0], results.bytes, results.offsets, RANKS, &report, &error));
  shw_report_release(report);
  shw_buffer_release(global);
  check_planner_load(&host);
  stop_host(&host);
}

static void a_rank_without_result_fails_the_commit(void) {
  static struct blob results;
  struct host host;
  shw_error* error = NULL;
  shw_report* report = NULL;
  start_host(&host);
  shw_buffer* global = make_global_plan(&host);
  execute_all(&host, global, &results);
  const uint64_t lost = results.offsets[3] - results.offsets[2]; /* rank 2 gave nothing */
  memmove(results.bytes + results.offsets[2], results.bytes + results.offsets[3],
          results.offsets[4] - results.offsets[3]);
  results.offsets[3] = results.offsets[2];
  results.offsets[4] -= lost;
  CHECK_FAILS(
      shw_save_commit(host.planners[0], results.bytes, results.offsets, RANKS, &report, &error),
      SHW_ABORTED, "rank 2");
  CHECK(!exists(path_in(host.path, "manifest.shw")));
  shw_buffer_release(global);
  stop_host(&host);
}

static void plans_of_another_rank_or_order_are_refused(void) {
  static struct blob results;
  struct host host;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_plan* plan = NULL;
  shw_buffer* result = NULL;
  start_host(&host);
  CHECK_FAILS(shw_save_commit(host.planners[0], "", (const uint64_t[]){0, 0, 0, 0, 0}, RANKS,
                              &report, &error),
              SHW_FAILED_PRECONDITION, "global_plan");
  shw_buffer* global = make_global_plan(&host);
  CHECK_FAILS(shw_save_planner_finish(host.planners[1], shw_buffer_part_data(global, 0),
                                      shw_buffer_part_size(global, 0), &plan, &error),
              SHW_FAILED_PRECONDITION, "rank 0 of 4 came to rank 1");
  CHECK_OK(shw_plan_create(shw_buffer_part_data(global, 1), shw_buffer_part_size(global, 1), &plan,
                           &error));
  CHECK_FAILS(shw_save_execute(host.planners[1], plan, NULL, host.path, &result, &error),
              SHW_FAILED_PRECONDITION, "not the one that this planner has finished");
  CHECK(result == NULL && report == NULL);
  shw_plan_release(plan);
  shw_buffer_release(global);
  stop_host(&host);
  (void)results;
}

/* Jobs on every rank. */
static void save_job(struct rank* rank) {
  shw_error* error = NULL;
  shw_job* job = NULL;
  struct rank_data data;
  fill(&data, rank->rank, rank->size);
  shw_context* context = make_context();
  shw_state* state = state_of(&data, rank->rank, rank->size, 1);
  CHECK_OK(shw_save_async(context, state, NULL, rank->user, rank->collective, NULL, &job, &error));
  CHECK_OK(shw_job_wait_staged(job, -1, &error));
  memset(&data, 0xFF, sizeof(data)); /* the tensors are ours again */
  CHECK_OK(shw_job_wait(job, -1, &error));
  CHECK_INT(shw_job_poll(job), SHW_JOB_SUCCEEDED);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void load_job(struct rank* rank) {
  shw_error* error = NULL;
  shw_job* job = NULL;
  shw_report* report = NULL;
  struct rank_data data;
  memset(&data, 0, sizeof(data));
  shw_context* context = make_context();
  shw_state* state = state_of(&data, rank->rank, rank->size, 0);
  CHECK_OK(shw_load_async(context, state, NULL, rank->user, rank->collective, NULL, &job, &error));
  CHECK_OK(shw_job_wait(job, -1, &error));
  CHECK_OK(shw_job_report(job, &report, &error));
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_LOADED), 3);
  check_loaded(&data, rank->rank, rank->size);
  shw_report_release(report);
  shw_job_release(job);
  shw_state_release(state);
  shw_context_release(context);
}

static void jobs_reshard(void) {
  char path[256];
  snprintf(path, sizeof(path), "%s/run", scratch_directory());
  run_ranks(4, save_job, path);
  run_ranks(2, load_job, path);
}

TEST_MAIN(TEST_ENTRY(one_call_reshards), TEST_ENTRY(plans_are_moved_by_the_host),
          TEST_ENTRY(a_rank_without_result_fails_the_commit),
          TEST_ENTRY(plans_of_another_rank_or_order_are_refused), TEST_ENTRY(jobs_reshard),
          TEST_ENTRY(every_preset_saves_and_loads))
