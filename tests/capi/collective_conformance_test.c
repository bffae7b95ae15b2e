/* SPDX-License-Identifier: Apache-2.0
 *
 * What every collective promises, through the C surface: the built-in ones and the two-rank plugin.
 * Each rank is a thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

static shw_collective_call numbered(uint64_t sequence, uint32_t tag) {
  shw_collective_call call = SHW_COLLECTIVE_CALL_INIT;
  call.sequence = sequence;
  call.tag = tag;
  return call;
}

static void moves_bytes(shw_collective* collective) {
  shw_error* error = NULL;
  const int32_t rank = shw_collective_rank(collective), size = shw_collective_size(collective);
  shw_collective_call call = numbered(1, 7);
  CHECK_OK(shw_collective_barrier(collective, &call, &error));

  char text[6] = "root0";
  text[4] = (char)('0' + rank);
  call = numbered(2, 7);
  CHECK_OK(shw_collective_broadcast(collective, &call, text, 6, size - 1, &error));
  CHECK_INT(text[4], '0' + size - 1);

  int32_t mine = rank * 11, all[16];
  call = numbered(3, 7);
  CHECK_OK(shw_collective_all_gather(collective, &call, &mine, 4, all, &error));
  for (int32_t i = 0; i < size; ++i) CHECK_INT(all[i], i * 11);

  uint8_t some[16], gathered[256];
  uint64_t sizes[16], total = 0;
  memset(some, 'a' + rank, sizeof(some));
  for (int32_t i = 0; i < size; ++i) sizes[i] = (uint64_t)i; /* rank 0 sends nothing */
  call = numbered(4, 8);
  CHECK_OK(shw_collective_all_gather_v(collective, &call, some, (uint64_t)rank, gathered, sizes,
                                       &error));
  for (int32_t i = 0; i < size; ++i) {
    for (uint64_t k = 0; k < sizes[i]; ++k) CHECK_INT(gathered[total++], 'a' + i);
  }
}

/* Rank 1 has none. */
static uint64_t part_size(int32_t rank) {
  return rank == 1 ? 0 : (uint64_t)(3 * rank + 2);
}

static void moves_parts(shw_collective* collective, int32_t root) {
  shw_error* error = NULL;
  const int32_t rank = shw_collective_rank(collective), size = shw_collective_size(collective);
  const int is_root = rank == root;
  uint8_t mine[64], all[512];
  uint64_t sizes[16], total = 0;
  for (int32_t i = 0; i < size; ++i) sizes[i] = part_size(i);
  memset(mine, 'a' + rank, sizeof(mine));
  memset(all, 0, sizeof(all));
  shw_collective_call call = numbered(10 + 2 * (uint64_t)root, 3);
  CHECK_OK(shw_collective_gather_v(collective, &call, mine, sizes[rank], is_root ? all : NULL,
                                   is_root ? sizes : NULL, root, &error));
  for (int32_t i = 0; i < size; ++i) {
    for (uint64_t k = 0; k < sizes[i]; ++k) CHECK_INT(all[total++], is_root ? 'a' + i : 0);
  }
  memset(mine, '-', sizeof(mine));
  ++call.sequence;
  CHECK_OK(shw_collective_scatter_v(collective, &call, is_root ? all : NULL, is_root ? sizes : NULL,
                                    mine, sizes[rank], root, &error));
  for (uint64_t k = 0; k < sizeof(mine); ++k)
    CHECK_INT(mine[k], k < sizes[rank] ? 'a' + rank : '-');
}

/* None for some. */
static uint64_t pair_size(int32_t from, int32_t to) {
  return (from + to) % 3 == 1 ? 0 : (uint64_t)(2 * from + to + 1);
}

static void moves_between_all(shw_collective* collective) {
  shw_error* error = NULL;
  const int32_t rank = shw_collective_rank(collective), size = shw_collective_size(collective);
  uint8_t sent[512], received[512];
  uint64_t sent_sizes[16], received_sizes[16], total = 0;
  for (int32_t i = 0; i < size; ++i) {
    sent_sizes[i] = pair_size(rank, i);
    received_sizes[i] = pair_size(i, rank);
    memset(sent + total, 'a' + 5 * rank + i, sent_sizes[i]);
    total += sent_sizes[i];
  }
  memset(received, '-', sizeof(received));
  shw_collective_call call = numbered(100, 3);
  CHECK_OK(shw_collective_all_to_all_v(collective, &call, sent, sent_sizes, received,
                                       received_sizes, &error));
  total = 0;
  for (int32_t i = 0; i < size; ++i) {
    for (uint64_t k = 0; k < received_sizes[i]; ++k)
      CHECK_INT(received[total++], 'a' + 5 * i + rank);
  }
  CHECK_INT(received[total], '-');
  /* Nothing at all, from nowhere. */
  memset(sent_sizes, 0, sizeof(sent_sizes));
  ++call.sequence;
  CHECK_OK(
      shw_collective_all_to_all_v(collective, &call, NULL, sent_sizes, NULL, sent_sizes, &error));
}

static void moves_large_payloads(shw_collective* collective) {
  enum { BYTES = 1 << 20 };
  shw_error* error = NULL;
  const int32_t size = shw_collective_size(collective);
  uint8_t* mine = malloc(BYTES);
  uint8_t* all = malloc((size_t)size * BYTES);
  memset(mine, shw_collective_rank(collective) + 1, BYTES);
  const shw_collective_call call = numbered(5, 9);
  CHECK_OK(shw_collective_all_gather(collective, &call, mine, BYTES, all, &error));
  for (int32_t i = 0; i < size; ++i) {
    CHECK(all[(size_t)i * BYTES] == i + 1 && all[(size_t)(i + 1) * BYTES - 1] == i + 1);
  }
  free(mine);
  free(all);
}

static void reduces(shw_collective* collective) {
  shw_error* error = NULL;
  const int32_t rank = shw_collective_rank(collective), size = shw_collective_size(collective);
  int64_t values[2] = {rank, -rank};
  shw_collective_call call = numbered(6, 1);
  CHECK_OK(shw_collective_all_reduce_i64(collective, &call, values, 2, SHW_REDUCE_MAX, &error));
  CHECK(values[0] == size - 1 && values[1] == 0);
  values[0] = rank;
  call = numbered(7, 1);
  CHECK_OK(shw_collective_all_reduce_i64(collective, &call, values, 1, SHW_REDUCE_MIN, &error));
  CHECK_INT(values[0], 0);
  values[0] = 5;
  call = numbered(8, 1);
  CHECK_OK(shw_collective_all_reduce_i64(collective, &call, values, 1, SHW_REDUCE_SUM, &error));
  CHECK_INT(values[0], 5 * size);
  if (size == 1) return;
  values[0] = INT64_MAX;
  call = numbered(9, 1);
  CHECK_FAILS(shw_collective_all_reduce_i64(collective, &call, values, 1, SHW_REDUCE_SUM, &error),
              SHW_OUT_OF_RANGE, "does not fit 64 bits");
}

static void conforms(struct rank* rank) {
  CHECK_INT(shw_collective_rank(rank->collective), rank->rank);
  CHECK_INT(shw_collective_size(rank->collective), rank->size);
  CHECK(strlen(shw_collective_name(rank->collective, NULL)) > 0);
  moves_bytes(rank->collective);
  for (int32_t root = 0; root < rank->size; ++root) moves_parts(rank->collective, root);
  moves_between_all(rank->collective);
  moves_large_payloads(rank->collective);
  reduces(rank->collective);
}

static void single_conforms(void) {
  shw_error* error = NULL;
  struct rank rank = {0, 1, NULL, NULL};
  CHECK_OK(shw_collective_create_single(&rank.collective, &error));
  conforms(&rank);
  shw_collective_release(rank.collective);
}

static void threads_conform(void) {
  run_ranks(2, conforms, NULL);
  run_ranks(5, conforms, NULL);
}

/* Threads reach each other's memory as processes of one machine do. */
static void node_conforms(struct rank* rank) {
  shw_error* error = NULL;
  struct rank node = *rank;
  CHECK_OK(shw_collective_create_node(rank->collective, NULL, &node.collective, &error));
  CHECK_TEXT(shw_collective_name(node.collective, NULL), rank->size > 1 ? "node" : "threads");
  conforms(&node);
  shw_collective_release(node.collective);
}
static void nodes_conform(void) {
  run_ranks(1, node_conforms, NULL);
  run_ranks(2, node_conforms, NULL);
  run_ranks(5, node_conforms, NULL);
}

static void out_of_step(struct rank* rank) {
  shw_error* error = NULL;
  const shw_collective_call call = numbered(1, rank->rank == 0 ? 1 : 2);
  CHECK_FAILS(shw_collective_barrier(rank->collective, &call, &error), SHW_ABORTED, "rank ");
}
static void ranks_out_of_step_get_aborted(void) {
  run_ranks(3, out_of_step, NULL);
}

/* The root's sizes are not those of the ranks. */
static void wrong_sizes(struct rank* rank) {
  shw_error* error = NULL;
  const uint64_t sizes[3] = {4, 4, 4};
  uint8_t mine[5] = {0}, all[12] = {0};
  CHECK_FAILS(shw_collective_gather_v(rank->collective, NULL, mine, rank->rank == 2 ? 5 : 4, all,
                                      sizes, 0, &error),
              SHW_INVALID_ARGUMENT, "rank 2");
  CHECK_FAILS(shw_collective_scatter_v(rank->collective, NULL, all, sizes, mine,
                                       rank->rank == 2 ? 5 : 4, 1, &error),
              SHW_INVALID_ARGUMENT, "rank 2");
  /* Rank 2 expects of rank 0 what that one has for rank 1. */
  const uint64_t sent[3] = {2, 3, 4}, row = 2 + (uint64_t)rank->rank;
  uint64_t received[3] = {row, row, row};
  if (rank->rank == 2) received[0] = 3;
  const uint8_t parts[9] = {0};
  CHECK_FAILS(
      shw_collective_all_to_all_v(rank->collective, NULL, parts, sent, all, received, &error),
      SHW_INVALID_ARGUMENT, "rank 2");
  CHECK_OK(shw_collective_barrier(rank->collective, NULL, &error));
}
static void sizes_that_are_not_those_of_the_ranks_are_refused_on_all(void) {
  run_ranks(3, wrong_sizes, NULL);
}

static void aborting(struct rank* rank) {
  shw_error* error = NULL;
  if (rank->rank == 1) {
    CHECK_OK(shw_collective_abort(rank->collective, SHW_DATA_LOSS, "rank 1 is broken", 16, &error));
    return;
  }
  CHECK_FAILS(shw_collective_barrier(rank->collective, NULL, &error), SHW_DATA_LOSS,
              "rank 1 is broken");
}
static void an_abort_wakes_all_ranks(void) {
  run_ranks(3, aborting, NULL);
}

static void leaving(struct rank* rank) {
  shw_error* error = NULL;
  if (rank->rank == 2) return;
  CHECK_FAILS(shw_collective_barrier(rank->collective, NULL, &error), SHW_ABORTED, "rank 2");
}
static void a_rank_that_is_gone_wakes_the_others(void) {
  run_ranks(3, leaving, NULL);
}

static void waiting(struct rank* rank) {
  shw_error* error = NULL;
  atomic_int* done = rank->user;
  shw_collective_call call = numbered(1, 1);
  call.timeout_ns = 20000000;
  if (rank->rank == 1) {
    while (atomic_load(done) == 0) continue;
    return;
  }
  CHECK_FAILS(shw_collective_barrier(rank->collective, &call, &error), SHW_DEADLINE_EXCEEDED,
              "rank 1 did not take part");
  atomic_store(done, 1);
}
static void a_silent_rank_is_not_waited_for_for_ever(void) {
  atomic_int done = 0;
  run_ranks(2, waiting, &done);
}

static void bad_arguments_are_refused(void) {
  shw_error* error = NULL;
  shw_collective* collective = NULL;
  shw_collective_group* group = NULL;
  int64_t value = 0;
  CHECK_FAILS(shw_collective_group_create(0, &group, &error), SHW_INVALID_ARGUMENT, "size");
  CHECK_OK(shw_collective_group_create(2, &group, &error));
  CHECK_FAILS(shw_collective_group_member(group, 2, &collective, &error), SHW_INVALID_ARGUMENT,
              "2 is not a rank of 2");
  CHECK_OK(shw_collective_group_member(group, 1, &collective, &error));
  shw_collective* twice = NULL;
  CHECK_FAILS(shw_collective_group_member(group, 1, &twice, &error), SHW_FAILED_PRECONDITION,
              "taken");
  CHECK_FAILS(shw_collective_broadcast(collective, NULL, &value, 8, 2, &error),
              SHW_INVALID_ARGUMENT, "root");
  const uint64_t sizes[2] = {UINT64_MAX, 8};
  CHECK_FAILS(shw_collective_gather_v(collective, NULL, &value, 8, NULL, NULL, -1, &error),
              SHW_INVALID_ARGUMENT, "root");
  CHECK_FAILS(shw_collective_scatter_v(collective, NULL, NULL, NULL, &value, 8, 2, &error),
              SHW_INVALID_ARGUMENT, "root");
  CHECK_FAILS(shw_collective_gather_v(collective, NULL, &value, 8, &value, NULL, 1, &error),
              SHW_INVALID_ARGUMENT, "sizes");
  CHECK_FAILS(shw_collective_gather_v(collective, NULL, &value, 8, &value, sizes, 1, &error),
              SHW_INVALID_ARGUMENT, "overflow");
  CHECK_FAILS(shw_collective_scatter_v(collective, NULL, &value, NULL, &value, 8, 1, &error),
              SHW_INVALID_ARGUMENT, "sizes");
  const uint64_t few[2] = {8, 0};
  CHECK_FAILS(shw_collective_all_to_all_v(collective, NULL, &value, NULL, &value, few, &error),
              SHW_INVALID_ARGUMENT, "sent_sizes");
  CHECK_FAILS(shw_collective_all_to_all_v(collective, NULL, &value, few, &value, NULL, &error),
              SHW_INVALID_ARGUMENT, "received_sizes");
  CHECK_FAILS(shw_collective_all_to_all_v(collective, NULL, &value, few, &value, sizes, &error),
              SHW_INVALID_ARGUMENT, "overflow");
  CHECK_FAILS(shw_collective_all_to_all_v(collective, NULL, NULL, few, &value, few, &error),
              SHW_INVALID_ARGUMENT, "sent");
  CHECK_FAILS(shw_collective_all_to_all_v(collective, NULL, &value, few, NULL, few, &error),
              SHW_INVALID_ARGUMENT, "received");
  CHECK_FAILS(shw_collective_all_reduce_i64(collective, NULL, &value, 1, 3, &error),
              SHW_INVALID_ARGUMENT, "operation");
  CHECK_FAILS(shw_collective_abort(collective, SHW_OK, "", 0, &error), SHW_INVALID_ARGUMENT,
              "code");
  shw_collective_release(collective);
  shw_collective_group_release(group);
}

/* The plugin: two contexts, one socket. */
struct plugin_rank {
  const char* socket;
  int32_t rank;
  rank_function function;
};

static void* run_plugin_rank(void* opaque) {
  const struct plugin_rank* given = opaque;
  shw_error* error = NULL;
  shw_context* context = make_context();
  struct rank rank = {given->rank, 2, NULL, NULL};
  char config[300];
  const int length = snprintf(config, sizeof(config), "%s %d", given->socket, given->rank);
  CHECK_OK(shw_context_load_plugin(context, "sample_pair", &error));
  CHECK_OK(shw_context_open_collective(context, "sample_pair", config, (uint64_t)length,
                                       &rank.collective, &error));
  shw_context_release(context);
  given->function(&rank);
  shw_collective_release(rank.collective);
  return NULL;
}

static void run_pair(rank_function function) {
  const char* socket = path_in(scratch_directory(), "socket");
  struct plugin_rank ranks[2] = {{socket, 0, function}, {socket, 1, function}};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_plugin_rank, &ranks[1]) == 0);
  run_plugin_rank(&ranks[0]);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void sample_pair_plugin_conforms(void) {
  run_pair(conforms);
}
static void sample_pair_plugin_finds_ranks_out_of_step(void) {
  run_pair(out_of_step);
}
static void sample_pair_plugin_aborts(void) {
  run_pair(aborting);
}

/* A whole save and load over the plugin. */
static char pair_path[300];
static void save_and_load(struct rank* rank) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_context* context = make_context();
  shw_state* state = make_state();
  float mine[3] = {0, 1, 2};
  for (int i = 0; i < 3; ++i) mine[i] += (float)(10 * rank->rank);
  const int64_t offsets[] = {rank->rank, 0};
  const struct shard shard = {"w", mine, SHAPE(2, 3), offsets, SHAPE(1, 3), 2};
  add_shard(state, &shard);
  CHECK_OK(shw_save(context, state, NULL, pair_path, rank->collective, NULL, &report, &error));
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  CHECK_OK(shw_report_summarize(report, &summary, &error));
  CHECK(summary.bytes_received > 0 && summary.bytes_received <= 65536);
  shw_report_release(report);
  report = NULL;
  memset(mine, 0, sizeof(mine));
  CHECK_OK(shw_load(context, state, NULL, pair_path, rank->collective, NULL, &report, &error));
  CHECK(mine[2] == (float)(10 * rank->rank + 2));
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}
static void sample_pair_plugin_carries_a_checkpoint(void) {
  snprintf(pair_path, sizeof(pair_path), "%s/c", scratch_directory());
  run_pair(save_and_load);
}

TEST_MAIN(TEST_ENTRY(single_conforms), TEST_ENTRY(threads_conform), TEST_ENTRY(nodes_conform),
          TEST_ENTRY(ranks_out_of_step_get_aborted),
          TEST_ENTRY(sizes_that_are_not_those_of_the_ranks_are_refused_on_all),
          TEST_ENTRY(an_abort_wakes_all_ranks), TEST_ENTRY(a_rank_that_is_gone_wakes_the_others),
          TEST_ENTRY(a_silent_rank_is_not_waited_for_for_ever),
          TEST_ENTRY(bad_arguments_are_refused), TEST_ENTRY(sample_pair_plugin_conforms),
          TEST_ENTRY(sample_pair_plugin_finds_ranks_out_of_step),
          TEST_ENTRY(sample_pair_plugin_aborts),
          TEST_ENTRY(sample_pair_plugin_carries_a_checkpoint))
