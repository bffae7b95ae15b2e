/* SPDX-License-Identifier: Apache-2.0
 *
 * hsdp_loop FOLDER STEPS: trains so many steps on two ranks from FOLDER/checkpoint, or from the
 * beginning where there is none, saves there, and prints the digest of all parameters. The programs
 * of the other languages do the same, so each goes on from what another has saved. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

enum { RANKS = 2 };

/* What a thread gets, and what it leaves. */
struct rank {
  int number;
  int64_t steps;
  const char* checkpoint;
  shw_communicator* communicator; /* training moves elements */
  shw_collective* collective;     /* saves and loads move bytes */
  shw_status status;
  shw_error* error;
  char digest[DIGEST_CHARS];
};

static shw_status load(struct rank* rank, shw_context* context, struct loop* loop) {
  shw_state* state = NULL;
  shw_report* report = NULL;
  RETURN_IF_FAILS(loop_state(loop, &state, &rank->error));
  shw_status status = shw_load(context, state, NULL, rank->checkpoint, rank->collective, NULL,
                               &report, &rank->error);
  if (status == SHW_OK) status = loop_loaded(loop, state, &rank->error);
  shw_report_release(report);
  shw_state_release(state);
  return status;
}

static shw_status save(struct rank* rank, shw_context* context, struct loop* loop) {
  shw_state* state = NULL;
  shw_report* report = NULL;
  RETURN_IF_FAILS(loop_state(loop, &state, &rank->error));
  const shw_status status = shw_save(context, state, NULL, rank->checkpoint, rank->collective, NULL,
                                     &report, &rank->error);
  shw_report_release(report);
  shw_state_release(state);
  return status;
}

static shw_status train(struct rank* rank, shw_context* context, struct loop* loop) {
  if (access(rank->checkpoint, F_OK) == 0) RETURN_IF_FAILS(load(rank, context, loop));
  for (int64_t step = 0; step < rank->steps; ++step) RETURN_IF_FAILS(loop_step(loop, &rank->error));
  RETURN_IF_FAILS(save(rank, context, loop));
  return loop_digest(loop, rank->digest, &rank->error);
}

static shw_status make_mesh(struct rank* rank, shw_hsdp_mesh** mesh) {
  static const int64_t shape[] = {RANKS};
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = 1;
  spec.mesh_shape = shape;
  RETURN_IF_FAILS(shw_hsdp_mesh_create(&spec, rank->number, mesh, &rank->error));
  return shw_hsdp_mesh_set_communicator(*mesh, 0, SHW_HSDP_LANE_GATHER, rank->communicator,
                                        &rank->error);
}

static void* run(void* given) {
  struct rank* rank = given;
  shw_context* context = NULL;
  shw_hsdp_mesh* mesh = NULL;
  rank->status = shw_context_create(NULL, &context, &rank->error);
  if (rank->status == SHW_OK) rank->status = make_mesh(rank, &mesh);
  if (rank->status == SHW_OK) {
    struct loop loop;
    rank->status = loop_open(&loop, context, mesh, rank->number, 0, -1, &rank->error);
    if (rank->status == SHW_OK) rank->status = train(rank, context, &loop);
    loop_close(&loop);
  }
  /* Where this rank failed, the other one is told and ends, too. */
  if (rank->status != SHW_OK) {
    uint64_t size = 0;
    const char* message = shw_error_message(rank->error, &size);
    if (shw_communicator_abort(rank->communicator, rank->status, message, size, NULL) != SHW_OK)
      fprintf(stderr, "hsdp_loop: the other rank waits to its limit\n");
  }
  shw_hsdp_mesh_release(mesh);
  shw_context_release(context);
  return NULL;
}

static shw_status make_ranks(struct rank* ranks, shw_error** err) {
  shw_communicator_group* communicators = NULL;
  shw_collective_group* collectives = NULL;
  shw_status status = shw_communicator_group_create(RANKS, &communicators, err);
  if (status == SHW_OK) status = shw_collective_group_create(RANKS, &collectives, err);
  for (int number = 0; status == SHW_OK && number < RANKS; ++number) {
    struct rank* rank = &ranks[number];
    rank->number = number;
    status = shw_communicator_group_member(communicators, number, &rank->communicator, err);
    if (status == SHW_OK)
      status = shw_collective_group_member(collectives, number, &rank->collective, err);
  }
  shw_communicator_group_release(communicators);
  shw_collective_group_release(collectives);
  return status;
}

static int failed(shw_error* error) {
  fprintf(stderr, "hsdp_loop: %s: %s\n", shw_status_name(shw_error_code(error)),
          shw_error_message(error, NULL));
  return 1;
}

int main(int argc, char** argv) {
  struct rank ranks[RANKS] = {0};
  pthread_t threads[RANKS];
  char checkpoint[4096];
  shw_error* error = NULL;
  int code = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: hsdp_loop FOLDER STEPS\n");
    return 2;
  }
  (void)snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoint", argv[1]);
  if (make_ranks(ranks, &error) != SHW_OK) return failed(error);
  for (int number = 0; number < RANKS; ++number) {
    ranks[number].checkpoint = checkpoint;
    ranks[number].steps = strtoll(argv[2], NULL, 10);
    if (pthread_create(&threads[number], NULL, run, &ranks[number]) != 0) {
      fprintf(stderr, "hsdp_loop: no thread for rank %d\n", number);
      return 1; /* ends the threads that there are */
    }
  }
  for (int number = 0; number < RANKS; ++number) (void)pthread_join(threads[number], NULL);
  for (int number = 0; number < RANKS; ++number) {
    if (ranks[number].status != SHW_OK) code = failed(ranks[number].error);
    shw_error_release(ranks[number].error);
    shw_communicator_release(ranks[number].communicator);
    shw_collective_release(ranks[number].collective);
  }
  if (code == 0) printf("%s\n", ranks[0].digest);
  return code;
}
