/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin "sample_faulty": a storage in memory that fails on request. The config text lists faults
 * "slot:number:status", separated by spaces: "write_at:2:8" lets the second write_at fail with
 * status 8 (RESOURCE_EXHAUSTED). Slots: open stat list read_at write_at sync commit remove. A write
 * that fails has written the first half of its bytes, as a full disk does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_storage.h"

enum slot { OPEN, STAT, LIST, READ_AT, WRITE_AT, SYNC, COMMIT, REMOVE, SLOT_COUNT };
static const char* const slot_names[SLOT_COUNT] = {"open",     "stat", "list",   "read_at",
                                                   "write_at", "sync", "commit", "remove"};
enum { MOST_FAULTS = 16 };

struct fault {
  enum slot slot;
  uint64_t number;
  shw_status status;
};

struct faulty_storage {
  pthread_mutex_t lock;
  shw_storage_vtable inner;
  uint64_t calls[SLOT_COUNT];
  struct fault faults[MOST_FAULTS];
  int fault_count;
};

static const shw_host_api* the_host;

/* OK, or the status of the fault that is due at this call. */
static shw_status next_call(struct faulty_storage* storage, enum slot slot, shw_error** err) {
  shw_status status = SHW_OK;
  pthread_mutex_lock(&storage->lock);
  uint64_t number = ++storage->calls[slot];
  for (int i = 0; i < storage->fault_count; ++i) {
    const struct fault* fault = &storage->faults[i];
    if (fault->slot == slot && fault->number == number) status = fault->status;
  }
  pthread_mutex_unlock(&storage->lock);
  if (status == SHW_OK) return SHW_OK;
  char message[128];
  int length =
      snprintf(message, sizeof(message), "faulty storage: call %llu of %s fails on request",
               (unsigned long long)number, slot_names[slot]);
  return the_host->error_create(status, message, (uint64_t)length, NULL, 0, NULL, err);
}

static shw_status faulty_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                              void** object, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, OPEN, err);
  if (status != SHW_OK) return status;
  return storage->inner.open(storage->inner.user, key, key_size, mode, object, err);
}

static void faulty_close(void* user, void* object) {
  struct faulty_storage* storage = user;
  storage->inner.close(storage->inner.user, object);
}

static shw_status faulty_stat(void* user, const char* key, uint64_t key_size,
                              shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, STAT, err);
  if (status != SHW_OK) return status;
  return storage->inner.stat(storage->inner.user, key, key_size, sink, sink_user, err);
}

static shw_status faulty_list(void* user, const char* prefix, uint64_t prefix_size,
                              int32_t delimiter, shw_storage_list_fn sink, void* sink_user,
                              shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, LIST, err);
  if (status != SHW_OK) return status;
  return storage->inner.list(storage->inner.user, prefix, prefix_size, delimiter, sink, sink_user,
                             err);
}

static shw_status faulty_read_at(void* user, void* object, uint64_t offset, void* data,
                                 uint64_t size, uint64_t* done, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, READ_AT, err);
  if (status != SHW_OK) return status;
  return storage->inner.read_at(storage->inner.user, object, offset, data, size, done, err);
}

static shw_status faulty_write_at(void* user, void* object, uint64_t offset, const void* data,
                                  uint64_t size, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, WRITE_AT, err);
  if (status == SHW_OK) {
    return storage->inner.write_at(storage->inner.user, object, offset, data, size, err);
  }
  shw_error* second = NULL;
  if (storage->inner.write_at(storage->inner.user, object, offset, data, size / 2, &second) !=
      SHW_OK) {
    the_host->error_release(second);
  }
  return status;
}

static shw_status faulty_sync(void* user, void* object, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, SYNC, err);
  return status != SHW_OK ? status : storage->inner.sync(storage->inner.user, object, err);
}

static shw_status faulty_commit(void* user, void* object, int32_t condition,
                                const char* expected_version, uint64_t expected_version_size,
                                shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, COMMIT, err);
  if (status != SHW_OK) return status;
  return storage->inner.commit(storage->inner.user, object, condition, expected_version,
                               expected_version_size, err);
}

static void faulty_abort(void* user, void* object) {
  struct faulty_storage* storage = user;
  storage->inner.abort(storage->inner.user, object);
}

static shw_status faulty_remove(void* user, const char* key, uint64_t key_size, shw_error** err) {
  struct faulty_storage* storage = user;
  shw_status status = next_call(storage, REMOVE, err);
  return status != SHW_OK ? status : storage->inner.remove(storage->inner.user, key, key_size, err);
}

static void faulty_release(void* user) {
  struct faulty_storage* storage = user;
  storage->inner.release(storage->inner.user);
  pthread_mutex_destroy(&storage->lock);
  free(storage);
}

/* Reads one "slot:number:status"; 0 when the text is no fault. */
static int read_fault(const char* text, struct fault* fault) {
  char name[16];
  unsigned long long number = 0;
  int status = 0;
  if (sscanf(text, "%15[a-z_]:%llu:%d", name, &number, &status) != 3) return 0;
  for (int i = 0; i < SLOT_COUNT; ++i) {
    if (strcmp(name, slot_names[i]) != 0) continue;
    fault->slot = (enum slot)i;
    fault->number = number;
    fault->status = status;
    return 1;
  }
  return 0;
}

static shw_status bad_config(const char* word, shw_error** err) {
  char message[128];
  int length = snprintf(message, sizeof(message), "faulty storage: '%.64s' is no fault", word);
  return the_host->error_create(SHW_INVALID_ARGUMENT, message, (uint64_t)length, NULL, 0, NULL,
                                err);
}

static shw_status read_config(struct faulty_storage* storage, const char* config, uint64_t size,
                              shw_error** err) {
  char text[512];
  if (size >= sizeof(text)) return bad_config("(too long)", err);
  memcpy(text, config, size);
  text[size] = '\0';
  char* rest = NULL;
  for (char* word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    if (storage->fault_count == MOST_FAULTS ||
        !read_fault(word, &storage->faults[storage->fault_count])) {
      return bad_config(word, err);
    }
    ++storage->fault_count;
  }
  return SHW_OK;
}

static shw_status faulty_storage_open(void* user, const char* config, uint64_t config_size,
                                      shw_storage_vtable* vtable, shw_error** err) {
  struct faulty_storage* storage = calloc(1, sizeof(*storage));
  if (storage == NULL) return SHW_RESOURCE_EXHAUSTED;
  pthread_mutex_init(&storage->lock, NULL);
  storage->inner = *memory_storage_table(the_host);
  shw_status status = read_config(storage, config, config_size, err);
  if (status == SHW_OK) status = memory_storage_open(user, NULL, 0, &storage->inner, err);
  if (status != SHW_OK) {
    free(storage);
    return status;
  }
  vtable->user = storage;
  return SHW_OK;
}

__attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                shw_plugin* out, shw_error** err);

shw_status shw_plugin_v1(const shw_host_api* host, shw_plugin* out, shw_error** err) {
  static shw_storage_vtable table;
  (void)err;
  the_host = host;
  table = *memory_storage_table(host);
  table.name = "sample_faulty";
  table.open = faulty_open;
  table.close = faulty_close;
  table.stat = faulty_stat;
  table.list = faulty_list;
  table.read_at = faulty_read_at;
  table.write_at = faulty_write_at;
  table.sync = faulty_sync;
  table.commit = faulty_commit;
  table.abort = faulty_abort;
  table.remove = faulty_remove;
  table.release = faulty_release;
  out->name = "sample_faulty";
  out->version = "0.1";
  out->storage = &table;
  out->storage_open = faulty_storage_open;
  return SHW_OK;
}
