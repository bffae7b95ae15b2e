/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages of the host at the edges of what the table allows, and beyond: capabilities that a save
 * needs or must do without, and functions whose answers break the rules. The latter are faults of
 * the functions and are told as such, never as damage of the checkpoint. */
#include <pthread.h>

#include "support/host_storage.h"
#include "support/states.h"

enum { MANY = 1 << 20 };

static float few[2] = {1, 2};
static float many[MANY];

static shw_status save_floats(shw_storage* storage, float* data, int64_t count, shw_error** err) {
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "w", data, SHAPE(count), 1);
  const shw_status status = shw_save(context, state, storage, "run", NULL, NULL, &report, err);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
  return status;
}

static shw_status load_floats(shw_storage* storage, float* data, int64_t count, shw_error** err) {
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "w", data, SHAPE(count), 1);
  const shw_status status = shw_load(context, state, storage, "run", NULL, NULL, &report, err);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
  return status;
}

static uint64_t count_keys(shw_storage* storage) {
  shw_error* error = NULL;
  shw_buffer* keys = NULL;
  CHECK_OK(shw_storage_list(storage, "", 0, &keys, &error));
  const uint64_t count = shw_buffer_part_count(keys);
  shw_buffer_release(keys);
  return count;
}

/* The sample takes one write at a time. */
static shw_storage_vtable sample;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static shw_status one_write_at_a_time(void* user, void* object, uint64_t offset, const void* data,
                                      uint64_t size, shw_error** err) {
  pthread_mutex_lock(&writing);
  const shw_status status = sample.write_at(user, object, offset, data, size, err);
  pthread_mutex_unlock(&writing);
  return status;
}

/* Files of such a storage are CREATE_VISIBLE, written at positions, synced and closed, never
 * committed and never cut. */
static void positions_and_direct_transfers_carry_a_large_file(void) {
  shw_error* error = NULL;
  sample = host_table();
  shw_storage_vtable table = sample;
  table.capabilities =
      SHW_STORAGE_POSITIONAL_WRITE | SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_DIRECT_IO;
  table.alignment = 4096;
  table.write_at = one_write_at_a_time;
  shw_storage* storage = storage_of_table(&table);
  for (int i = 0; i < MANY; ++i) many[i] = (float)i;
  CHECK_OK(save_floats(storage, many, MANY, &error));
  float* found = calloc(MANY, sizeof(float));
  CHECK_OK(load_floats(storage, found, MANY, &error));
  CHECK(memcmp(found, many, sizeof(many)) == 0);
  free(found);
  shw_storage_release(storage);
}

static void a_save_needs_atomic_commits(void) {
  shw_error* error = NULL;
  for (uint64_t capabilities = 0; capabilities < 8; ++capabilities) {
    if ((capabilities & SHW_STORAGE_ATOMIC_COMMIT) != 0) continue;
    shw_storage_vtable table = host_table();
    table.capabilities = capabilities;
    shw_storage* storage = storage_of_table(&table);
    CHECK_FAILS(save_floats(storage, few, 2, &error), SHW_FAILED_PRECONDITION, "ATOMIC_COMMIT");
    CHECK_INT(count_keys(storage), 0);
    shw_storage_release(storage);
  }
}

/* How the slots of the storage under test lie. */
static enum lie {
  HONEST,
  READS_TOO_MUCH,
  READS_TOO_LITTLE,
  ENDS_EARLY,
  ENDS_LATE,
  ANSWERS_MINUS_ONE,
  ANSWERS_PENDING,
  STATS_MINUS_ONE,
  LISTS_OTHERS,
  LISTS_NOTHING,
  OPENS_NOTHING
} lie;

static shw_status lying_read(void* user, void* object, uint64_t offset, void* data, uint64_t size,
                             uint64_t* done, shw_error** err) {
  const shw_status status = sample.read_at(user, object, offset, data, size, done, err);
  if (status != SHW_OK || size == 0) return status;
  if (lie == READS_TOO_MUCH) *done = size + 1;
  if (lie == READS_TOO_LITTLE || lie == ENDS_EARLY) *done = size / 2;
  if (lie == ENDS_EARLY || lie == ENDS_LATE) return SHW_OUT_OF_RANGE;
  return lie == ANSWERS_MINUS_ONE ? -1 : lie == ANSWERS_PENDING ? SHW_PENDING : SHW_OK;
}
static shw_status lying_stat(void* user, const char* key, uint64_t key_size, shw_storage_stat* out,
                             shw_error** err) {
  const shw_status status = sample.stat(user, key, key_size, out, err);
  if (lie == STATS_MINUS_ONE) out->size = UINT64_MAX;
  return status;
}
static shw_status lying_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                             void** object, shw_error** err) {
  if (lie == OPENS_NOTHING) return SHW_OK;
  return sample.open(user, key, key_size, mode, object, err);
}
static shw_status lying_list(void* user, const char* prefix, uint64_t prefix_size,
                             shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  shw_storage_entry entry = SHW_STORAGE_ENTRY_INIT;
  entry.key = lie == LISTS_NOTHING ? NULL : "elsewhere";
  entry.key_size = 9;
  if (lie == LISTS_OTHERS || lie == LISTS_NOTHING) return sink(sink_user, &entry);
  return sample.list(user, prefix, prefix_size, sink, sink_user, err);
}

static shw_storage* liar(void) {
  lie = HONEST;
  sample = host_table();
  shw_storage_vtable table = sample;
  table.read_at = lying_read;
  table.stat = lying_stat;
  table.open = lying_open;
  table.list = lying_list;
  return storage_of_table(&table);
}

static void answers_that_break_the_rules_are_faults_of_the_function(void) {
  static const struct {
    enum lie lie;
    const char* slot;
    const char* answer;
    shw_status status;
  } cases[] = {{READS_TOO_MUCH, "read_at", "bytes of", SHW_INTERNAL},
               {READS_TOO_LITTLE, "read_at", "bytes of", SHW_INTERNAL},
               {ENDS_EARLY, "read_at", "bytes of", SHW_INTERNAL},
               {ENDS_LATE, "read_at", "bytes of", SHW_INTERNAL},
               {ANSWERS_MINUS_ONE, "read_at", "status -1", SHW_UNKNOWN},
               {ANSWERS_PENDING, "read_at", "status 32", SHW_UNKNOWN},
               {STATS_MINUS_ONE, "stat", "18446744073709551615", SHW_INTERNAL},
               {OPENS_NOTHING, "open", "without", SHW_INTERNAL}};
  shw_error* error = NULL;
  float found[2];
  shw_storage* storage = liar();
  CHECK_OK(save_floats(storage, few, 2, &error));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    lie = cases[i].lie;
    const shw_status status = load_floats(storage, found, 2, &error);
    const char* message = shw_error_message(error, NULL);
    if (status != cases[i].status || strstr(message, cases[i].slot) == NULL ||
        strstr(message, cases[i].answer) == NULL || strstr(message, "storage 'host'") == NULL) {
      fprintf(stderr, "case %zu gives %s: %s\n", i, shw_status_name(status), message);
      exit(1);
    }
    shw_error_release(error);
    error = NULL;
  }
  lie = HONEST;
  CHECK_OK(load_floats(storage, found, 2, &error));
  shw_storage_release(storage);
}

static void keys_that_were_not_asked_for_are_faults_of_list(void) {
  shw_error* error = NULL;
  shw_buffer* keys = NULL;
  shw_storage* storage = liar();
  lie = LISTS_OTHERS;
  CHECK_FAILS(shw_storage_list(storage, "run/", 4, &keys, &error), SHW_INTERNAL, "'elsewhere'");
  lie = LISTS_NOTHING;
  CHECK_FAILS(shw_storage_list(storage, "run/", 4, &keys, &error), SHW_INTERNAL, "list of 'run/'");
  lie = HONEST;
  shw_storage_release(storage);
}

TEST_MAIN(TEST_ENTRY(positions_and_direct_transfers_carry_a_large_file),
          TEST_ENTRY(a_save_needs_atomic_commits),
          TEST_ENTRY(answers_that_break_the_rules_are_faults_of_the_function),
          TEST_ENTRY(keys_that_were_not_asked_for_are_faults_of_list))
