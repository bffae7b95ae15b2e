/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins and host tables: search order, refusals that name the slot, release exactly once, errors
 * of a host that come out as they went in, faults at every storage call. */
#include <dlfcn.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

static const char* plugin_directory(void) {
  const char* directory = getenv("SHW_TEST_PLUGINS");
  CHECK(directory != NULL);
  return directory;
}

/* A table with every required slot; none of them is called. */
static shw_status never_open(void* user, const char* key, uint64_t size, int32_t mode,
                             void** object, shw_error** err) {
  (void)user, (void)key, (void)size, (void)mode, (void)object, (void)err;
  return SHW_INTERNAL;
}
static void no_object(void* user, void* object) {
  (void)user, (void)object;
}
static shw_status host_exception(void* user, const char* key, uint64_t size,
                                 shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  (void)user, (void)key, (void)size, (void)sink, (void)sink_user;
  return shw_error_create(SHW_HOST_EXCEPTION, "from the host", 13, NULL, 0, NULL, err);
}
static shw_status bare_status(void* user, const char* prefix, uint64_t size, int32_t delimiter,
                              shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  (void)user, (void)prefix, (void)size, (void)delimiter, (void)sink, (void)sink_user, (void)err;
  return SHW_UNAVAILABLE;
}
static shw_status strange_status(void* user, const char* key, uint64_t size, shw_error** err) {
  (void)user, (void)key, (void)size, (void)err;
  return 77;
}
static shw_status never_read(void* user, void* object, uint64_t offset, void* data, uint64_t size,
                             uint64_t* done, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)done, (void)err;
  return SHW_INTERNAL;
}
static shw_status never_write(void* user, void* object, uint64_t offset, const void* data,
                              uint64_t size, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)err;
  return SHW_INTERNAL;
}
static shw_status never_sync(void* user, void* object, shw_error** err) {
  (void)user, (void)object, (void)err;
  return SHW_INTERNAL;
}
static shw_status never_commit(void* user, void* object, int32_t condition, const char* version,
                               uint64_t version_size, shw_error** err) {
  (void)user, (void)object, (void)condition, (void)version, (void)version_size, (void)err;
  return SHW_INTERNAL;
}
static void count_release(void* user) {
  ++*(int*)user;
}

static shw_storage_vtable full_table(int* releases) {
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  table.name = "host";
  table.user = releases;
  table.open = never_open;
  table.close = no_object;
  table.stat = host_exception;
  table.list = bare_status;
  table.read_at = never_read;
  table.write_at = never_write;
  table.sync = never_sync;
  table.commit = never_commit;
  table.abort = no_object;
  table.remove = strange_status;
  table.release = count_release;
  return table;
}

/* Has every slot; nothing calls them. */
static shw_collective_vtable full_transport(void) {
  shw_collective_vtable transport = SHW_COLLECTIVE_VTABLE_INIT;
  transport.name = "host";
  transport.size = 1;
  transport.barrier = (shw_collective_barrier_fn)(void*)never_open;
  transport.broadcast = (shw_collective_broadcast_fn)(void*)never_open;
  transport.all_gather = (shw_collective_all_gather_fn)(void*)never_open;
  transport.all_gather_v = (shw_collective_all_gather_v_fn)(void*)never_open;
  transport.all_reduce_i64 = (shw_collective_all_reduce_fn)(void*)never_open;
  transport.abort = (shw_collective_abort_fn)(void*)never_open;
  return transport;
}

static void a_table_without_a_required_slot_is_refused(void) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  int releases = 0;
  shw_storage_vtable table = full_table(&releases);
  table.commit = NULL;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "'commit'");
  table = full_table(&releases);
  table.lock = (shw_storage_lock_fn)(void*)never_open;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "unlock");
  table = full_table(&releases);
  static const uint32_t versions[][2] = {{SHW_ABI_MAJOR + 1, SHW_ABI_MINOR},
                                         {SHW_ABI_MAJOR, SHW_ABI_MINOR + 1},
                                         {SHW_ABI_MAJOR, SHW_ABI_MINOR - 1}};
  for (int i = 0; i < 3; ++i) {
    table.abi_major = versions[i][0];
    table.abi_minor = versions[i][1];
    CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_UNIMPLEMENTED,
                "interface version");
  }
  table = full_table(&releases);
  table.alignment = 3;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_INVALID_ARGUMENT, "alignment");
  table = full_table(&releases);
  table.reserved1 = &table;
  CHECK_FAILS(shw_storage_create(&table, &storage, &error), SHW_UNIMPLEMENTED, "value at byte 168");
  CHECK(storage == NULL && releases == 0);

  shw_collective* collective = NULL;
  shw_collective_vtable transport = SHW_COLLECTIVE_VTABLE_INIT;
  transport.name = "host";
  CHECK_FAILS(shw_collective_create(&transport, &collective, &error), SHW_INVALID_ARGUMENT,
              "barrier");
  transport = full_transport();
  for (int i = 0; i < 3; ++i) {
    transport.abi_major = versions[i][0];
    transport.abi_minor = versions[i][1];
    CHECK_FAILS(shw_collective_create(&transport, &collective, &error), SHW_UNIMPLEMENTED,
                "interface version");
  }
}

static void errors_of_the_host_come_out_as_they_went_in(void) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_buffer* keys = NULL;
  int releases = 0;
  shw_storage_stat stat = SHW_STORAGE_STAT_INIT;
  const shw_storage_vtable table = full_table(&releases);
  CHECK_OK(shw_storage_create(&table, &storage, &error));
  CHECK_FAILS(shw_storage_stat_key(storage, "k", 1, &stat, &error), SHW_HOST_EXCEPTION,
              "from the host");
  CHECK_FAILS(shw_storage_list(storage, "", 0, 0, &keys, &error), SHW_UNAVAILABLE, "no message");
  CHECK_FAILS(shw_storage_remove(storage, "k", 1, &error), SHW_UNKNOWN, "answered status 77");
  shw_storage_release(storage);
  CHECK_INT(releases, 1);
}

static void plugins_are_found_by_name_file_and_manifest(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  shw_buffer* list = NULL;
  const char* directory = scratch_directory();
  char manifest[600];
  const int length = snprintf(manifest, sizeof(manifest),
                              "{\"name\":\"renamed\",\"file\":\"other.so\",\"abi_major\":0}");
  write_file(path_in(directory, "renamed.shw-plugin.json"), manifest, (uint64_t)length);
  options.plugin_path = directory;
  CHECK_OK(shw_context_create(&options, &context, &error));
  CHECK_OK(shw_context_plugins(context, &list, &error));
  CHECK(strstr(shw_buffer_data(list), "\"renamed\"") != NULL);
  CHECK(strstr(shw_buffer_data(list), "sample_memory") != NULL); /* from SHW_PLUGIN_PATH */
  shw_buffer_release(list);
  CHECK_FAILS(shw_context_load_plugin(context, "renamed", &error), SHW_NOT_FOUND, "other.so");
  CHECK_FAILS(shw_context_load_plugin(context, "no_such_plugin", &error), SHW_NOT_FOUND,
              "no_such_plugin");
  CHECK_OK(shw_context_load_plugin(context, "sample_memory", &error));
  CHECK_OK(shw_context_load_plugin(
      context, path_in(plugin_directory(), "libshardwright_sample_memory.so"), &error));
  list = NULL;
  CHECK_OK(shw_context_plugins(context, &list, &error));
  CHECK(strstr(shw_buffer_data(list), "\"loaded\":true") != NULL);
  shw_buffer_release(list);
  shw_context_release(context);
}

static void directories_of_the_options_come_first(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  const char* directory = scratch_directory();
  write_file(path_in(directory, "libshardwright_sample_memory.so"), "no library", 10);
  options.plugin_path = directory;
  CHECK_OK(shw_context_create(&options, &context, &error));
  CHECK_FAILS(shw_context_load_plugin(context, "sample_memory", &error), SHW_INVALID_ARGUMENT,
              directory);
  shw_context_release(context);
}

static void what_is_no_plugin_is_refused(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  shw_storage* storage = NULL;
  shw_collective* collective = NULL;
  Dl_info info;
  CHECK(dladdr((void*)shw_save, &info) != 0);
  CHECK_FAILS(shw_context_load_plugin(context, info.dli_fname, &error), SHW_INVALID_ARGUMENT,
              "shw_plugin_v1");
  CHECK_FAILS(shw_context_open_storage(context, "sample_pair", "", 0, &storage, &error),
              SHW_NOT_FOUND, "load it first");
  CHECK_OK(shw_context_load_plugin(context, "sample_pair", &error));
  CHECK_FAILS(shw_context_open_storage(context, "sample_pair", "", 0, &storage, &error),
              SHW_UNIMPLEMENTED, "no storage");
  CHECK_FAILS(
      shw_context_open_collective(context, "sample_pair", "nonsense", 8, &collective, &error),
      SHW_INVALID_ARGUMENT, "PATH");
  shw_context_release(context);
}

/* Saves with one fault; afterwards there is a whole checkpoint, or none when the save failed. */
static void save_with_fault(shw_context* context, const char* fault, shw_status wanted) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_checkpoint* checkpoint = NULL;
  shw_report* report = NULL;
  float values[4] = {1, 2, 3, 4};
  shw_state* state = make_state();
  add_floats(state, "w", values, SHAPE(4), 1);
  CHECK_OK(
      shw_context_open_storage(context, "sample_faulty", fault, strlen(fault), &storage, &error));
  const shw_status status = shw_save(context, state, storage, "c", NULL, NULL, &report, &error);
  if (status != SHW_OK) {
    CHECK_INT(status, wanted);
    CHECK(strstr(shw_error_message(error, NULL), "fails on request") != NULL);
    CHECK(report == NULL);
  }
  shw_error_release(error);
  error = NULL;
  shw_report_release(report);
  shw_status opened = shw_checkpoint_open(context, storage, "c", NULL, &checkpoint, &error);
  if (opened == wanted) { /* the fault was not due before */
    shw_error_release(error);
    error = NULL;
    opened = shw_checkpoint_open(context, storage, "c", NULL, &checkpoint, &error);
  }
  CHECK(opened == SHW_OK || (status != SHW_OK && opened == SHW_NOT_FOUND));
  shw_error_release(error);
  shw_checkpoint_release(checkpoint);
  shw_storage_release(storage);
  shw_state_release(state);
}

static void a_save_survives_a_fault_at_every_call(void) {
  static const char* const slots[] = {"open", "write_at", "sync", "commit"};
  shw_error* error = NULL;
  shw_context* context = make_context();
  CHECK_OK(shw_context_load_plugin(context, "sample_faulty", &error));
  for (size_t slot = 0; slot < sizeof(slots) / sizeof(slots[0]); ++slot) {
    for (int number = 1; number <= 6; ++number) {
      char fault[32];
      snprintf(fault, sizeof(fault), "%s:%d:%d", slots[slot], number, SHW_RESOURCE_EXHAUSTED);
      save_with_fault(context, fault, SHW_RESOURCE_EXHAUSTED);
    }
  }
  save_with_fault(context, "write_at:1:34", SHW_HOST_EXCEPTION);
  shw_storage* storage = NULL;
  CHECK_FAILS(shw_context_open_storage(context, "sample_faulty", "nonsense", 8, &storage, &error),
              SHW_INVALID_ARGUMENT, "nonsense");
  shw_context_release(context);
}

static int log_lines;
static void count_lines(void* user, int32_t level, const shw_log_record* record) {
  (void)level;
  CHECK(user == &log_lines);
  CHECK(record->struct_size >= SHW_LOG_RECORD_SIZE_V1 && record->message_size > 0);
  CHECK(record->time_ns > 0 && record->component != NULL);
  __atomic_add_fetch(&log_lines, 1, __ATOMIC_RELAXED);
}

static const shw_host_api* captured;
static void the_host_table_works(void) {
  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
  options.log = count_lines;
  options.log_user = &log_lines;
  CHECK_OK(shw_context_create(&options, &context, &error));
  /* The probe plugin gives its host table to the program that asks for it. */
  CHECK_OK(shw_context_load_plugin(context, path_in(plugin_directory(), "libshardwright_probe.so"),
                                   &error));
  void* library = dlopen(path_in(plugin_directory(), "libshardwright_probe.so"), RTLD_NOW);
  CHECK(library != NULL);
  captured = *(const shw_host_api**)dlsym(library, "probe_host");
  CHECK(captured != NULL && captured->struct_size == sizeof(*captured));
  CHECK_INT(captured->abi_major, SHW_ABI_MAJOR);
  log_lines = 0;
  captured->log_write(SHW_LOG_INFO, "probe", "hello", 5);
  CHECK_INT(log_lines, 1);
  captured->log_write(99, "probe", "ignored", 7);
  CHECK_INT(log_lines, 1);
  void* memory = captured->allocate(NULL, 100, 64);
  CHECK(memory != NULL && ((uintptr_t)memory & 63) == 0);
  captured->release(NULL, memory, 100, 64);
  CHECK(captured->allocate(NULL, 100, 3) == NULL);
  CHECK_TEXT(captured->api->status_name(SHW_ABORTED), "ABORTED");
  shw_context_release(context);
}

static void a_plugin_that_lacks_a_slot_is_refused_as_a_whole(void) {
  shw_error* error = NULL;
  shw_context* context = make_context();
  CHECK(setenv("SHW_PROBE_PLUGIN", "missing_slot", 1) == 0);
  CHECK_FAILS(shw_context_load_plugin(
                  context, path_in(plugin_directory(), "libshardwright_probe_broken.so"), &error),
              SHW_INVALID_ARGUMENT, "'read_at'");
  static const char* const versions[] = {"new_version", "new_minor", "old_minor"};
  for (int i = 0; i < 3; ++i) {
    CHECK(setenv("SHW_PROBE_PLUGIN", versions[i], 1) == 0);
    CHECK_FAILS(shw_context_load_plugin(
                    context, path_in(plugin_directory(), "libshardwright_probe_broken.so"), &error),
                SHW_UNIMPLEMENTED, "interface version");
  }
  CHECK(setenv("SHW_PROBE_PLUGIN", "error", 1) == 0);
  CHECK_FAILS(shw_context_load_plugin(
                  context, path_in(plugin_directory(), "libshardwright_probe_broken.so"), &error),
              SHW_UNAVAILABLE, "the probe fails");
  shw_context_release(context);
}

static void a_plugin_answers_questions_that_it_knows(void) {
  shw_context* context = make_context();
  shw_error* error = NULL;
  shw_buffer* answer = NULL;
  CHECK_FAILS(shw_context_ask_plugin(context, "sample_team", "ranks", 5, &answer, &error),
              SHW_NOT_FOUND, "load it first");
  CHECK_OK(shw_context_load_plugin(context, "sample_team", &error));
  CHECK_OK(shw_context_load_plugin(context, "sample_memory", &error));
  CHECK_OK(shw_context_ask_plugin(context, "sample_team", "ranks", 5, &answer, &error));
  CHECK_INT(shw_buffer_size(answer), 2);
  CHECK(memcmp(shw_buffer_data(answer), "64", 2) == 0);
  shw_buffer_release(answer);
  CHECK_FAILS(shw_context_ask_plugin(context, "sample_team", NULL, 0, &answer, &error),
              SHW_INVALID_ARGUMENT, "ask plugin 'sample_team'");
  CHECK_FAILS_WITH(shw_context_ask_plugin(context, "sample_memory", "ranks", 5, &answer, &error),
                   SHW_UNIMPLEMENTED, "answers no questions", "plugin", "sample_memory");
  shw_context_release(context);
}

static void communicators_and_devices_come_from_plugins_that_have_them(void) {
  shw_context* context = make_context();
  shw_error* error = NULL;
  shw_communicator* communicator = NULL;
  shw_communicator* again = NULL;
  shw_device* device = NULL;
  shw_buffer* list = NULL;
  CHECK_OK(shw_context_load_plugin(context, "sample_team", &error));
  CHECK_FAILS(
      shw_context_open_communicator(context, "sample_team", "a 0", 3, &communicator, &error),
      SHW_INVALID_ARGUMENT, "NAME RANK SIZE");
  CHECK_OK(
      shw_context_open_communicator(context, "sample_team", "a 0 2", 5, &communicator, &error));
  CHECK_FAILS(shw_context_open_communicator(context, "sample_team", "a 0 2", 5, &again, &error),
              SHW_INVALID_ARGUMENT, "open a communicator of 'sample_team'");
  CHECK_FAILS_WITH(shw_context_open_device(context, "sample_team", NULL, 0, &device, &error),
                   SHW_UNIMPLEMENTED, "has no device", "plugin", "sample_team");
  CHECK_OK(shw_context_plugins(context, &list, &error));
  CHECK(strstr(shw_buffer_data(list), "\"communicator\"") != NULL);
  shw_buffer_release(list);
  shw_context_release(context);
  CHECK_INT(shw_communicator_size(communicator), 2); /* it keeps its plugin */
  shw_communicator_release(communicator);
}

TEST_MAIN(TEST_ENTRY(a_table_without_a_required_slot_is_refused),
          TEST_ENTRY(errors_of_the_host_come_out_as_they_went_in),
          TEST_ENTRY(plugins_are_found_by_name_file_and_manifest),
          TEST_ENTRY(directories_of_the_options_come_first),
          TEST_ENTRY(what_is_no_plugin_is_refused),
          TEST_ENTRY(a_save_survives_a_fault_at_every_call), TEST_ENTRY(the_host_table_works),
          TEST_ENTRY(a_plugin_that_lacks_a_slot_is_refused_as_a_whole),
          TEST_ENTRY(communicators_and_devices_come_from_plugins_that_have_them),
          TEST_ENTRY(a_plugin_answers_questions_that_it_knows))
