/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of a job that a test kills: a plain C program over the shipped library.
 *
 *   crash_victim PATH SCRIPT [KEY=VALUE...]
 *
 * SCRIPT is a list of operations, separated by blanks: save:N, async:N (a job that is waited for),
 * cancel:N (one that is cancelled at once), drop:N (one that is let go), keep:N (generations that
 * later saves keep), load, share:N (what was saved as N, all of it on each rank), read, gc. Keys:
 * socket, rank, ranks, log, apart (each rank says that it is on a machine of its own, and they
 * exchange what they read), format (SHW_FORMAT_ of the saves), and those of struct seam_plan.
 * Each operation ends with a report to the test, and the script with the number of its steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbered_state.h"
#include "process_collective.h"
#include "seam.h"

enum { TEXT_BYTES = 1024, MOST_SECONDS = 90 };

static int test_socket = -1;
static int32_t ranks = 1;
static struct seam_plan plan = {.log = -1};
static shw_context* context;
static shw_collective* collective;
static uint32_t keep_generations;
static int32_t format;
static int apart;
static const char* path;
static uint64_t operation;

static void tell(uint32_t kind) {
  const struct message message = {kind, 0, operation, 0, 0};
  (void)!collective_send(test_socket, message, "");
}

static void wait_for_test(void) {
  struct message answer;
  tell(MESSAGE_STOPPED);
  if (!channel_receive(test_socket, &answer, sizeof(answer))) _exit(3);
}

static void on_refused(void) {
  tell(MESSAGE_REFUSED);
}

/* Ends an operation. */
static void report(shw_status status, uint64_t number, const char* text) {
  const struct message message = {MESSAGE_REPORT, status, operation, number, strlen(text)};
  if (!collective_send(test_socket, message, text)) _exit(3);
}

static void mark(const char* word, uint64_t number) {
  char text[64];
  snprintf(text, sizeof(text), "%s %llu", word, (unsigned long long)number);
  seam_mark(text);
}

/* Ends a save. Only a success says something for certain about what is at the path. */
static void report_save(shw_status status, uint64_t number, shw_error* error) {
  if (status == SHW_OK) mark("done", number);
  report(status, number, status == SHW_OK ? "" : shw_error_message(error, NULL));
  shw_error_release(error);
}

static void fill_options(shw_save_options* options, uint64_t number, char* metadata,
                         uint64_t offsets[3]) {
  const shw_save_options zero = SHW_SAVE_OPTIONS_INIT;
  *options = zero;
  const int size = snprintf(metadata, 32, "number%llu", (unsigned long long)number);
  offsets[0] = 0;
  offsets[1] = 6;
  offsets[2] = (uint64_t)size;
  options->metadata = metadata;
  options->metadata_offsets = offsets;
  options->metadata_count = 1;
  options->keep_generations = keep_generations;
  options->format = format;
}

static void save(const char* word, uint64_t number) {
  char metadata[32];
  uint64_t offsets[3];
  shw_save_options options;
  shw_error* error = NULL;
  struct numbered_state state;
  fill_options(&options, number, metadata, offsets);
  if (!numbered_create(&state, number, plan.rank, ranks, 1)) _exit(4);
  mark("begin", number);
  if (strcmp(word, "save") == 0) {
    shw_report* out = NULL;
    const shw_status status =
        shw_save(context, state.state, NULL, path, collective, &options, &out, &error);
    shw_report_release(out);
    report_save(status, number, error);
    numbered_release(&state);
    return;
  }
  shw_job* job = NULL;
  shw_status status =
      shw_save_async(context, state.state, NULL, path, collective, &options, &job, &error);
  if (status == SHW_OK && strcmp(word, "cancel") == 0) shw_job_cancel(job);
  if (status == SHW_OK && strcmp(word, "drop") == 0) {
    shw_job_release(job);
    report(SHW_PENDING, number, "let go");
    return; /* the tensors stay until the process ends */
  }
  if (status == SHW_OK) status = shw_job_wait(job, -1, &error);
  report_save(status, number, error);
  shw_job_release(job);
  numbered_release(&state);
}

/* All ranks load what there is, into states as those of rank `of_rank` of so many that have saved
 * `like`; which number that is, the loaded object says. */
static void load(uint64_t like, int32_t of_rank, int32_t of_ranks) {
  shw_error* error = NULL;
  shw_report* out = NULL;
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  if (apart) options.exchange = SHW_EXCHANGE_ALWAYS;
  struct numbered_state state;
  if (!numbered_create(&state, like, of_rank, of_ranks, 0)) _exit(4);
  shw_status status =
      shw_load(context, state.state, NULL, path, collective, &options, &out, &error);
  uint64_t number = 0;
  if (status == SHW_OK) {
    uint64_t size = 0;
    const char* digits = shw_state_object_data(state.state, 0, &size);
    char text[24];
    snprintf(text, sizeof(text), "%.*s", (int)size, digits);
    number = strtoull(text, NULL, 10);
    if (!numbered_holds(&state, number)) status = SHW_INTERNAL;
  }
  report(status, number, status == SHW_OK ? "" : shw_error_message(error, NULL));
  shw_report_release(out);
  shw_error_release(error);
  numbered_release(&state);
}

static void read_alone(void) {
  char text[TEXT_BYTES];
  uint64_t number = 0;
  const shw_status status = numbered_read(context, path, &number, text, sizeof(text));
  report(status, number, text);
}

static void collect_garbage(void) {
  shw_error* error = NULL;
  shw_report* out = NULL;
  const shw_status status = shw_checkpoint_gc(context, NULL, path, -1, SHW_GC_APPLY, &out, &error);
  report(status, status == SHW_OK ? shw_report_name_count(out, SHW_REPORT_REMOVED) : 0,
         status == SHW_OK ? "" : shw_error_message(error, NULL));
  shw_report_release(out);
  shw_error_release(error);
}

static void run_operation(const char* word) {
  char name[16];
  const char* colon = strchr(word, ':');
  const int size = colon == NULL ? (int)strlen(word) : (int)(colon - word);
  snprintf(name, sizeof(name), "%.*s", size, word);
  const uint64_t number = colon == NULL ? 0 : strtoull(colon + 1, NULL, 10);
  if (strcmp(name, "load") == 0) {
    load(0, plan.rank, ranks);
  } else if (strcmp(name, "share") == 0) {
    load(number, 0, 1);
  } else if (strcmp(name, "read") == 0) {
    read_alone();
  } else if (strcmp(name, "gc") == 0) {
    if (plan.rank == 0) collect_garbage();
  } else if (strcmp(name, "keep") == 0) {
    keep_generations = (uint32_t)number;
  } else {
    save(name, number);
  }
  ++operation;
}

static void take_setting(const char* setting) {
  const char* equals = strchr(setting, '=');
  if (equals == NULL) _exit(2);
  const uint64_t value = strtoull(equals + 1, NULL, 10);
  const uint64_t size = (uint64_t)(equals - setting);
#define IS(key) (size == strlen(key) && strncmp(setting, key, size) == 0)
  if (IS("socket")) test_socket = (int)value;
  if (IS("rank")) plan.rank = (int32_t)value;
  if (IS("ranks")) ranks = (int32_t)value;
  if (IS("log")) plan.log = (int)value;
  if (IS("apart")) apart = (int)value;
  if (IS("format")) format = (int32_t)value;
  if (IS("kill_at")) plan.kill_at = value;
  if (IS("kill_all")) plan.kill_all = (int)value;
  if (IS("tear")) plan.tear = (int)value;
  if (IS("stop_at")) plan.stop_at = value;
  if (IS("stop_kind")) plan.stop_kind = (uint32_t)value;
  if (IS("fail_kind")) plan.fail_kind = (uint32_t)value;
  if (IS("fail_part")) plan.fail_part = equals + 1;
  if (IS("fail_errno")) plan.fail_errno = (int)value;
  if (IS("hold_kind")) plan.hold_kind = (uint32_t)value;
  if (IS("hold_name")) plan.hold_name = equals + 1;
  if (IS("until_kind")) plan.until_kind = (uint32_t)value;
  if (IS("until_name")) plan.until_name = equals + 1;
#undef IS
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: crash_victim PATH SCRIPT KEY=VALUE...\n");
    return 2;
  }
  path = argv[1];
  for (int i = 3; i < argc; ++i) take_setting(argv[i]);
  alarm(MOST_SECONDS); /* whoever hangs is ended by this, which the test tells from a kill */
#if !defined(SHW_RINGS_AT_SEAM)
  if (!seam_forbid_rings()) return 4;
#endif
  plan.on_stop = wait_for_test;
  plan.on_refused = on_refused;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  char machine[32];
  snprintf(machine, sizeof(machine), "machine %d", (int)plan.rank);
  if (apart) options.machine = machine;
  if (shw_context_create(&options, &context, NULL) != SHW_OK) return 4;
  collective = process_collective_create(test_socket, plan.rank, ranks);
  if (collective == NULL) return 4;
  seam_begin(&plan);
  char* script = strdup(argv[2]);
  char* left = NULL;
  for (char* word = strtok_r(script, " ", &left); word != NULL; word = strtok_r(NULL, " ", &left))
    run_operation(word);
  free(script);
  /* Jobs that were let go end first. */
  const shw_status ended = shw_context_shutdown(context, -1, NULL);
  const struct message done = {MESSAGE_STEPS, ended, operation, seam_steps(), 0};
  (void)!collective_send(test_socket, done, "");
  shw_collective_release(collective);
  shw_context_release(context);
  return 0;
}
