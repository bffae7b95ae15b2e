/* SPDX-License-Identifier: Apache-2.0
 *
 * What every storage promises, through the C surface: the built-in ones and the sample plugins. */
#include "support/scratch.h"
#include "support/states.h"

static shw_status put(shw_storage* storage, const char* key, const char* text, int32_t condition,
                      const char* version, shw_error** err) {
  return shw_storage_put(storage, key, strlen(key), text, strlen(text), condition, version,
                         version == NULL ? 0 : strlen(version), err);
}

static void check_read(shw_storage* storage, const char* key, uint64_t offset, const char* wanted) {
  shw_error* error = NULL;
  char data[64] = {0};
  CHECK_OK(shw_storage_read(storage, key, strlen(key), offset, data, strlen(wanted), &error));
  CHECK_TEXT(data, wanted);
}

static shw_storage_stat stat_of(shw_storage* storage, const char* key) {
  shw_error* error = NULL;
  shw_storage_stat stat = SHW_STORAGE_STAT_INIT;
  CHECK_OK(shw_storage_stat_key(storage, key, strlen(key), &stat, &error));
  return stat;
}

static void writes_reads_and_replaces(shw_storage* storage) {
  shw_error* error = NULL;
  char data[8];
  CHECK_OK(put(storage, "a/one", "first", SHW_COMMIT_NONE, NULL, &error));
  check_read(storage, "a/one", 0, "first");
  check_read(storage, "a/one", 2, "rst");
  CHECK_FAILS(shw_storage_read(storage, "a/one", 5, 3, data, 3, &error), SHW_OUT_OF_RANGE, "a/one");
  CHECK_FAILS(shw_storage_read(storage, "a/two", 5, 0, data, 1, &error), SHW_NOT_FOUND, "a/two");
  CHECK_INT(stat_of(storage, "a/one").size, 5);
  CHECK_OK(put(storage, "a/one", "second!", SHW_COMMIT_NONE, NULL, &error));
  check_read(storage, "a/one", 0, "second!");
  CHECK_OK(put(storage, "empty", "", SHW_COMMIT_NONE, NULL, &error));
  CHECK_INT(stat_of(storage, "empty").size, 0);
}

static void commits_under_conditions(shw_storage* storage) {
  shw_error* error = NULL;
  if ((shw_storage_capabilities(storage) & SHW_STORAGE_CONDITIONAL_COMMIT) == 0) return;
  CHECK_OK(put(storage, "c", "1", SHW_COMMIT_IF_ABSENT, NULL, &error));
  CHECK_STATUS(put(storage, "c", "2", SHW_COMMIT_IF_ABSENT, NULL, &error), SHW_ABORTED);
  check_read(storage, "c", 0, "1");
  shw_buffer* told = NULL;
  char version[1025] = {0};
  CHECK_OK(shw_storage_version(storage, "c", 1, &told, &error));
  CHECK(shw_buffer_size(told) > 0 && shw_buffer_size(told) < sizeof(version));
  memcpy(version, shw_buffer_data(told), shw_buffer_size(told));
  shw_buffer_release(told);
  CHECK_OK(put(storage, "c", "3", SHW_COMMIT_IF_VERSION, version, &error));
  CHECK_STATUS(put(storage, "c", "4", SHW_COMMIT_IF_VERSION, version, &error), SHW_ABORTED);
  check_read(storage, "c", 0, "3");
}

static void lists_in_byte_order(shw_storage* storage) {
  shw_error* error = NULL;
  shw_buffer* keys = NULL;
  static const char* const names[] = {"l/b", "l/a/x", "l/a-", "l/a", "m"};
  static const char* const wanted[] = {"l/a-", "l/a/x", "l/b"};
  for (int i = 0; i < 5; ++i) {
    if (i == 3) continue; /* "l/a" cannot be beside "l/a/x" in a file system */
    CHECK_OK(put(storage, names[i], "x", SHW_COMMIT_NONE, NULL, &error));
  }
  CHECK_OK(shw_storage_list(storage, "l/", 2, 0, &keys, &error));
  CHECK_INT(shw_buffer_part_count(keys), 3);
  for (uint64_t i = 0; i < 3; ++i) {
    CHECK_INT(shw_buffer_part_size(keys, i), strlen(wanted[i]));
    CHECK(memcmp(shw_buffer_part_data(keys, i), wanted[i], strlen(wanted[i])) == 0);
  }
  shw_buffer_release(keys);
  keys = NULL;
  CHECK_OK(shw_storage_list(storage, "nothing/", 8, 0, &keys, &error));
  CHECK_INT(shw_buffer_part_count(keys), 0);
  shw_buffer_release(keys);
}

static void lists_one_level(shw_storage* storage) {
  shw_error* error = NULL;
  shw_buffer* keys = NULL;
  static const char* const names[] = {"d/a/1", "d/a/2/x", "d/b", "d/c/1"};
  static const char* const wanted[] = {"d/a/", "d/b", "d/c/"};
  for (int i = 0; i < 4; ++i) CHECK_OK(put(storage, names[i], "x", SHW_COMMIT_NONE, NULL, &error));
  CHECK_OK(shw_storage_list(storage, "d/", 2, SHW_STORAGE_DELIMITER, &keys, &error));
  CHECK_INT(shw_buffer_part_count(keys), 3);
  for (uint64_t i = 0; i < 3; ++i) {
    CHECK_INT(shw_buffer_part_size(keys, i), strlen(wanted[i]));
    CHECK(memcmp(shw_buffer_part_data(keys, i), wanted[i], strlen(wanted[i])) == 0);
  }
  shw_buffer_release(keys);
  keys = NULL;
  CHECK_FAILS(shw_storage_list(storage, "d/", 2, ':', &keys, &error), SHW_INVALID_ARGUMENT,
              "delimiter");
}

static void removes(shw_storage* storage) {
  shw_error* error = NULL;
  shw_storage_stat stat = SHW_STORAGE_STAT_INIT;
  CHECK_OK(put(storage, "r/x", "x", SHW_COMMIT_NONE, NULL, &error));
  CHECK_OK(shw_storage_remove(storage, "r/x", 3, &error));
  CHECK_STATUS(shw_storage_stat_key(storage, "r/x", 3, &stat, &error), SHW_NOT_FOUND);
  CHECK_OK(shw_storage_remove(storage, "r/x", 3, &error));
}

static void refuses_bad_keys(shw_storage* storage) {
  static const char* const keys[] = {"/a", "a//b", "a/../b", ".", "a/./b", "a/"};
  shw_error* error = NULL;
  for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
    CHECK_FAILS(put(storage, keys[i], "x", SHW_COMMIT_NONE, NULL, &error), SHW_INVALID_ARGUMENT,
                "storage key");
  }
}

/* A checkpoint goes through: save, overwrite, open, read back. */
static void carries_a_checkpoint(shw_storage* storage) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  float values[6] = {0, 1, 2, 3, 4, 5};
  for (int round = 0; round < 2; ++round) {
    shw_state* state = make_state();
    shw_report* report = NULL;
    values[0] = (float)round;
    add_floats(state, "w", values, SHAPE(2, 3), 2);
    add_object(state, "config", "application/json", "{}");
    CHECK_OK(shw_save(context, state, storage, "run/last", NULL, NULL, &report, &error));
    shw_report_release(report);
    shw_state_release(state);
  }
  float loaded[6] = {0};
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "w", loaded, SHAPE(2, 3), 2);
  CHECK_OK(shw_load(context, state, storage, "run/last", NULL, NULL, &report, &error));
  CHECK(memcmp(loaded, values, sizeof(values)) == 0);
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_UNEXPECTED), 1);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void conforms(shw_storage* storage) {
  CHECK(strlen(shw_storage_name(storage, NULL)) > 0);
  writes_reads_and_replaces(storage);
  commits_under_conditions(storage);
  lists_in_byte_order(storage);
  lists_one_level(storage);
  removes(storage);
  refuses_bad_keys(storage);
  carries_a_checkpoint(storage);
  shw_storage_release(storage);
}

static void posix_conforms(void) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  CHECK_OK(
      shw_storage_create_posix(path_in(scratch_directory(), "made/on/demand"), &storage, &error));
  conforms(storage);
}

static void memory_conforms(void) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  CHECK_OK(shw_storage_create_memory(&storage, &error));
  conforms(storage);
}

static void plugin_conforms(const char* name) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_context* context = make_context();
  CHECK_OK(shw_context_load_plugin(context, name, &error));
  CHECK_OK(shw_context_open_storage(context, name, "", 0, &storage, &error));
  shw_context_release(context);
  conforms(storage);
}
static void sample_memory_plugin_conforms(void) {
  plugin_conforms("sample_memory");
}
static void sample_faulty_plugin_without_faults_conforms(void) {
  plugin_conforms("sample_faulty");
}

TEST_MAIN(TEST_ENTRY(posix_conforms), TEST_ENTRY(memory_conforms),
          TEST_ENTRY(sample_memory_plugin_conforms),
          TEST_ENTRY(sample_faulty_plugin_without_faults_conforms))
