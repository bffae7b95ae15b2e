/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin "sample_team": a communicator whose ranks are threads of one process that name the same
 * team. The config text is "NAME RANK SIZE". It has the two operations that a communicator must
 * have, and a barrier; the library makes the others of them. Whoever is the last to issue an
 * operation moves the bytes of all, so that nobody waits for a rank that computes on. Ranks out of
 * step get ABORTED instead of each other's bytes; the first failure of a team ends it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shardwright/api.h>
#include <shardwright/plugin.h>

enum { MOST_RANKS = 64, LONGEST_NAME = 64, LONGEST_TEXT = 512 };
enum { ALL_GATHER = 0, ALL_TO_ALL = 1, BARRIER = 2 };

static const char* const kind_names[] = {"all_gather", "all_to_all", "barrier"};
static const int64_t default_timeout_ns = INT64_C(1800) * 1000000000;

/* What one rank has issued. */
struct part {
  int kind;
  shw_communicator_call call;
  const uint8_t* in;
  uint8_t* out;
};

/* One operation of all ranks; goes when it has ended and each rank has released its work. */
struct round {
  struct round* next;
  uint64_t number;
  struct part parts[MOST_RANKS];
  uint8_t issued[MOST_RANKS];
  int32_t issued_count;
  int32_t works; /* that are not released */
  int ended;
};

struct team {
  struct team* next;
  char name[LONGEST_NAME];
  int32_t size;
  int32_t members; /* that are open */
  uint8_t taken[MOST_RANKS];
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct round* rounds;
  shw_status failure; /* SHW_OK as long as there is none */
  int32_t failed_rank;
  char text[LONGEST_TEXT];
  char expected[LONGEST_TEXT];
  char found[LONGEST_TEXT];
};

struct member {
  struct team* team;
  int32_t rank;
  uint64_t issued; /* operations so far */
};

struct work {
  struct round* round;
  int64_t deadline_ns; /* negative = none */
};

static const shw_host_api* the_host;
static pthread_mutex_t teams_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct team* teams;

static shw_status fail(shw_error** err, shw_status code, const char* message) {
  return the_host->error_create(code, message, strlen(message), NULL, 0, NULL, err);
}

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The failure of the team, with the rank that it is about. */
static shw_status tell_failure(const struct team* team, shw_error** err) {
  char rank[16];
  snprintf(rank, sizeof(rank), "%d", team->failed_rank);
  const shw_error_detail details[] = {{"rank", rank, strlen(rank)},
                                      {"expected", team->expected, strlen(team->expected)},
                                      {"found", team->found, strlen(team->found)}};
  const uint64_t count = team->found[0] != '\0' ? 3 : 1;
  return the_host->error_create(team->failure, team->text, strlen(team->text), details, count, NULL,
                                err);
}

/* The first failure stays. Under the lock of the team. */
static void end_team(struct team* team, shw_status code, int32_t rank, const char* text) {
  if (team->failure != SHW_OK) return;
  team->failure = code;
  team->failed_rank = rank;
  snprintf(team->text, sizeof(team->text), "%s", text);
  pthread_cond_broadcast(&team->changed);
}

static uint64_t bytes_of(const shw_communicator_call* call) {
  return the_host->api->dtype_byte_size(call->dtype, call->count);
}

static int is_same(const struct part* a, const struct part* b) {
  const int moves = a->kind != BARRIER;
  return a->kind == b->kind && a->call.sequence == b->call.sequence &&
         a->call.unit_id == b->call.unit_id && a->call.tag == b->call.tag &&
         (!moves || (a->call.count == b->call.count && a->call.dtype == b->call.dtype &&
                     a->call.op == b->call.op && a->call.scale == b->call.scale));
}

static void describe(const struct part* part, char* text) {
  snprintf(text, LONGEST_TEXT, "%s number %llu of unit %llu, tag %u, %llu elements of dtype %d",
           kind_names[part->kind], (unsigned long long)part->call.sequence,
           (unsigned long long)part->call.unit_id, part->call.tag,
           (unsigned long long)part->call.count, part->call.dtype);
}

static int all_are_in_step(struct team* team, const struct round* round) {
  for (int32_t rank = 1; rank < team->size; ++rank) {
    if (is_same(&round->parts[0], &round->parts[rank])) continue;
    char text[LONGEST_TEXT];
    describe(&round->parts[0], team->expected);
    describe(&round->parts[rank], team->found);
    snprintf(text, sizeof(text), "rank %d is out of step with rank 0", rank);
    end_team(team, SHW_ABORTED, rank, text);
    return 0;
  }
  return 1;
}

static void move_bytes(const struct team* team, const struct round* round) {
  if (round->parts[0].kind == BARRIER) return;
  const uint64_t bytes = bytes_of(&round->parts[0].call);
  if (bytes == 0) return;
  for (int32_t to = 0; to < team->size; ++to) {
    for (int32_t from = 0; from < team->size; ++from) {
      const uint64_t skipped = round->parts[0].kind == ALL_TO_ALL ? (uint64_t)to * bytes : 0;
      memcpy(round->parts[to].out + (uint64_t)from * bytes, round->parts[from].in + skipped, bytes);
    }
  }
}

/* The round of this number, made where there is none. */
static struct round* round_of(struct team* team, uint64_t number) {
  struct round** place = &team->rounds;
  while (*place != NULL && (*place)->number != number) place = &(*place)->next;
  if (*place == NULL) {
    *place = calloc(1, sizeof(struct round));
    if (*place != NULL) (*place)->number = number;
  }
  return *place;
}

static void forget(struct team* team, struct round* round) {
  struct round** place = &team->rounds;
  while (*place != round) place = &(*place)->next;
  *place = round->next;
  free(round);
}

static shw_status issue(struct member* member, const struct part* part, void** out,
                        shw_error** err) {
  struct team* team = member->team;
  struct work* work = malloc(sizeof(*work));
  if (work == NULL) return fail(err, SHW_RESOURCE_EXHAUSTED, "no memory for an operation");
  pthread_mutex_lock(&team->mutex);
  struct round* round = team->failure == SHW_OK ? round_of(team, member->issued) : NULL;
  shw_status status = SHW_OK;
  if (round == NULL) {
    status = team->failure != SHW_OK
                 ? tell_failure(team, err)
                 : fail(err, SHW_RESOURCE_EXHAUSTED, "no memory for an operation");
  } else {
    const int64_t timeout_ns =
        part->call.timeout_ns == 0 ? default_timeout_ns : part->call.timeout_ns;
    ++member->issued;
    round->parts[member->rank] = *part;
    round->issued[member->rank] = 1;
    ++round->works;
    work->round = round;
    work->deadline_ns = timeout_ns < 0 ? -1 : monotonic_ns() + timeout_ns;
    *out = work;
    if (++round->issued_count == team->size && all_are_in_step(team, round)) {
      move_bytes(team, round);
      round->ended = 1;
      pthread_cond_broadcast(&team->changed);
    }
  }
  pthread_mutex_unlock(&team->mutex);
  if (status != SHW_OK) free(work);
  return status;
}

static shw_status all_gather(void* user, const shw_communicator_call* call, const void* in,
                             void* out, void** work, shw_error** err) {
  const struct part part = {ALL_GATHER, *call, in, out};
  return issue(user, &part, work, err);
}

static shw_status all_to_all(void* user, const shw_communicator_call* call, const void* in,
                             void* out, void** work, shw_error** err) {
  const struct part part = {ALL_TO_ALL, *call, in, out};
  return issue(user, &part, work, err);
}

static shw_status barrier(void* user, const shw_communicator_call* call, void** work,
                          shw_error** err) {
  const struct part part = {BARRIER, *call, NULL, NULL};
  return issue(user, &part, work, err);
}

/* The ranks that have not come. Under the lock of the team. */
static void end_by_deadline(struct team* team, const struct round* round) {
  char text[LONGEST_TEXT];
  int32_t first = -1;
  int used = snprintf(text, sizeof(text), "waited in vain for ranks");
  for (int32_t rank = 0; rank < team->size; ++rank) {
    if (round->issued[rank]) continue;
    if (first < 0) first = rank;
    if (used < (int)sizeof(text)) {
      used += snprintf(text + used, sizeof(text) - (size_t)used, " %d", rank);
    }
  }
  end_team(team, SHW_DEADLINE_EXCEEDED, first, text);
}

/* Returns at `until_ns` at the latest; negative = when something changes. */
static void wait_for_change(struct team* team, int64_t until_ns) {
  if (until_ns < 0) {
    pthread_cond_wait(&team->changed, &team->mutex);
    return;
  }
  const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
  pthread_cond_timedwait(&team->changed, &team->mutex, &until);
}

static shw_status work_wait(void* user, void* opaque, int64_t timeout_ns, shw_error** err) {
  struct team* team = ((struct member*)user)->team;
  const struct work* work = opaque;
  const int64_t patience_ns = timeout_ns < 0 ? -1 : monotonic_ns() + timeout_ns;
  shw_status status = SHW_OK;
  pthread_mutex_lock(&team->mutex);
  for (;;) {
    if (work->round->ended) break;
    if (team->failure != SHW_OK) {
      status = tell_failure(team, err);
      break;
    }
    const int64_t now_ns = monotonic_ns();
    if (work->deadline_ns >= 0 && now_ns >= work->deadline_ns) {
      end_by_deadline(team, work->round);
      continue;
    }
    if (patience_ns >= 0 && now_ns >= patience_ns) {
      status = SHW_PENDING;
      break;
    }
    const int patience_is_first =
        patience_ns >= 0 && (work->deadline_ns < 0 || patience_ns < work->deadline_ns);
    wait_for_change(team, patience_is_first ? patience_ns : work->deadline_ns);
  }
  pthread_mutex_unlock(&team->mutex);
  return status;
}

static shw_status work_test(void* user, void* work, shw_error** err) {
  return work_wait(user, work, 0, err);
}

/* Whoever gives up an operation that others still need leaves its team. */
static void work_release(void* user, void* opaque) {
  struct member* member = user;
  struct team* team = member->team;
  struct work* work = opaque;
  pthread_mutex_lock(&team->mutex);
  if (!work->round->ended) end_team(team, SHW_ABORTED, member->rank, "a rank gave an operation up");
  if (--work->round->works == 0 && (work->round->ended || team->failure != SHW_OK))
    forget(team, work->round);
  pthread_mutex_unlock(&team->mutex);
  free(work);
}

static void abort_team(void* user, shw_status code, const char* message, uint64_t message_size) {
  struct member* member = user;
  char text[LONGEST_TEXT];
  snprintf(text, sizeof(text), "%.*s", (int)(message_size < 400 ? message_size : 400), message);
  pthread_mutex_lock(&member->team->mutex);
  end_team(member->team, code, member->rank, text);
  pthread_mutex_unlock(&member->team->mutex);
}

static void free_team(struct team* team) {
  while (team->rounds != NULL) forget(team, team->rounds);
  pthread_cond_destroy(&team->changed);
  pthread_mutex_destroy(&team->mutex);
  free(team);
}

static void leave(void* user) {
  struct member* member = user;
  struct team* team = member->team;
  pthread_mutex_lock(&teams_mutex);
  pthread_mutex_lock(&team->mutex);
  end_team(team, SHW_ABORTED, member->rank, "a rank has left");
  const int is_last = --team->members == 0;
  pthread_mutex_unlock(&team->mutex);
  if (is_last) {
    struct team** place = &teams;
    while (*place != team) place = &(*place)->next;
    *place = team->next;
    free_team(team);
  }
  pthread_mutex_unlock(&teams_mutex);
  free(member);
}

static struct team* make_team(const char* name, int32_t size) {
  struct team* team = calloc(1, sizeof(*team));
  pthread_condattr_t attributes;
  if (team == NULL) return NULL;
  snprintf(team->name, sizeof(team->name), "%s", name);
  team->size = size;
  pthread_mutex_init(&team->mutex, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&team->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  team->next = teams;
  teams = team;
  return team;
}

/* The team of that name, made by the first of its ranks. Under teams_mutex. */
static shw_status join(const char* name, int32_t rank, int32_t size, struct member* member,
                       shw_error** err) {
  struct team* team = teams;
  while (team != NULL && strcmp(team->name, name) != 0) team = team->next;
  if (team == NULL) team = make_team(name, size);
  if (team == NULL) return fail(err, SHW_RESOURCE_EXHAUSTED, "no memory for a team");
  if (team->size != size || team->taken[rank])
    return fail(err, SHW_INVALID_ARGUMENT, "the team has another size, or that rank already");
  team->taken[rank] = 1;
  ++team->members;
  member->team = team;
  member->rank = rank;
  return SHW_OK;
}

static shw_status open_member(void* user, const char* config, uint64_t config_size,
                              shw_communicator_vtable* vtable, shw_error** err) {
  char text[LONGEST_NAME + 32];
  char name[LONGEST_NAME];
  int rank = 0, size = 0;
  (void)user;
  snprintf(text, sizeof(text), "%.*s", (int)(config_size < 90 ? config_size : 90), config);
  if (sscanf(text, "%63s %d %d", name, &rank, &size) != 3 || size < 1 || size > MOST_RANKS ||
      rank < 0 || rank >= size)
    return fail(err, SHW_INVALID_ARGUMENT, "the config is not 'NAME RANK SIZE' with 1 to 64 ranks");
  struct member* member = calloc(1, sizeof(*member));
  if (member == NULL) return fail(err, SHW_RESOURCE_EXHAUSTED, "no memory for a rank");
  pthread_mutex_lock(&teams_mutex);
  const shw_status status = join(name, rank, size, member, err);
  pthread_mutex_unlock(&teams_mutex);
  if (status != SHW_OK) {
    free(member);
    return status;
  }
  vtable->user = member;
  vtable->rank = rank;
  vtable->size = size;
  return SHW_OK;
}

/* The one question that it knows is "ranks": how many a team may have. */
static shw_status answer(void* user, const char* question, uint64_t question_size, char** out,
                         uint64_t* out_size, shw_error** err) {
  char text[16];
  (void)user;
  if (question_size != 5 || memcmp(question, "ranks", 5) != 0)
    return fail(err, SHW_INVALID_ARGUMENT, "the only question is 'ranks'");
  const int size = snprintf(text, sizeof(text), "%d", MOST_RANKS);
  *out = the_host->allocate(NULL, (uint64_t)size, 1);
  if (*out == NULL) return fail(err, SHW_RESOURCE_EXHAUSTED, "no memory for an answer");
  memcpy(*out, text, (size_t)size);
  *out_size = (uint64_t)size;
  return SHW_OK;
}

shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err);

__attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                shw_plugin* out, shw_error** err) {
  static shw_communicator_vtable vtable = SHW_COMMUNICATOR_VTABLE_INIT;
  (void)err;
  the_host = host;
  vtable.name = "sample_team";
  vtable.capabilities = SHW_COMMUNICATOR_HOST_MEMORY | SHW_COMMUNICATOR_ASYNC;
  vtable.all_gather = all_gather;
  vtable.all_to_all = all_to_all;
  vtable.barrier = barrier;
  vtable.work_wait = work_wait;
  vtable.work_test = work_test;
  vtable.work_release = work_release;
  vtable.abort = abort_team;
  vtable.release = leave;
  out->name = "sample_team";
  out->version = "1.0";
  out->communicator = &vtable;
  out->communicator_open = open_member;
  out->answer = answer;
  return SHW_OK;
}
