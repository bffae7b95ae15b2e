/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin "sample_pair": a collective of two ranks over a Unix socket, in one process or in two. The
 * config text is "PATH RANK": rank 0 listens at PATH, rank 1 connects to it. Every operation is one
 * exchange of frames {sequence, tag, kind, size, code}; ranks out of step get ABORTED instead of
 * each other's bytes. An abort is a frame of its own. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <shardwright/plugin.h>

enum { DATA = 1, ABORT = 2, LONGEST_MESSAGE = 1024 };
static const int64_t default_timeout_ns = INT64_C(1800) * 1000000000;

struct frame {
  uint64_t sequence;
  uint32_t tag;
  uint32_t kind;
  uint64_t size;
  int32_t code;
  uint32_t zero;
};

struct pair {
  int socket;
  int32_t rank;
};

/* One direction of an exchange: a frame, then bytes. */
struct half {
  struct frame frame;
  uint8_t* bytes;
  uint64_t done; /* of frame and bytes together */
};

static const shw_host_api* the_host;

static shw_status fail(shw_error** err, shw_status code, const char* message) {
  return the_host->error_create(code, message, strlen(message), NULL, 0, NULL, err);
}

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Milliseconds for poll until the deadline; -1 = no limit. */
static int poll_timeout(int64_t deadline_ns) {
  if (deadline_ns < 0) return -1;
  int64_t left = (deadline_ns - monotonic_ns() + 999999) / 1000000;
  return left < 0 ? 0 : (int)(left > 1000000 ? 1000000 : left);
}

static uint64_t half_size(const struct half* half) {
  return sizeof(half->frame) + half->frame.size;
}

/* Bytes that can be moved next, and where they are. */
static uint64_t next_run(struct half* half, uint8_t** at) {
  if (half->done < sizeof(half->frame)) {
    *at = (uint8_t*)&half->frame + half->done;
    return sizeof(half->frame) - half->done;
  }
  uint64_t in_bytes = half->done - sizeof(half->frame);
  *at = half->bytes + in_bytes;
  return half->frame.size - in_bytes;
}

/* Sends or receives what the socket takes now; 0 when the peer is gone. */
static int move_bytes(int fd, struct half* half, int sending) {
  uint8_t* at = NULL;
  uint64_t size = next_run(half, &at);
  ssize_t moved =
      sending ? send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(fd, at, size, MSG_DONTWAIT);
  if (moved > 0) {
    half->done += (uint64_t)moved;
    return 1;
  }
  return moved < 0 && (errno == EAGAIN || errno == EINTR);
}

/* What arrived instead of the frame that was expected. */
static shw_status wrong_frame(struct pair* pair, const struct frame* found, shw_error** err) {
  char message[LONGEST_MESSAGE + 1];
  if (found->kind == ABORT && found->size <= LONGEST_MESSAGE) {
    ssize_t length = recv(pair->socket, message, found->size, MSG_WAITALL);
    message[length < 0 ? 0 : length] = '\0';
    return fail(err, found->code, message);
  }
  snprintf(message, sizeof(message),
           "rank %d is out of step: it sent operation %llu with tag %u and %llu bytes",
           1 - pair->rank, (unsigned long long)found->sequence, found->tag,
           (unsigned long long)found->size);
  return fail(err, SHW_ABORTED, message);
}

static shw_status silent_peer(const struct pair* pair, shw_status code, shw_error** err) {
  char message[128];
  snprintf(message, sizeof(message), "rank %d %s", 1 - pair->rank,
           code == SHW_ABORTED ? "is gone" : "did not answer in time");
  return fail(err, code, message);
}

/* Sends `out` and receives into `in`, both at a time, so that neither side waits for room. */
static shw_status run_exchange(struct pair* pair, struct half* out, struct half* in,
                               int64_t deadline_ns, shw_error** err) {
  const struct frame expected = in->frame;
  int checked = 0, lost = 0; /* lost: takes nothing any more, but may have said why */
  while ((out->done < half_size(out) && !lost) || in->done < half_size(in)) {
    struct pollfd wait = {pair->socket, 0, 0};
    if (in->done < half_size(in)) wait.events |= POLLIN;
    if (out->done < half_size(out) && !lost) wait.events |= POLLOUT;
    int ready = poll(&wait, 1, poll_timeout(deadline_ns));
    if (ready == 0) return silent_peer(pair, SHW_DEADLINE_EXCEEDED, err);
    if (ready < 0 && errno != EINTR) return silent_peer(pair, SHW_ABORTED, err);
    if ((wait.revents & (POLLIN | POLLHUP)) != 0 && in->done < half_size(in) &&
        !move_bytes(pair->socket, in, 0)) {
      return silent_peer(pair, SHW_ABORTED, err);
    }
    if (!checked && in->done >= sizeof(in->frame)) {
      if (memcmp(&in->frame, &expected, sizeof(expected)) != 0) {
        return wrong_frame(pair, &in->frame, err);
      }
      checked = 1;
    }
    if ((wait.revents & POLLOUT) != 0 && !move_bytes(pair->socket, out, 1)) lost = 1;
  }
  return lost ? silent_peer(pair, SHW_ABORTED, err) : SHW_OK;
}

/* One operation: `mine` goes to the other rank, `theirs` comes from it. */
static shw_status exchange(struct pair* pair, const shw_collective_call* call, const void* mine,
                           uint64_t mine_size, void* theirs, uint64_t theirs_size,
                           shw_error** err) {
  struct half out = {{call->sequence, call->tag, DATA, mine_size, 0, 0}, NULL, 0};
  struct half in = {{call->sequence, call->tag, DATA, theirs_size, 0, 0}, theirs, 0};
  out.bytes = (uint8_t*)mine; /* only read from */
  int64_t span = call->timeout_ns == 0 ? default_timeout_ns : call->timeout_ns;
  return run_exchange(pair, &out, &in, span < 0 ? -1 : monotonic_ns() + span, err);
}

static shw_status pair_barrier(void* user, const shw_collective_call* call, shw_error** err) {
  return exchange(user, call, NULL, 0, NULL, 0, err);
}

static shw_status pair_broadcast(void* user, const shw_collective_call* call, void* data,
                                 uint64_t size, int32_t root, shw_error** err) {
  struct pair* pair = user;
  if (pair->rank == root) return exchange(pair, call, data, size, NULL, 0, err);
  return exchange(pair, call, NULL, 0, data, size, err);
}

static shw_status pair_all_gather(void* user, const shw_collective_call* call, const void* in,
                                  uint64_t size, void* out, shw_error** err) {
  struct pair* pair = user;
  uint8_t* gathered = out;
  if (size != 0) memcpy(gathered + (uint64_t)pair->rank * size, in, size);
  return exchange(pair, call, in, size, gathered + (uint64_t)(1 - pair->rank) * size, size, err);
}

static shw_status pair_all_gather_v(void* user, const shw_collective_call* call, const void* in,
                                    uint64_t size, void* out, const uint64_t* sizes,
                                    shw_error** err) {
  struct pair* pair = user;
  uint8_t* gathered = out;
  uint8_t* places[2] = {gathered, gathered + sizes[0]};
  if (size != 0) memcpy(places[pair->rank], in, size);
  return exchange(pair, call, in, size, places[1 - pair->rank], sizes[1 - pair->rank], err);
}

static shw_status pair_gather_v(void* user, const shw_collective_call* call, const void* in,
                                uint64_t size, void* out, const uint64_t* sizes, int32_t root,
                                shw_error** err) {
  struct pair* pair = user;
  if (pair->rank != root) return exchange(pair, call, in, size, NULL, 0, err);
  uint8_t* gathered = out;
  uint8_t* places[2] = {gathered, gathered + sizes[0]};
  if (size != 0) memcpy(places[root], in, size);
  return exchange(pair, call, NULL, 0, places[1 - root], sizes[1 - root], err);
}

static shw_status pair_scatter_v(void* user, const shw_collective_call* call, const void* in,
                                 const uint64_t* sizes, void* out, uint64_t size, int32_t root,
                                 shw_error** err) {
  struct pair* pair = user;
  if (pair->rank != root) return exchange(pair, call, NULL, 0, out, size, err);
  const uint8_t* parts = in;
  const uint8_t* places[2] = {parts, parts + sizes[0]};
  if (size != 0) memcpy(out, places[root], size);
  return exchange(pair, call, places[1 - root], sizes[1 - root], NULL, 0, err);
}

/* The other rank's part goes through the socket, this rank's own one does not. Sizes of that one
 * which differ are told when the other rank has what it waits for. */
static shw_status pair_all_to_all_v(void* user, const shw_collective_call* call, const void* in,
                                    const uint64_t* in_sizes, void* out, const uint64_t* out_sizes,
                                    shw_error** err) {
  struct pair* pair = user;
  const int32_t own = pair->rank, other = 1 - pair->rank;
  const uint8_t* sent = in; /* NULL where nothing is sent: no arithmetic then */
  uint8_t* received = out;
  const uint8_t* from[2] = {sent, in_sizes[0] != 0 ? sent + in_sizes[0] : sent};
  uint8_t* to[2] = {received, out_sizes[0] != 0 ? received + out_sizes[0] : received};
  shw_status status =
      exchange(pair, call, from[other], in_sizes[other], to[other], out_sizes[other], err);
  if (status != SHW_OK) return status;
  if (in_sizes[own] != out_sizes[own])
    return fail(err, SHW_INVALID_ARGUMENT, "a rank sends itself other bytes than it expects");
  if (in_sizes[own] != 0) memcpy(to[own], from[own], in_sizes[own]);
  return SHW_OK;
}

static shw_status pair_all_reduce_i64(void* user, const shw_collective_call* call, int64_t* values,
                                      uint64_t count, int32_t operation, shw_error** err) {
  int64_t* theirs = malloc((count + 1) * sizeof(*theirs));
  if (theirs == NULL) return SHW_RESOURCE_EXHAUSTED;
  uint64_t size = count * sizeof(*theirs);
  shw_status status = exchange(user, call, values, size, theirs, size, err);
  for (uint64_t i = 0; status == SHW_OK && i < count; ++i) {
    int64_t sum = 0;
    if (operation == SHW_REDUCE_MIN && theirs[i] < values[i]) values[i] = theirs[i];
    if (operation == SHW_REDUCE_MAX && theirs[i] > values[i]) values[i] = theirs[i];
    if (operation != SHW_REDUCE_SUM) continue;
    if (__builtin_add_overflow(values[i], theirs[i], &sum)) {
      status = fail(err, SHW_OUT_OF_RANGE, "the sum does not fit 64 bits");
    } else {
      values[i] = sum;
    }
  }
  free(theirs);
  return status;
}

static void pair_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  struct pair* pair = user;
  struct frame frame = {0, 0, ABORT, message_size, code, 0};
  if (frame.size > LONGEST_MESSAGE) frame.size = LONGEST_MESSAGE;
  /* Best effort: a peer that is gone needs no waking. */
  if (send(pair->socket, &frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(frame)) {
    if (send(pair->socket, message, frame.size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) errno = 0;
  }
  shutdown(pair->socket, SHUT_RDWR);
}

static void pair_release(void* user) {
  struct pair* pair = user;
  close(pair->socket);
  free(pair);
}

static int listen_once(const struct sockaddr_un* address) {
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  int fd = -1;
  if (bind(listener, (const struct sockaddr*)address, sizeof(*address)) == 0 &&
      listen(listener, 1) == 0) {
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  }
  close(listener);
  return fd;
}

/* Rank 1 may come first: it asks until rank 0 listens, for at most 30 seconds. */
static int connect_patiently(const struct sockaddr_un* address) {
  const int64_t deadline = monotonic_ns() + INT64_C(30) * 1000000000;
  for (;;) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (const struct sockaddr*)address, sizeof(*address)) == 0) return fd;
    int reason = errno;
    close(fd);
    if ((reason != ENOENT && reason != ECONNREFUSED) || monotonic_ns() > deadline) return -1;
    poll(NULL, 0, 1);
  }
}

static shw_status pair_open(void* user, const char* config, uint64_t config_size,
                            shw_collective_vtable* vtable, shw_error** err) {
  struct sockaddr_un address = {AF_UNIX, {0}};
  (void)user;
  if (config_size < 3 || config_size - 2 >= sizeof(address.sun_path) ||
      config[config_size - 2] != ' ' || (config[config_size - 1] & ~1) != '0') {
    return fail(err, SHW_INVALID_ARGUMENT, "the config of a pair is 'PATH 0' or 'PATH 1'");
  }
  memcpy(address.sun_path, config, config_size - 2);
  struct pair* pair = calloc(1, sizeof(*pair));
  if (pair == NULL) return SHW_RESOURCE_EXHAUSTED;
  pair->rank = config[config_size - 1] - '0';
  pair->socket = pair->rank == 0 ? listen_once(&address) : connect_patiently(&address);
  if (pair->socket < 0) {
    free(pair);
    return fail(err, SHW_UNAVAILABLE, "the two ranks cannot meet at the socket");
  }
  vtable->user = pair;
  vtable->rank = pair->rank;
  vtable->size = 2;
  return SHW_OK;
}

__attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                shw_plugin* out, shw_error** err);

shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err) {
  static shw_collective_vtable table = SHW_COLLECTIVE_VTABLE_INIT;
  (void)err;
  the_host = host;
  table.name = "sample_pair";
  table.barrier = pair_barrier;
  table.broadcast = pair_broadcast;
  table.all_gather = pair_all_gather;
  table.all_gather_v = pair_all_gather_v;
  table.gather_v = pair_gather_v;
  table.scatter_v = pair_scatter_v;
  table.all_to_all_v = pair_all_to_all_v;
  table.all_reduce_i64 = pair_all_reduce_i64;
  table.abort = pair_abort;
  table.release = pair_release;
  out->name = "sample_pair";
  out->version = "0.1";
  out->collective = &table;
  out->collective_open = pair_open;
  return SHW_OK;
}
