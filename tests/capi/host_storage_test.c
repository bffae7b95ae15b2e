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

static shw_status save_floats_as(int32_t format, const char* path, shw_storage* storage,
                                 float* data, int64_t count, shw_error** err) {
  shw_context* context = make_context();
  shw_state* state = make_state();
  shw_report* report = NULL;
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.format = format;
  add_floats(state, "w", data, SHAPE(count), 1);
  const shw_status status = shw_save(context, state, storage, path, NULL, &options, &report, err);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
  return status;
}

static shw_status save_floats(shw_storage* storage, float* data, int64_t count, shw_error** err) {
  return save_floats_as(SHW_FORMAT_NATIVE, "run", storage, data, count, err);
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
  CHECK_OK(shw_storage_list(storage, "", 0, 0, &keys, &error));
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

/* Files of such a storage are CREATE_VISIBLE, written in aligned blocks, truncated to their length,
 * synced and closed, never committed. */
static uint64_t unaligned_writes;
static shw_status aligned_write(void* user, void* object, uint64_t offset, const void* data,
                                uint64_t size, shw_error** err) {
  unaligned_writes += (offset | size | (uintptr_t)data) % 4096 != 0;
  return one_write_at_a_time(user, object, offset, data, size, err);
}

static void positions_and_direct_transfers_carry_a_large_file(void) {
  shw_error* error = NULL;
  sample = host_table();
  shw_storage_vtable table = sample;
  table.capabilities =
      SHW_STORAGE_POSITIONAL_WRITE | SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_DIRECT_IO;
  table.alignment = 4096;
  table.write_at = aligned_write;
  shw_storage* storage = storage_of_table(&table);
  for (int i = 0; i < MANY; ++i) many[i] = (float)i;
  CHECK_OK(save_floats(storage, many, MANY, &error));
  CHECK_INT(unaligned_writes, 1); /* the manifest */
  float* found = calloc(MANY, sizeof(float));
  CHECK_OK(load_floats(storage, found, MANY, &error));
  CHECK(memcmp(found, many, sizeof(many)) == 0);
  free(found);
  shw_storage_release(storage);
}

static void a_save_needs_atomic_commits(void) {
  shw_error* error = NULL;
  for (uint64_t capabilities = 0; capabilities < 16; ++capabilities) {
    if ((capabilities & SHW_STORAGE_ATOMIC_COMMIT) != 0) continue;
    shw_storage_vtable table = host_table();
    table.capabilities = capabilities;
    shw_storage* storage = storage_of_table(&table);
    CHECK_FAILS(save_floats(storage, few, 2, &error), SHW_FAILED_PRECONDITION, "ATOMIC_COMMIT");
    CHECK_INT(count_keys(storage), 0);
    shw_storage_release(storage);
  }
}

/* Ranks write into files that they share, and open the one file by a name before its commit. */
static void safetensors_need_positions_and_names(void) {
  shw_error* error = NULL;
  shw_storage_vtable table = host_table();
  shw_storage* storage = storage_of_table(&table);
  CHECK_FAILS(save_floats_as(SHW_FORMAT_SAFETENSORS, "run", storage, few, 2, &error),
              SHW_FAILED_PRECONDITION, "does not offer POSITIONAL_WRITE");
  CHECK_INT(count_keys(storage), 0);
  shw_storage_release(storage);
  table = host_table();
  table.capabilities |= SHW_STORAGE_POSITIONAL_WRITE;
  storage = storage_of_table(&table);
  CHECK_FAILS(save_floats_as(SHW_FORMAT_SAFETENSORS, "x.safetensors", storage, few, 2, &error),
              SHW_FAILED_PRECONDITION, "no name for a file before its commit");
  CHECK_INT(count_keys(storage), 0);
  shw_storage_release(storage);
}

/* A table promises no more than it can do. */
static void capabilities_bring_what_they_need(void) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_storage_vtable table = host_table();
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_DIRECT_IO;
  table.truncate = NULL;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "DIRECT_IO");
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_MULTIPART;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "MULTIPART");
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT;
  table.part_bytes = 1;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "MULTIPART");
  table.part_bytes = 0;
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT | 128;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT,
              "unknown ones: 128");
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT;
  CHECK_OK(shw_storage_create(&table, &storage, &error));
  shw_storage_release(storage);
}

static void a_put_names_the_capability_that_it_lacks(void) {
  shw_error* error = NULL;
  shw_storage_vtable table = host_table();
  table.capabilities = SHW_STORAGE_CONDITIONAL_COMMIT;
  shw_storage* storage = storage_of_table(&table);
  CHECK_FAILS(shw_storage_put(storage, "k", 1, "x", 1, SHW_COMMIT_NONE, NULL, 0, &error),
              SHW_FAILED_PRECONDITION, "ATOMIC_COMMIT");
  CHECK_INT(count_keys(storage), 0);
  shw_storage_release(storage);
  table = host_table();
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT;
  storage = storage_of_table(&table);
  CHECK_FAILS(shw_storage_put(storage, "k", 1, "x", 1, SHW_COMMIT_IF_ABSENT, NULL, 0, &error),
              SHW_FAILED_PRECONDITION, "CONDITIONAL_COMMIT");
  CHECK_INT(count_keys(storage), 0);
  shw_storage_release(storage);
}

/* The report says what a save is worth by the capability, not by a name. */
static void a_report_says_whether_the_storage_is_durable(void) {
  shw_error* error = NULL;
  for (int durable = 0; durable < 2; ++durable) {
    shw_storage_vtable table = host_table();
    table.name = durable ? "memory" : "posix";
    table.capabilities = SHW_STORAGE_ATOMIC_COMMIT | (durable ? SHW_STORAGE_DURABLE : 0);
    shw_storage* storage = storage_of_table(&table);
    shw_context* context = make_context();
    shw_state* state = make_state();
    shw_report* report = NULL;
    add_floats(state, "w", few, SHAPE(2), 1);
    CHECK_OK(shw_save(context, state, storage, "run", NULL, NULL, &report, &error));
    const char* wanted = durable ? "\"durability\":\"full\"" : "\"durability\":\"volatile\"";
    CHECK(strstr(shw_report_json(report, NULL), wanted) != NULL);
    shw_report_release(report);
    shw_state_release(state);
    shw_context_release(context);
    shw_storage_release(storage);
  }
}

/* The root of a table is no object, so opening it there says that nothing is there. */
static void the_root_of_a_storage_is_no_object(void) {
  shw_error* error = NULL;
  shw_storage_vtable table = host_table();
  shw_storage* storage = storage_of_table(&table);
  shw_context* context = make_context();
  shw_checkpoint* checkpoint = NULL;
  CHECK_STATUS(shw_checkpoint_open(context, storage, "", NULL, &checkpoint, &error), SHW_NOT_FOUND);
  shw_error_release(error);
  shw_context_release(context);
  shw_storage_release(storage);
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
  STATS_OTHERS,
  STATS_NULL_VERSION,
  STATS_BAD_VERSION,
  STATS_NOTHING,
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
static shw_status lying_stat(void* user, const char* key, uint64_t key_size,
                             shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  shw_storage_entry entry = SHW_STORAGE_ENTRY_INIT;
  entry.key = lie == STATS_OTHERS ? "p/elsewhere" : key;
  entry.key_size = lie == STATS_OTHERS ? 11 : key_size;
  if (lie == STATS_MINUS_ONE) entry.size = UINT64_MAX;
  if (lie == STATS_NULL_VERSION) entry.version_size = 3;
  entry.version = lie == STATS_BAD_VERSION ? "\xff\xfe" : NULL;
  if (lie == STATS_BAD_VERSION) entry.version_size = 2;
  if (lie == STATS_NOTHING) return SHW_OK;
  if (lie >= STATS_MINUS_ONE && lie <= STATS_NOTHING) return sink(sink_user, &entry);
  return sample.stat(user, key, key_size, sink, sink_user, err);
}
static shw_status lying_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                             void** object, shw_error** err) {
  if (lie == OPENS_NOTHING) return SHW_OK;
  return sample.open(user, key, key_size, mode, object, err);
}
static shw_status lying_list(void* user, const char* prefix, uint64_t prefix_size,
                             int32_t delimiter, shw_storage_list_fn sink, void* sink_user,
                             shw_error** err) {
  shw_storage_entry entry = SHW_STORAGE_ENTRY_INIT;
  entry.key = lie == LISTS_NOTHING ? NULL : "elsewhere";
  entry.key_size = 9;
  if (lie == LISTS_OTHERS || lie == LISTS_NOTHING) return sink(sink_user, &entry);
  return sample.list(user, prefix, prefix_size, delimiter, sink, sink_user, err);
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
               {STATS_OTHERS, "stat", "elsewhere", SHW_INTERNAL},
               {STATS_NULL_VERSION, "stat", "3 bytes at NULL", SHW_INTERNAL},
               {STATS_BAD_VERSION, "stat", "no UTF-8", SHW_INTERNAL},
               {STATS_NOTHING, "stat", "without calling the sink", SHW_INTERNAL},
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

/* A function that says of a missing key that it is missing. */
static shw_status remove_what_is_there(void* user, const char* key, uint64_t key_size,
                                       shw_error** err) {
  void* object = NULL;
  const shw_status status = sample.open(user, key, key_size, SHW_STORAGE_READ, &object, err);
  if (status != SHW_OK) return status;
  sample.close(user, object);
  return sample.remove(user, key, key_size, err);
}

static void a_key_that_is_not_there_need_not_be_removed(void) {
  shw_error* error = NULL;
  sample = host_table();
  shw_storage_vtable table = sample;
  table.remove = remove_what_is_there;
  shw_storage* storage = storage_of_table(&table);
  CHECK_OK(shw_storage_remove(storage, "k", 1, &error));
  CHECK_OK(shw_storage_put(storage, "k", 1, "x", 1, SHW_COMMIT_NONE, NULL, 0, &error));
  CHECK_OK(shw_storage_remove(storage, "k", 1, &error));
  CHECK_INT(count_keys(storage), 0);
  /* It removes its marker before it is there, and what a killed save has left of any file. */
  CHECK_OK(save_floats_as(SHW_FORMAT_MEGATRON, "run", storage, few, 2, &error));
  float found[2] = {0, 0};
  CHECK_OK(load_floats(storage, found, 2, &error));
  CHECK(found[0] == few[0] && found[1] == few[1]);
  shw_storage_release(storage);
}

static void keys_that_were_not_asked_for_are_faults_of_list(void) {
  shw_error* error = NULL;
  shw_buffer* keys = NULL;
  shw_storage* storage = liar();
  lie = LISTS_OTHERS;
  CHECK_FAILS(shw_storage_list(storage, "run/", 4, 0, &keys, &error), SHW_INTERNAL, "'elsewhere'");
  lie = LISTS_NOTHING;
  CHECK_FAILS(shw_storage_list(storage, "run/", 4, 0, &keys, &error), SHW_INTERNAL,
              "list of 'run/'");
  lie = HONEST;
  shw_storage_release(storage);
}

TEST_MAIN(TEST_ENTRY(positions_and_direct_transfers_carry_a_large_file),
          TEST_ENTRY(a_save_needs_atomic_commits), TEST_ENTRY(safetensors_need_positions_and_names),
          TEST_ENTRY(capabilities_bring_what_they_need),
          TEST_ENTRY(a_put_names_the_capability_that_it_lacks),
          TEST_ENTRY(a_report_says_whether_the_storage_is_durable),
          TEST_ENTRY(the_root_of_a_storage_is_no_object),
          TEST_ENTRY(answers_that_break_the_rules_are_faults_of_the_function),
          TEST_ENTRY(a_key_that_is_not_there_need_not_be_removed),
          TEST_ENTRY(keys_that_were_not_asked_for_are_faults_of_list))
