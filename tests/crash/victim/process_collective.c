/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation is one meeting in which all ranks give bytes and get those of all; what a rank
 * must not give is empty. */
#include "process_collective.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seam.h"

enum { MESSAGE_TEXT = 256 };

struct end {
  int socket;
  int32_t rank;
  int32_t size;
  /* Why there will be no further meeting; SHW_OK = there may be. */
  shw_status why;
  uint64_t why_rank;
  char why_text[MESSAGE_TEXT];
};

static pthread_mutex_t send_mutex = PTHREAD_MUTEX_INITIALIZER;

int collective_send(int socket, struct message message, const void* bytes) {
  pthread_mutex_lock(&send_mutex);
  const int sent = channel_send(socket, message, bytes);
  pthread_mutex_unlock(&send_mutex);
  return sent;
}

/* The first reason, each time. */
static shw_status answer_why(const struct end* end, shw_error** err) {
  char rank[24];
  const int digits = snprintf(rank, sizeof(rank), "%llu", (unsigned long long)end->why_rank);
  const shw_error_detail detail = {"rank", rank, (uint64_t)digits};
  return shw_error_create(end->why, end->why_text, strlen(end->why_text), &detail, 1, NULL, err);
}

static shw_status fail(struct end* end, shw_status status, const char* text, shw_error** err) {
  end->why = status;
  end->why_rank = (uint64_t)end->rank;
  snprintf(end->why_text, sizeof(end->why_text), "%s", text);
  return answer_why(end, err);
}

/* The answer that there will be none: a rank is gone, or has called it off. */
static shw_status learn_why(struct end* end, struct message message, shw_error** err) {
  const uint64_t most = sizeof(end->why_text) - 1;
  const uint64_t size = message.size < most ? message.size : most;
  if (!channel_receive(end->socket, end->why_text, size))
    return fail(end, SHW_ABORTED, "no answer", err);
  end->why_text[size] = '\0';
  end->why = message.value;
  end->why_rank = message.number;
  return answer_why(end, err);
}

/* Gives `size` bytes and gets those of all ranks, `all_size` in all. */
static shw_status meet(struct end* end, const shw_collective_call* call, const void* in,
                       uint64_t size, void* all, uint64_t all_size, shw_error** err) {
  if (end->why != SHW_OK) return answer_why(end, err);
  seam_step();
  struct message message = {MESSAGE_MEET, 0, call->tag, call->sequence, size};
  if (!collective_send(end->socket, message, in))
    return fail(end, SHW_ABORTED, "the test is gone", err);
  struct pollfd answer = {end->socket, POLLIN, 0};
  const int64_t wanted_ms = call->timeout_ns / 1000000;
  const int timeout_ms = call->timeout_ns < 0 ? -1 : wanted_ms > 1800000 ? 1800000 : (int)wanted_ms;
  int ready = -1;
  do {
    ready = poll(&answer, 1, call->timeout_ns == 0 ? 1800000 : timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return fail(end, SHW_DEADLINE_EXCEEDED, "other ranks are silent", err);
  if (!channel_receive(end->socket, &message, sizeof(message)))
    return fail(end, SHW_ABORTED, "the test is gone", err);
  if (message.kind == MESSAGE_GONE) return learn_why(end, message, err);
  if (message.size != all_size) return fail(end, SHW_INTERNAL, "ranks gave other sizes", err);
  if (!channel_receive(end->socket, all, all_size))
    return fail(end, SHW_ABORTED, "the test is gone", err);
  seam_step();
  return SHW_OK;
}

static shw_status barrier(void* user, const shw_collective_call* call, shw_error** err) {
  return meet(user, call, "", 0, NULL, 0, err);
}

static shw_status broadcast(void* user, const shw_collective_call* call, void* data, uint64_t size,
                            int32_t root, shw_error** err) {
  struct end* end = user;
  return meet(end, call, data, end->rank == root ? size : 0, data, size, err);
}

static shw_status all_gather(void* user, const shw_collective_call* call, const void* in,
                             uint64_t size, void* out, shw_error** err) {
  struct end* end = user;
  return meet(end, call, in, size, out, size * (uint64_t)end->size, err);
}

static shw_status all_gather_v(void* user, const shw_collective_call* call, const void* in,
                               uint64_t size, void* out, const uint64_t* sizes, shw_error** err) {
  struct end* end = user;
  uint64_t total = 0;
  for (int32_t i = 0; i < end->size; ++i) total += sizes[i];
  return meet(end, call, in, size, out, total, err);
}

static int64_t reduced(int64_t a, int64_t b, int32_t operation) {
  if (operation == SHW_REDUCE_SUM) return a + b;
  return (operation == SHW_REDUCE_MIN) == (a < b) ? a : b;
}

static shw_status all_reduce(void* user, const shw_collective_call* call, int64_t* values,
                             uint64_t count, int32_t operation, shw_error** err) {
  struct end* end = user;
  const uint64_t bytes = count * sizeof(int64_t);
  int64_t* all = malloc(bytes * (uint64_t)end->size + 1);
  if (all == NULL) return fail(end, SHW_RESOURCE_EXHAUSTED, "no memory", err);
  const shw_status status = meet(end, call, values, bytes, all, bytes * (uint64_t)end->size, err);
  for (uint64_t i = 0; status == SHW_OK && i < count; ++i) {
    values[i] = all[i];
    for (int32_t r = 1; r < end->size; ++r)
      values[i] = reduced(values[i], all[(uint64_t)r * count + i], operation);
  }
  free(all);
  return status;
}

static void abort_all(void* user, shw_status code, const char* message, uint64_t message_size) {
  struct end* end = user;
  const struct message told = {MESSAGE_ABORT, code, 0, (uint64_t)end->rank, message_size};
  (void)!collective_send(end->socket, told, message);
}

static void release(void* user) {
  free(user);
}

shw_collective* process_collective_create(int socket, int32_t rank, int32_t size) {
  struct end* end = calloc(1, sizeof(*end));
  if (end == NULL) return NULL;
  end->socket = socket;
  end->rank = rank;
  end->size = size;
  shw_collective_vtable table = SHW_COLLECTIVE_VTABLE_INIT;
  table.rank = rank;
  table.size = size;
  table.name = "processes";
  table.user = end;
  table.barrier = barrier;
  table.broadcast = broadcast;
  table.all_gather = all_gather;
  table.all_gather_v = all_gather_v;
  table.all_reduce_i64 = all_reduce;
  table.abort = abort_all;
  table.release = release;
  shw_collective* made = NULL;
  return shw_collective_create(&table, &made, NULL) == SHW_OK ? made : NULL;
}
