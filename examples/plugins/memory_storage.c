/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects are a sorted array of (key, bytes, version). An object that is being written has bytes of
 * its own; commit moves them under the key. Everything happens under one lock. */
#include "memory_storage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERSION_BYTES = 24 }; /* of a version as text */

struct blob {
  char* key;
  uint64_t key_size;
  uint8_t* data;
  uint64_t size;
  uint64_t version;
  int64_t modified_ns;
  int readers; /* open objects that read these bytes */
  int removed; /* no longer listed; freed with the last reader */
};

struct memory_storage {
  pthread_mutex_t lock;
  struct blob** blobs; /* ascending keys */
  uint64_t count;
  uint64_t capacity;
  uint64_t next_version;
};

struct object {
  int32_t mode;
  int done; /* committed or aborted */
  char* key;
  uint64_t key_size;
  struct blob* blob; /* when reading */
  uint8_t* data;     /* when writing */
  uint64_t size;
  uint64_t capacity;
};

static const shw_host_api* the_host;

static shw_status fail(shw_error** err, shw_status code, const char* what, const char* key,
                       uint64_t key_size) {
  char message[512];
  int length = snprintf(message, sizeof(message), "memory storage: %s '%.*s'", what,
                        (int)(key_size > 256 ? 256 : key_size), key);
  shw_error_detail detail = {"file", key, key_size};
  return the_host->error_create(code, message, (uint64_t)length, &detail, 1, NULL, err);
}

static shw_status out_of_memory(shw_error** err) {
  static const char text[] = "memory storage: out of memory";
  shw_error_detail detail = {"resource", "memory", 6};
  return the_host->error_create(SHW_RESOURCE_EXHAUSTED, text, sizeof(text) - 1, &detail, 1, NULL,
                                err);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void free_blob(struct blob* blob) {
  free(blob->key);
  free(blob->data);
  free(blob);
}

static int compare(const char* a, uint64_t a_size, const char* b, uint64_t b_size) {
  uint64_t common = a_size < b_size ? a_size : b_size;
  int order = common == 0 ? 0 : memcmp(a, b, common);
  if (order != 0) return order;
  return a_size < b_size ? -1 : a_size > b_size;
}

/* First blob that is not below the key. */
static uint64_t lower_bound(const struct memory_storage* storage, const char* key, uint64_t size) {
  uint64_t low = 0, high = storage->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    const struct blob* blob = storage->blobs[middle];
    if (compare(blob->key, blob->key_size, key, size) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static struct blob* find(const struct memory_storage* storage, const char* key, uint64_t size) {
  uint64_t at = lower_bound(storage, key, size);
  if (at == storage->count) return NULL;
  struct blob* blob = storage->blobs[at];
  return compare(blob->key, blob->key_size, key, size) == 0 ? blob : NULL;
}

static void take_out(struct memory_storage* storage, struct blob* blob) {
  uint64_t at = lower_bound(storage, blob->key, blob->key_size);
  memmove(storage->blobs + at, storage->blobs + at + 1,
          (storage->count - at - 1) * sizeof(*storage->blobs));
  --storage->count;
  blob->removed = 1;
  if (blob->readers == 0) free_blob(blob);
}

/* Puts a blob where its key belongs; there is room. */
static void put_in(struct memory_storage* storage, struct blob* blob) {
  uint64_t at = lower_bound(storage, blob->key, blob->key_size);
  memmove(storage->blobs + at + 1, storage->blobs + at,
          (storage->count - at) * sizeof(*storage->blobs));
  storage->blobs[at] = blob;
  ++storage->count;
}

static int make_room(struct memory_storage* storage) {
  if (storage->count < storage->capacity) return 1;
  uint64_t capacity = storage->capacity == 0 ? 16 : storage->capacity * 2;
  struct blob** grown = realloc(storage->blobs, capacity * sizeof(*grown));
  if (grown == NULL) return 0;
  storage->blobs = grown;
  storage->capacity = capacity;
  return 1;
}

static char* copy_bytes(const char* bytes, uint64_t size) {
  char* copy = malloc(size + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, bytes, size);
  copy[size] = '\0';
  return copy;
}

/* Writes a version as text and returns its length. */
static uint64_t version_text(uint64_t version, char* text) {
  return (uint64_t)snprintf(text, VERSION_BYTES, "v%llu", (unsigned long long)version);
}

/* Moves the object's bytes under its key. Called with the lock held. */
static shw_status publish(struct memory_storage* storage, struct object* object, shw_error** err) {
  struct blob* blob = calloc(1, sizeof(*blob));
  char* key = copy_bytes(object->key, object->key_size);
  if (blob == NULL || key == NULL || !make_room(storage)) {
    free(blob);
    free(key);
    return out_of_memory(err);
  }
  struct blob* old = find(storage, object->key, object->key_size);
  if (old != NULL) take_out(storage, old);
  blob->key = key;
  blob->key_size = object->key_size;
  blob->data = object->data;
  blob->size = object->size;
  blob->version = ++storage->next_version;
  blob->modified_ns = now_ns();
  object->data = NULL;
  object->done = 1;
  put_in(storage, blob);
  return SHW_OK;
}

static void free_object(struct object* object) {
  if (object == NULL) return;
  free(object->key);
  free(object->data);
  free(object);
}

static shw_status memory_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                              void** out, shw_error** err) {
  struct memory_storage* storage = user;
  struct object* object = calloc(1, sizeof(*object));
  if (object == NULL || (object->key = copy_bytes(key, key_size)) == NULL) {
    free_object(object);
    return out_of_memory(err);
  }
  object->mode = mode;
  object->key_size = key_size;
  shw_status status = SHW_OK;
  pthread_mutex_lock(&storage->lock);
  struct blob* blob = find(storage, key, key_size);
  if (mode == SHW_STORAGE_READ && blob == NULL) {
    status = fail(err, SHW_NOT_FOUND, "no object", key, key_size);
  } else if (mode == SHW_STORAGE_CREATE_VISIBLE && blob != NULL) {
    status = fail(err, SHW_ALREADY_EXISTS, "there is an object", key, key_size);
  } else if (mode == SHW_STORAGE_READ) {
    object->blob = blob;
    ++blob->readers;
  }
  pthread_mutex_unlock(&storage->lock);
  if (status != SHW_OK) {
    free_object(object);
    return status;
  }
  *out = object;
  return SHW_OK;
}

static void memory_close(void* user, void* opaque) {
  struct memory_storage* storage = user;
  struct object* object = opaque;
  pthread_mutex_lock(&storage->lock);
  if (object->blob != NULL && --object->blob->readers == 0 && object->blob->removed) {
    free_blob(object->blob);
  }
  /* A visible write keeps what was written; an invisible one that was not committed goes. */
  if (object->mode == SHW_STORAGE_CREATE_VISIBLE && !object->done) {
    shw_error* ignored = NULL;
    if (publish(storage, object, &ignored) != SHW_OK) the_host->error_release(ignored);
  }
  pthread_mutex_unlock(&storage->lock);
  free_object(object);
}

/* The facts of a blob under a key of the caller; the version is written as text. Called with the
 * lock held. */
static shw_storage_entry entry_of(const struct blob* blob, const char* key, char* version) {
  shw_storage_entry entry = {sizeof(entry), 0, key, blob->key_size, 0, 0, NULL, 0};
  entry.size = blob->size;
  entry.modified_ns = blob->modified_ns;
  entry.version_size = version_text(blob->version, version);
  entry.version = version;
  return entry;
}

static shw_status memory_stat(void* user, const char* key, uint64_t key_size,
                              shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  struct memory_storage* storage = user;
  shw_storage_entry entry = {0};
  char version[VERSION_BYTES];
  pthread_mutex_lock(&storage->lock);
  const struct blob* blob = find(storage, key, key_size);
  if (blob != NULL) entry = entry_of(blob, key, version);
  pthread_mutex_unlock(&storage->lock);
  if (entry.struct_size == 0) return fail(err, SHW_NOT_FOUND, "no object", key, key_size);
  return sink(sink_user, &entry);
}

/* The entries are copied first, so that the sink runs without the lock. */
static shw_status memory_list(void* user, const char* prefix, uint64_t prefix_size,
                              int32_t delimiter, shw_storage_list_fn sink, void* sink_user,
                              shw_error** err) {
  struct memory_storage* storage = user;
  uint64_t count = 0;
  shw_status status = SHW_OK;
  (void)delimiter; /* all is listed; the library takes one of each level */
  pthread_mutex_lock(&storage->lock);
  shw_storage_entry* entries = calloc(storage->count + 1, sizeof(*entries));
  char(*versions)[VERSION_BYTES] = calloc(storage->count + 1, sizeof(*versions));
  for (uint64_t i = lower_bound(storage, prefix, prefix_size);
       entries != NULL && versions != NULL && i < storage->count; ++i) {
    const struct blob* blob = storage->blobs[i];
    if (blob->key_size < prefix_size || memcmp(blob->key, prefix, prefix_size) != 0) break;
    entries[count] = entry_of(blob, copy_bytes(blob->key, blob->key_size), versions[count]);
    if (entries[count].key == NULL) status = out_of_memory(err);
    if (status != SHW_OK) break;
    ++count;
  }
  pthread_mutex_unlock(&storage->lock);
  if (entries == NULL || versions == NULL) status = out_of_memory(err);
  for (uint64_t i = 0; i < count && status == SHW_OK; ++i) status = sink(sink_user, &entries[i]);
  for (uint64_t i = 0; i < count; ++i) free((char*)entries[i].key);
  free(entries);
  free(versions);
  return status;
}

static shw_status memory_read_at(void* user, void* opaque, uint64_t offset, void* data,
                                 uint64_t size, uint64_t* done, shw_error** err) {
  const struct object* object = opaque;
  const uint8_t* bytes = object->blob != NULL ? object->blob->data : object->data;
  uint64_t end = object->blob != NULL ? object->blob->size : object->size;
  (void)user;
  *done = offset >= end ? 0 : (size < end - offset ? size : end - offset);
  if (*done != 0) memcpy(data, bytes + offset, *done);
  if (*done == size) return SHW_OK;
  return fail(err, SHW_OUT_OF_RANGE, "read behind the end of", object->key, object->key_size);
}

static shw_status memory_write_at(void* user, void* opaque, uint64_t offset, const void* data,
                                  uint64_t size, shw_error** err) {
  struct object* object = opaque;
  uint64_t end = offset + size;
  (void)user;
  if (end > object->capacity) {
    uint64_t capacity = object->capacity * 2 > end ? object->capacity * 2 : end;
    uint8_t* grown = realloc(object->data, capacity);
    if (grown == NULL) return out_of_memory(err);
    object->data = grown;
    object->capacity = capacity;
  }
  if (offset > object->size) memset(object->data + object->size, 0, offset - object->size);
  if (size != 0) memcpy(object->data + offset, data, size);
  if (end > object->size) object->size = end;
  return SHW_OK;
}

static shw_status memory_truncate(void* user, void* opaque, uint64_t size, shw_error** err) {
  struct object* object = opaque;
  (void)user;
  if (size > object->size) return memory_write_at(user, opaque, size, NULL, 0, err);
  object->size = size;
  return SHW_OK;
}

static shw_status memory_sync(void* user, void* opaque, shw_error** err) {
  (void)user;
  (void)opaque;
  (void)err;
  return SHW_OK; /* memory is as durable as it gets */
}

static shw_status memory_commit(void* user, void* opaque, int32_t condition,
                                const char* expected_version, uint64_t expected_version_size,
                                shw_error** err) {
  struct memory_storage* storage = user;
  struct object* object = opaque;
  shw_status status = SHW_OK;
  char version[VERSION_BYTES];
  pthread_mutex_lock(&storage->lock);
  const struct blob* old = find(storage, object->key, object->key_size);
  uint64_t version_size = old == NULL ? 0 : version_text(old->version, version);
  int same = old != NULL && version_size == expected_version_size &&
             memcmp(version, expected_version, version_size) == 0;
  int lost = (condition == SHW_COMMIT_IF_ABSENT && old != NULL) ||
             (condition == SHW_COMMIT_IF_VERSION && !same);
  if (lost) {
    status = fail(err, SHW_ABORTED, "somebody else wrote", object->key, object->key_size);
  } else {
    status = publish(storage, object, err);
  }
  pthread_mutex_unlock(&storage->lock);
  return status;
}

static void memory_abort(void* user, void* opaque) {
  struct object* object = opaque;
  (void)user;
  object->done = 1;
}

static shw_status memory_remove(void* user, const char* key, uint64_t key_size, shw_error** err) {
  struct memory_storage* storage = user;
  (void)err;
  pthread_mutex_lock(&storage->lock);
  struct blob* blob = find(storage, key, key_size);
  if (blob != NULL) take_out(storage, blob);
  pthread_mutex_unlock(&storage->lock);
  return SHW_OK;
}

static void memory_release(void* user) {
  struct memory_storage* storage = user;
  for (uint64_t i = 0; i < storage->count; ++i) free_blob(storage->blobs[i]);
  free(storage->blobs);
  pthread_mutex_destroy(&storage->lock);
  free(storage);
}

const shw_storage_vtable* memory_storage_table(const shw_host_api* host) {
  static shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  the_host = host;
  table.capabilities =
      SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_CONDITIONAL_COMMIT | SHW_STORAGE_CONCURRENT_READ;
  table.name = "sample_memory";
  table.open = memory_open;
  table.close = memory_close;
  table.stat = memory_stat;
  table.list = memory_list;
  table.read_at = memory_read_at;
  table.write_at = memory_write_at;
  table.truncate = memory_truncate;
  table.sync = memory_sync;
  table.commit = memory_commit;
  table.abort = memory_abort;
  table.remove = memory_remove;
  table.release = memory_release;
  return &table;
}

shw_status memory_storage_open(void* user, const char* config, uint64_t config_size,
                               shw_storage_vtable* vtable, shw_error** err) {
  (void)user;
  (void)config;
  (void)config_size;
  struct memory_storage* storage = calloc(1, sizeof(*storage));
  if (storage == NULL) return out_of_memory(err);
  pthread_mutex_init(&storage->lock, NULL);
  vtable->user = storage;
  return SHW_OK;
}
