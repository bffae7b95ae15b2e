/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole calls in which memory runs out: the n-th allocation fails, for every n until the call needs
 * no more, once alone and together with all that follow it, on one of two ranks and in the whole
 * process. Whatever n: a status, on time; the same outcome on all ranks; the old checkpoint or the
 * new one at the path, and nothing else beside it; and with memory the call succeeds again.
 *
 * This program's malloc stands in front of the C library's, and operator new of libstdc++ calls it.
 * SHW_STARVED_STRIDE=k tries every k-th n. */
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

/* ---- memory that runs out ---- */

static atomic_int armed, everywhere, once, fired;
static _Atomic int64_t countdown;
static __thread int starving; /* this thread counts also where not everything does */
static __thread int exempt;   /* the harness itself */

/* Where the first allocation failed, for whoever has to look into it. */
enum { FRAMES = 48 };
static void* frames[FRAMES];
static int frame_count;

static void note_place(void) {
  exempt = 1;
  frame_count = backtrace(frames, FRAMES);
  exempt = 0;
}

static int must_fail(void) {
  if (!atomic_load_explicit(&armed, memory_order_relaxed) || exempt) return 0;
  if (!atomic_load_explicit(&everywhere, memory_order_relaxed) && !starving) return 0;
  const int64_t left = atomic_fetch_sub(&countdown, 1);
  const int fails = once ? left == 0 : left <= 0;
  if (fails && atomic_exchange(&fired, 1) == 0) note_place();
  return fails;
}

#define EXPORTED __attribute__((visibility("default")))

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

EXPORTED void* malloc(size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_malloc(size);
}
EXPORTED void* calloc(size_t count, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_calloc(count, size);
}
EXPORTED void* realloc(void* memory, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_realloc(memory, size);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  return must_fail() ? (errno = ENOMEM, NULL) : __libc_memalign(alignment, size);
}

/* ---- ranks, and a deadline for all of them ---- */

enum { MOST_RANKS = 2, FLOATS = 64, DEADLINE_SECONDS = 120, NOBODY = -1 };

enum outcome { DONE, FAILED, UNKNOWN };

struct member {
  int32_t rank;
  int starves;
  shw_context* context;
  shw_state* state;  /* what it saves */
  shw_state* target; /* what it loads into */
  float values[FLOATS], loaded[FLOATS];
  shw_collective* collective;
  enum outcome outcome;
  pthread_t thread;
};

typedef shw_status (*call_function)(struct member* member, shw_error** err);

struct series {
  const char* name;
  call_function call;
  int32_t ranks;
  int commits; /* it makes a new generation when it succeeds */
};

static struct member members[MOST_RANKS];
static const struct series* current;
static const char* path;
static int64_t current_n;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static int finished, started;

static void fail(const char* what) {
  fprintf(stderr, "%s, %s, %s, allocation %lld: %s\n", current->name,
          everywhere           ? "everywhere"
          : members[0].starves ? "rank 0"
                               : "rank 1",
          once ? "once" : "from there on", (long long)current_n, what);
  for (int32_t i = 0; i < current->ranks; ++i) {
    static const char* const names[] = {"done", "failed", "unknown"};
    fprintf(stderr, "  rank %d: %s\n", i, names[members[i].outcome]);
  }
  fflush(stderr);
  backtrace_symbols_fd(frames, frame_count, 2);
  _Exit(1);
}

static enum outcome outcome_of(shw_status status, const shw_error* error) {
  if (status == SHW_OK) return DONE;
  const char* key = NULL;
  const char* value = NULL;
  uint64_t size = 0;
  for (uint64_t i = 0; i < shw_error_detail_count(error); ++i) {
    shw_error_detail detail;
    if (shw_error_detail_at(error, i, &detail) != SHW_OK) continue;
    key = detail.key, value = detail.value, size = detail.value_size;
    if (strcmp(key, "commit") == 0 && size == 7 && memcmp(value, "unknown", 7) == 0) return UNKNOWN;
  }
  if (status == SHW_RESOURCE_EXHAUSTED) return FAILED;
  fprintf(stderr, "%s: %s\n", shw_status_name(status), shw_error_message(error, NULL));
  fail("a status that is none of memory");
  return FAILED;
}

static void* run_member(void* opaque) {
  struct member* member = opaque;
  shw_error* error = NULL;
  pthread_mutex_lock(&mutex);
  while (!started) pthread_cond_wait(&begun, &mutex);
  pthread_mutex_unlock(&mutex);
  starving = member->starves;
  const shw_status status = current->call(member, &error);
  starving = 0;
  exempt = 1;
  member->outcome = outcome_of(status, error);
  shw_error_release(error);
  exempt = 0;
  pthread_mutex_lock(&mutex);
  ++finished;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void make_group(int32_t ranks) {
  shw_error* error = NULL;
  shw_collective_group* group = NULL;
  members[0].collective = NULL;
  if (ranks == 1) return;
  CHECK_OK(shw_collective_group_create(ranks, &group, &error));
  for (int32_t i = 0; i < ranks; ++i)
    CHECK_OK(shw_collective_group_member(group, i, &members[i].collective, &error));
  shw_collective_group_release(group);
}

/* Runs the call on all ranks while the n-th allocation fails; n < 0: none does. */
static void run(int64_t n) {
  make_group(current->ranks);
  finished = started = 0;
  current_n = n;
  atomic_store(&fired, 0);
  atomic_store(&countdown, n);
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += DEADLINE_SECONDS;
  pthread_mutex_lock(&mutex);
  for (int32_t i = 0; i < current->ranks; ++i)
    CHECK(pthread_create(&members[i].thread, NULL, run_member, &members[i]) == 0);
  atomic_store(&armed, n >= 0);
  started = 1;
  pthread_cond_broadcast(&begun);
  while (finished < current->ranks) {
    if (pthread_cond_timedwait(&changed, &mutex, &deadline) == ETIMEDOUT) fail("it does not end");
  }
  atomic_store(&armed, 0);
  pthread_mutex_unlock(&mutex);
  for (int32_t i = 0; i < current->ranks; ++i) {
    CHECK(pthread_join(members[i].thread, NULL) == 0);
    shw_collective_release(members[i].collective);
  }
}

/* ---- what lies at the path ---- */

static char generation[64]; /* that the manifest names */

static void read_generation(char* out) {
  shw_error* error = NULL;
  shw_checkpoint* checkpoint = NULL;
  if (shw_checkpoint_open(members[0].context, NULL, path, NULL, &checkpoint, &error) != SHW_OK)
    fail(shw_error_message(error, NULL));
  snprintf(out, sizeof(generation), "%s", shw_checkpoint_generation(checkpoint, NULL));
  shw_checkpoint_release(checkpoint);
}

/* Nothing lies beside the manifest, the lock and one generation, or two of an unknown outcome. */
static void check_directory(int unknown) {
  int generations = 0;
  DIR* directory = opendir(path);
  CHECK(directory != NULL);
  for (const struct dirent* entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, "manifest.shw") == 0) continue;
    if (strlen(entry->d_name) != 32) fail(entry->d_name);
    ++generations;
  }
  closedir(directory);
  if (generations > 1 + unknown) fail("a generation is left behind");
}

/* What an unknown outcome leaves is gc's. */
static void collect_garbage(void) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_gc(members[0].context, NULL, path, -1, SHW_GC_APPLY, &report, &error));
  shw_report_release(report);
}

static int64_t unknown_outcomes, successes, failures;

/* After a run in which memory ran out. */
static void check_outcome(void) {
  int done = 0, failed = 0, unknown = 0;
  for (int32_t i = 0; i < current->ranks; ++i) {
    done += members[i].outcome == DONE;
    failed += members[i].outcome == FAILED;
    unknown += members[i].outcome == UNKNOWN;
  }
  unknown_outcomes += unknown > 0, successes += done > 0, failures += failed > 0;
  if (done > 0 && failed > 0) fail("it succeeds on one rank and fails on the other");
  if (unknown > 0 && !current->commits) fail("a call that commits nothing does not know");
  if (!current->commits) return;
  char now[sizeof(generation)];
  read_generation(now);
  const int changed_now = strcmp(now, generation) != 0;
  if (done > 0 && !changed_now) fail("it succeeds without a new checkpoint");
  if (failed > 0 && changed_now) fail("it fails and leaves a new checkpoint");
  check_directory(unknown > 0);
  if (unknown > 0) collect_garbage();
  memcpy(generation, now, sizeof(now));
}

/* With memory the call does what it should. */
static void check_recovery(void) {
  run(NOBODY);
  for (int32_t i = 0; i < current->ranks; ++i) {
    if (members[i].outcome != DONE) fail("with memory it fails as well");
  }
  if (!current->commits) return;
  read_generation(generation);
  check_directory(/*unknown=*/0);
}

/* ---- the calls ---- */

static shw_status save_now(struct member* member, shw_error** err) {
  shw_report* report = NULL;
  const shw_status status =
      shw_save(member->context, member->state, NULL, path, member->collective, NULL, &report, err);
  if ((report != NULL) != (status == SHW_OK)) fail("a report without success, or the other way");
  shw_report_release(report);
  return status;
}

static void note_end(void* user) {
  (void)sem_post(user);
}

static shw_status save_later(struct member* member, shw_error** err) {
  shw_job* job = NULL;
  sem_t ended;
  shw_status status = shw_save_async(member->context, member->state, NULL, path, member->collective,
                                     NULL, &job, err);
  if (status != SHW_OK) return status;
  CHECK(sem_init(&ended, 0, 0) == 0);
  const int told = shw_job_on_done(job, note_end, &ended, NULL) == SHW_OK;
  status = shw_job_wait(job, -1, err);
  shw_job_release(job);
  if (told) CHECK(sem_wait(&ended) == 0); /* it ended without memory, and tells so all the same */
  CHECK(sem_destroy(&ended) == 0);
  return status;
}

static shw_status load_now(struct member* member, shw_error** err) {
  shw_report* report = NULL;
  memset(member->loaded, 0, sizeof(member->loaded));
  const shw_status status =
      shw_load(member->context, member->target, NULL, path, member->collective, NULL, &report, err);
  if (status == SHW_OK && memcmp(member->loaded, member->values, sizeof(member->values)) != 0)
    fail("it loads other values");
  shw_report_release(report);
  return status;
}

static shw_status open_now(struct member* member, shw_error** err) {
  shw_checkpoint* checkpoint = NULL;
  const shw_status status =
      shw_checkpoint_open(member->context, NULL, path, NULL, &checkpoint, err);
  shw_checkpoint_release(checkpoint);
  return status;
}

static shw_status verify_now(struct member* member, shw_error** err) {
  shw_checkpoint* checkpoint = NULL;
  shw_report* report = NULL;
  shw_status status = shw_checkpoint_open(member->context, NULL, path, NULL, &checkpoint, err);
  if (status == SHW_OK) status = shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, err);
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  return status;
}

static shw_status gc_now(struct member* member, shw_error** err) {
  shw_report* report = NULL;
  const shw_status status =
      shw_checkpoint_gc(member->context, NULL, path, -1, SHW_GC_APPLY, &report, err);
  shw_report_release(report);
  return status;
}

static shw_status create_context(struct member* member, shw_error** err) {
  (void)member;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  const shw_status status = shw_context_create(&options, &context, err);
  shw_context_release(context);
  return status;
}

/* ---- series ---- */

enum { RECOVERY_STEP = 64 };

static void run_to_the_end(void) {
  static int64_t stride;
  if (stride == 0) stride = getenv("SHW_STARVED_STRIDE") ? atoll(getenv("SHW_STARVED_STRIDE")) : 1;
  unknown_outcomes = successes = failures = 0;
  int64_t tried = 0;
  for (int64_t n = 0;; n += stride) {
    run(n);
    ++tried;
    if (!atomic_load(&fired)) break;
    check_outcome();
    if (tried % RECOVERY_STEP == 0) check_recovery();
  }
  check_recovery();
  printf("  %s, %s, %s: %lld calls, %lld failed, %lld succeeded, %lld unknown\n", current->name,
         everywhere           ? "everywhere"
         : members[0].starves ? "rank 0"
                              : "rank 1",
         once ? "once" : "from there on", (long long)tried, (long long)failures,
         (long long)successes, (long long)unknown_outcomes);
  if (failures == 0) fail("memory is never missed");
}

static void run_series(const struct series* series) {
  current = series;
  check_recovery();
  for (int mode = 0; mode < 2; ++mode) {
    once = mode == 0;
    for (int32_t who = NOBODY; who < series->ranks; ++who) {
      if (series->ranks == 1 && who != NOBODY) continue; /* the whole process is that rank */
      everywhere = who == NOBODY;
      for (int32_t i = 0; i < MOST_RANKS; ++i) members[i].starves = i == who;
      run_to_the_end();
    }
  }
}

static void set_up(void) {
  exempt = 1;
  frame_count = backtrace(frames, FRAMES); /* the first one loads a library */
  if (path != NULL) return;
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  path = path_in(scratch_directory(), "c");
  shw_error* error = NULL;
  for (int32_t i = 0; i < MOST_RANKS; ++i) {
    struct member* member = &members[i];
    member->rank = i;
    shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    CHECK_OK(shw_context_create(&options, &member->context, &error));
    member->state = make_state();
    member->target = make_state();
    for (int k = 0; k < FLOATS; ++k) member->values[k] = (float)(k + 1);
    /* The same on all ranks, so that one rank can load what two saved. */
    add_floats(member->state, "weights.of.a.layer", member->values, SHAPE(FLOATS / 4, 4), 2);
    add_floats(member->target, "weights.of.a.layer", member->loaded, SHAPE(FLOATS / 4, 4), 2);
    add_object(member->state, "step", "application/json", "{\"step\": 100}");
  }
  save_at(members[0].context, members[0].state, path);
}

#define SERIES(function, call, ranks, commits)                             \
  static void function(void) {                                             \
    static const struct series series = {#function, call, ranks, commits}; \
    set_up();                                                              \
    run_series(&series);                                                   \
  }

SERIES(one_rank_saves, save_now, 1, 1)
SERIES(two_ranks_save, save_now, 2, 1)
SERIES(one_rank_saves_in_the_background, save_later, 1, 1)
SERIES(two_ranks_save_in_the_background, save_later, 2, 1)
SERIES(one_rank_loads, load_now, 1, 0)
SERIES(two_ranks_load, load_now, 2, 0)
SERIES(checkpoints_are_opened, open_now, 1, 0)
SERIES(checkpoints_are_verified, verify_now, 1, 0)
SERIES(garbage_is_collected, gc_now, 1, 0)
SERIES(contexts_are_made, create_context, 1, 0)

TEST_MAIN(TEST_ENTRY(contexts_are_made), TEST_ENTRY(one_rank_saves), TEST_ENTRY(two_ranks_save),
          TEST_ENTRY(one_rank_saves_in_the_background),
          TEST_ENTRY(two_ranks_save_in_the_background), TEST_ENTRY(one_rank_loads),
          TEST_ENTRY(two_ranks_load), TEST_ENTRY(checkpoints_are_opened),
          TEST_ENTRY(checkpoints_are_verified), TEST_ENTRY(garbage_is_collected))
