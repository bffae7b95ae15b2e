/* SPDX-License-Identifier: Apache-2.0
 *
 * Three ranks in one process whose host moves plans and blocks: a checkpoint that was saved in rows
 * is loaded in columns, and a replica, with each stored byte read once. */
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { RANKS = 3, ROWS = 1024, COLUMNS = 3 * 1024, WIDTH = COLUMNS / RANKS, REPLICA = 1 << 20 };

static float value_at(int64_t row, int64_t column) {
  return (float)(row * COLUMNS + column);
}

static void save_rows(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  const int64_t begin = ROWS * rank->rank / RANKS, end = ROWS * (rank->rank + 1) / RANKS;
  float* rows = calloc((size_t)(end - begin) * COLUMNS, sizeof(float));
  float* replica = calloc(REPLICA, sizeof(float));
  CHECK(rows != NULL && replica != NULL);
  for (int64_t i = 0; i < (end - begin) * COLUMNS; ++i) rows[i] = value_at(begin, i);
  for (int64_t i = 0; i < REPLICA; ++i) replica[i] = (float)(-i);
  const int64_t global[] = {ROWS, COLUMNS}, offsets[] = {begin, 0},
                sizes[] = {end - begin, COLUMNS};
  const struct shard shard = {"w", rows, global, offsets, sizes, 2};
  add_shard(state, &shard);
  add_floats(state, "r", replica, SHAPE(REPLICA), 1);
  CHECK_OK(shw_save(context, state, NULL, rank->user, rank->collective, NULL, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
  free(rows);
  free(replica);
}

/* One rank of the load, and the host of all. */
struct loader {
  float* columns;
  float* replica;
  shw_context* context;
  shw_checkpoint* checkpoint;
  shw_state* state;
  shw_load_planner* planner;
  shw_plan* plan;
  shw_load_exchange* exchange;
};
struct host {
  struct loader loaders[RANKS];
  const shw_plan* wants[RANKS];
  shw_plan* plans[RANKS];
};

static const char* saved_path(void) {
  static char path[256];
  if (*path == '\0') {
    snprintf(path, sizeof(path), "%s/run", scratch_directory());
    run_ranks(RANKS, save_rows, path);
  }
  return path;
}

static void start_loader(struct loader* loader, int32_t rank, const shw_load_options* options) {
  shw_error* error = NULL;
  loader->columns = calloc((size_t)ROWS * WIDTH, sizeof(float));
  loader->replica = calloc(REPLICA, sizeof(float));
  CHECK(loader->columns != NULL && loader->replica != NULL);
  loader->context = make_context();
  loader->checkpoint = open_at(loader->context, saved_path());
  loader->state = make_state();
  const int64_t global[] = {ROWS, COLUMNS}, offsets[] = {0, rank * WIDTH}, sizes[] = {ROWS, WIDTH};
  const struct shard shard = {"w", loader->columns, global, offsets, sizes, 2};
  add_shard(loader->state, &shard);
  add_floats(loader->state, "r", loader->replica, SHAPE(REPLICA), 1);
  CHECK_OK(shw_load_planner_create(loader->checkpoint, loader->state, rank, options,
                                   &loader->planner, &error));
  CHECK_OK(shw_load_planner_local_plan(loader->planner, &loader->plan, &error));
}

static void start_host(struct host* host, const shw_load_options* options) {
  shw_error* error = NULL;
  memset(host, 0, sizeof(*host));
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    struct loader* loader = &host->loaders[rank];
    shw_plan* wants = NULL;
    start_loader(loader, rank, options);
    CHECK_OK(shw_load_planner_want_list(loader->planner, loader->plan, RANKS, &wants, &error));
    CHECK_INT(shw_plan_kind(wants), SHW_PLAN_WANT_LIST);
    CHECK_INT(shw_plan_rank(wants), rank);
    host->wants[rank] = wants;
  }
  CHECK_OK(shw_exchange_plans(host->wants, RANKS, host->plans, &error));
  for (int32_t rank = 0; rank < RANKS; ++rank) {
    CHECK_INT(shw_plan_kind(host->plans[rank]), SHW_PLAN_EXCHANGE);
    CHECK_INT(shw_plan_rank(host->plans[rank]), rank);
  }
}

static void begin_exchanges(struct host* host) {
  shw_error* error = NULL;
  for (int rank = 0; rank < RANKS; ++rank) {
    struct loader* loader = &host->loaders[rank];
    CHECK_OK(shw_load_exchange_create(loader->planner, loader->plan, host->plans[rank],
                                      &loader->exchange, &error));
    CHECK(shw_load_exchange_round_count(loader->exchange) > 0);
    CHECK_INT(shw_load_exchange_round_count(loader->exchange),
              shw_load_exchange_round_count(host->loaders[0].exchange));
  }
}

/* Everything but exchanges, which keep what they need. */
static void release_handles(struct host* host) {
  for (int rank = 0; rank < RANKS; ++rank) {
    struct loader* loader = &host->loaders[rank];
    shw_plan_release((shw_plan*)(uintptr_t)host->wants[rank]);
    shw_plan_release(host->plans[rank]);
    shw_plan_release(loader->plan);
    shw_load_planner_release(loader->planner);
    shw_state_release(loader->state);
    shw_checkpoint_release(loader->checkpoint);
    shw_context_release(loader->context);
  }
}

static void release_exchanges(struct host* host) {
  for (int rank = 0; rank < RANKS; ++rank) {
    shw_load_exchange_release(host->loaders[rank].exchange);
    free(host->loaders[rank].columns);
    free(host->loaders[rank].replica);
  }
}

static uint64_t sum(const uint64_t* sizes, uint64_t count) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) total += sizes[i];
  return total;
}

/* What a transport of the host would do. */
static void move_bytes(const shw_exchange_round* rounds) {
  for (uint64_t to = 0; to < RANKS; ++to) {
    uint8_t* at = rounds[to].incoming;
    CHECK_INT(rounds[to].rank_count, RANKS);
    CHECK_INT(sum(rounds[to].incoming_sizes, RANKS), rounds[to].incoming_size);
    CHECK_INT(sum(rounds[to].outgoing_sizes, RANKS), rounds[to].outgoing_size);
    for (uint64_t from = 0; from < RANKS; ++from) {
      const uint64_t size = rounds[from].outgoing_sizes[to];
      const uint8_t* outgoing = rounds[from].outgoing;
      CHECK_INT(rounds[to].incoming_sizes[from], size);
      if (size == 0) continue;
      memcpy(at, outgoing + sum(rounds[from].outgoing_sizes, to), size);
      at += size;
    }
  }
}

static void begin_all(struct host* host, shw_exchange_round* rounds) {
  shw_error* error = NULL;
  for (int rank = 0; rank < RANKS; ++rank) {
    shw_exchange_round_init(&rounds[rank], sizeof(rounds[rank]));
    CHECK_OK(shw_load_exchange_begin_round(host->loaders[rank].exchange, &rounds[rank], &error));
  }
}

static void end_all(struct host* host) {
  shw_error* error = NULL;
  for (int rank = 0; rank < RANKS; ++rank)
    CHECK_OK(shw_load_exchange_end_round(host->loaders[rank].exchange, &error));
}

static void move_all(struct host* host) {
  shw_exchange_round rounds[RANKS];
  const uint64_t count = shw_load_exchange_round_count(host->loaders[0].exchange);
  for (uint64_t round = 0; round < count; ++round) {
    begin_all(host, rounds);
    move_bytes(rounds);
    end_all(host);
  }
}

static void check_loaded(const struct loader* loader, int rank) {
  for (int64_t row = 0; row < ROWS; ++row) {
    for (int64_t column = 0; column < WIDTH; ++column)
      CHECK(loader->columns[row * WIDTH + column] == value_at(row, rank * WIDTH + column));
  }
  for (int64_t i = 0; i < REPLICA; ++i) CHECK(loader->replica[i] == (float)(-i));
}

static void each_byte_is_read_once(void) {
  struct host host;
  shw_error* error = NULL;
  uint64_t read = 0, received = 0;
  start_host(&host, NULL);
  begin_exchanges(&host);
  release_handles(&host);
  move_all(&host);
  for (int rank = 0; rank < RANKS; ++rank) {
    shw_report* report = NULL;
    shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
    CHECK_OK(shw_load_exchange_finish(host.loaders[rank].exchange, &report, &error));
    CHECK_OK(shw_report_summarize(report, &summary, &error));
    CHECK_INT(shw_report_name_count(report, SHW_REPORT_LOADED), 2);
    check_loaded(&host.loaders[rank], rank);
    read += summary.bytes;
    received += summary.bytes_received;
    shw_report_release(report);
  }
  const uint64_t payload = 4 * (ROWS * COLUMNS + REPLICA);
  CHECK(read >= payload && read * 100 <= payload * 105);
  /* All ranks want parts of nearly all blocks. */
  CHECK(received <= (RANKS - 1) * payload && received * 10 >= (RANKS - 1) * payload * 9);
  release_exchanges(&host);
}

static void steps_out_of_order_are_refused(void) {
  struct host host;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_exchange_round round = SHW_EXCHANGE_ROUND_INIT;
  start_host(&host, NULL);
  begin_exchanges(&host);
  shw_load_exchange* exchange = host.loaders[0].exchange;
  CHECK_FAILS(shw_load_exchange_end_round(exchange, &error), SHW_FAILED_PRECONDITION,
              "no round has begun");
  CHECK_FAILS(shw_load_exchange_finish(exchange, &report, &error), SHW_FAILED_PRECONDITION,
              "cannot be finished");
  CHECK_OK(shw_load_exchange_begin_round(exchange, &round, &error));
  CHECK_FAILS(shw_load_exchange_begin_round(exchange, &round, &error), SHW_FAILED_PRECONDITION,
              "no round can be begun");
  CHECK_FAILS(shw_load_exchange_finish(exchange, &report, &error), SHW_FAILED_PRECONDITION,
              "cannot be finished");
  shw_load_exchange_release(exchange);
  CHECK_OK(shw_load_exchange_create(host.loaders[0].planner, host.loaders[0].plan, host.plans[0],
                                    &host.loaders[0].exchange, &error));
  exchange = host.loaders[0].exchange;
  move_all(&host);
  CHECK_FAILS(shw_load_exchange_begin_round(exchange, &round, &error), SHW_FAILED_PRECONDITION,
              "no round can be begun");
  CHECK_OK(shw_load_exchange_finish(exchange, &report, &error));
  shw_report_release(report);
  report = NULL;
  CHECK_FAILS(shw_load_exchange_finish(exchange, &report, &error), SHW_FAILED_PRECONDITION,
              "cannot be finished");
  CHECK(report == NULL);
  release_handles(&host);
  release_exchanges(&host);
}

static void plans_of_others_are_refused(void) {
  struct host host;
  shw_error* error = NULL;
  shw_plan* plan = NULL;
  shw_plan* plans[RANKS] = {NULL};
  shw_load_exchange* exchange = NULL;
  start_host(&host, NULL);
  struct loader* loader = &host.loaders[0];
  CHECK_FAILS(
      shw_load_exchange_create(loader->planner, loader->plan, host.plans[1], &exchange, &error),
      SHW_FAILED_PRECONDITION, "the exchange plan is of rank 1");
  CHECK_FAILS(
      shw_load_exchange_create(loader->planner, loader->plan, loader->plan, &exchange, &error),
      SHW_INVALID_ARGUMENT, "plan");
  CHECK_FAILS(
      shw_load_planner_want_list(host.loaders[2].planner, host.loaders[2].plan, 2, &plan, &error),
      SHW_INVALID_ARGUMENT, "rank 2, there are 2 ranks");
  CHECK_FAILS(shw_load_planner_want_list(loader->planner, loader->plan, 1 << 30, &plan, &error),
              SHW_INVALID_ARGUMENT, "is above");
  const shw_plan* swapped[] = {host.wants[1], host.wants[0], host.wants[2]};
  CHECK_FAILS(shw_exchange_plans(swapped, RANKS, plans, &error), SHW_INVALID_ARGUMENT, "rank");
  CHECK_FAILS(shw_exchange_plans(host.wants, 2, plans, &error), SHW_INVALID_ARGUMENT, "rank");
  CHECK_FAILS(shw_exchange_plans(host.wants, 0, plans, &error), SHW_INVALID_ARGUMENT, "0 ranks");
  const shw_plan* holes[] = {host.wants[0], NULL, host.wants[2]};
  CHECK_FAILS(shw_exchange_plans(holes, RANKS, plans, &error), SHW_INVALID_ARGUMENT, "NULL");
  const shw_plan* others[] = {host.wants[0], loader->plan, host.wants[2]};
  CHECK_FAILS(shw_exchange_plans(others, RANKS, plans, &error), SHW_INVALID_ARGUMENT, "plan");
  CHECK(plan == NULL && plans[0] == NULL && exchange == NULL);
  release_handles(&host);
  release_exchanges(&host);
}

static void damage_on_the_way_is_found(void) {
  struct host host;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_exchange_round rounds[RANKS];
  start_host(&host, NULL);
  begin_exchanges(&host);
  release_handles(&host);
  const int rank = 1;
  for (begin_all(&host, rounds); rounds[rank].incoming_size == 0; begin_all(&host, rounds))
    end_all(&host); /* in the first one nothing has been read that could be sent */
  move_bytes(rounds);
  ((uint8_t*)rounds[rank].incoming)[rounds[rank].incoming_size / 2] ^= 1;
  shw_load_exchange* exchange = host.loaders[rank].exchange;
  CHECK_FAILS(shw_load_exchange_end_round(exchange, &error), SHW_DATA_LOSS, "digest");
  CHECK_FAILS(shw_load_exchange_begin_round(exchange, &rounds[rank], &error), SHW_DATA_LOSS,
              "digest");
  CHECK_FAILS(shw_load_exchange_finish(exchange, &report, &error), SHW_DATA_LOSS, "digest");
  release_exchanges(&host);
}

static void a_cancellation_ends_the_rounds(void) {
  struct host host;
  shw_error* error = NULL;
  shw_exchange_round round = SHW_EXCHANGE_ROUND_INIT;
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  CHECK_OK(shw_cancellation_create(&options.cancellation, &error));
  start_host(&host, &options);
  begin_exchanges(&host);
  release_handles(&host);
  shw_cancellation_cancel(options.cancellation);
  shw_cancellation_release(options.cancellation);
  shw_status status = SHW_OK;
  int rank = 0; /* one that has something to read */
  for (; status == SHW_OK && rank < RANKS; ++rank) {
    status = shw_load_exchange_begin_round(host.loaders[rank].exchange, &round, NULL);
  }
  CHECK_INT(status, SHW_CANCELLED);
  release_exchanges(&host);
}

static void rounds_have_the_size_of_the_caller(void) {
  struct host host;
  shw_error* error = NULL;
  struct {
    shw_exchange_round round;
    uint64_t behind;
  } larger = {SHW_EXCHANGE_ROUND_INIT, 7};
  start_host(&host, NULL);
  begin_exchanges(&host);
  release_handles(&host);
  shw_load_exchange* exchange = host.loaders[0].exchange;
  larger.round.struct_size = SHW_EXCHANGE_ROUND_SIZE_V1 - 8;
  CHECK_FAILS(shw_load_exchange_begin_round(exchange, &larger.round, &error), SHW_INVALID_ARGUMENT,
              "struct_size");
  larger.round.struct_size = sizeof(larger);
  CHECK_OK(shw_load_exchange_begin_round(exchange, &larger.round, &error));
  CHECK_INT(larger.round.struct_size, sizeof(shw_exchange_round));
  CHECK_INT(larger.round.rank_count, RANKS);
  CHECK_INT(larger.behind, 0);
  release_exchanges(&host);
}

TEST_MAIN(TEST_ENTRY(each_byte_is_read_once), TEST_ENTRY(steps_out_of_order_are_refused),
          TEST_ENTRY(plans_of_others_are_refused), TEST_ENTRY(damage_on_the_way_is_found),
          TEST_ENTRY(a_cancellation_ends_the_rounds),
          TEST_ENTRY(rounds_have_the_size_of_the_caller))
