/* SPDX-License-Identifier: Apache-2.0
 *
 * The storage table over a Java HostStorageBridge. Objects are numbers that the bridge gives.
 * Threads of the library are attached as daemons; an exception becomes HOST_EXCEPTION and is put
 * aside. */
#include <stdio.h>

#include "bindings/java/native/native.h"

static struct {
  jmethodID open, close, stat, version, list, read_at, write_at, truncate, sync, commit, abort,
      remove, space, lock, unlock, capabilities, alignment, part_bytes;
} methods;

int shw_java_bind_storage(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/storage/HostStorageBridge");
  if (type == NULL) return -1;
  methods.open = (*env)->GetMethodID(env, type, "open", "([BI)J");
  methods.close = (*env)->GetMethodID(env, type, "close", "(J)V");
  methods.stat = (*env)->GetMethodID(env, type, "stat", "([B)[J");
  methods.version = (*env)->GetMethodID(env, type, "version", "([J)[B");
  methods.list = (*env)->GetMethodID(env, type, "list", "([BI)[[B");
  methods.read_at = (*env)->GetMethodID(env, type, "readAt", "(JJLjava/nio/ByteBuffer;)J");
  methods.write_at = (*env)->GetMethodID(env, type, "writeAt", "(JJLjava/nio/ByteBuffer;)V");
  methods.truncate = (*env)->GetMethodID(env, type, "truncate", "(JJ)V");
  methods.sync = (*env)->GetMethodID(env, type, "sync", "(J)V");
  methods.commit = (*env)->GetMethodID(env, type, "commit", "(JI[B)V");
  methods.abort = (*env)->GetMethodID(env, type, "abort", "(J)V");
  methods.remove = (*env)->GetMethodID(env, type, "remove", "([B)V");
  methods.space = (*env)->GetMethodID(env, type, "space", "([B)J");
  methods.lock = (*env)->GetMethodID(env, type, "lock", "([BI)J");
  methods.unlock = (*env)->GetMethodID(env, type, "unlock", "(J)V");
  methods.capabilities = (*env)->GetMethodID(env, type, "capabilities", "()J");
  methods.alignment = (*env)->GetMethodID(env, type, "alignment", "()J");
  methods.part_bytes = (*env)->GetMethodID(env, type, "partBytes", "()J");
  return (*env)->ExceptionCheck(env) ? -1 : 0;
}

static shw_status storage_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                               void** object, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, key, key_size);
  const jlong opened =
      text != NULL ? (*env)->CallLongMethod(env, user, methods.open, text, (jint)mode) : 0;
  const shw_status status = shw_java_leave(env, err);
  if (status == SHW_OK) *object = (void*)(intptr_t)opened;
  return status;
}

static void call_object(void* user, void* object, jmethodID method) {
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  (*env)->CallVoidMethod(env, user, method, (jlong)(intptr_t)object);
  shw_java_leave(env, NULL); /* close, abort and unlock have no way to fail */
}

static void storage_close(void* user, void* object) {
  call_object(user, object, methods.close);
}
static void storage_abort(void* user, void* object) {
  call_object(user, object, methods.abort);
}

/* Gives a key with its size, time and version to the sink; SHW_UNKNOWN with an exception. A key
 * that ends in "/" is a level of a listing and has none. */
static shw_status sink_key(JNIEnv* env, void* user, jbyteArray key, shw_storage_list_fn sink,
                           void* sink_user) {
  jlong values[3] = {0, 0, 0}; /* size, modified, number of the version */
  ShwJavaBytes text;
  ShwJavaBytes version = {0};
  jbyteArray told = NULL;
  shw_storage_entry entry = SHW_STORAGE_ENTRY_INIT;
  entry.key = shw_java_pin(env, key, &text);
  entry.key_size = text.size;
  const int is_level = text.size > 0 && entry.key[text.size - 1] == '/';
  if (!is_level) {
    jlongArray found = (*env)->CallObjectMethod(env, user, methods.stat, key);
    if (!(*env)->ExceptionCheck(env) && found != NULL) {
      (*env)->GetLongArrayRegion(env, found, 0, 3, values);
      told = (*env)->CallObjectMethod(env, user, methods.version, found);
    }
    (*env)->DeleteLocalRef(env, found);
  }
  shw_status status = SHW_UNKNOWN;
  if (!(*env)->ExceptionCheck(env) && (is_level || told != NULL)) {
    entry.size = (uint64_t)values[0];
    entry.modified_ns = values[1];
    entry.version = told != NULL ? shw_java_pin(env, told, &version) : NULL;
    entry.version_size = version.size;
    status = sink(sink_user, &entry);
    if (told != NULL) shw_java_unpin(env, told, &version);
  }
  (*env)->DeleteLocalRef(env, told);
  shw_java_unpin(env, key, &text);
  return status;
}

static shw_status storage_stat(void* user, const char* key, uint64_t key_size,
                               shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, key, key_size);
  const shw_status taken = text != NULL ? sink_key(env, user, text, sink, sink_user) : SHW_OK;
  const shw_status status = shw_java_leave(env, err);
  return status != SHW_OK ? status : taken;
}

static shw_status storage_list(void* user, const char* prefix, uint64_t prefix_size,
                               int32_t delimiter, shw_storage_list_fn sink, void* sink_user,
                               shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  shw_status stopped = SHW_OK;
  jbyteArray text = shw_java_bytes(env, prefix, prefix_size);
  jobjectArray keys = text != NULL
                          ? (*env)->CallObjectMethod(env, user, methods.list, text, (jint)delimiter)
                          : NULL;
  if (!(*env)->ExceptionCheck(env) && keys != NULL) {
    const jsize count = (*env)->GetArrayLength(env, keys);
    for (jsize i = 0; i < count && stopped == SHW_OK; ++i) {
      jbyteArray key = (*env)->GetObjectArrayElement(env, keys, i);
      stopped = sink_key(env, user, key, sink, sink_user);
      (*env)->DeleteLocalRef(env, key);
    }
  }
  const shw_status status = shw_java_leave(env, err);
  return status != SHW_OK ? status : stopped;
}

/* A number of bytes that readAt cannot have read, such as the -1 of streams at their end. */
static void throw_bad_count(JNIEnv* env, jlong count, uint64_t size) {
  char text[128];
  snprintf(text, sizeof(text), "readAt gave %lld as the number of bytes; it was asked for %llu",
           (long long)count, (unsigned long long)size);
  jclass type = (*env)->FindClass(env, "java/lang/IllegalStateException");
  if (type != NULL) (*env)->ThrowNew(env, type, text);
}

static shw_status storage_read_at(void* user, void* object, uint64_t offset, void* data,
                                  uint64_t size, uint64_t* done, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jobject buffer = (*env)->NewDirectByteBuffer(env, data, (jlong)size);
  jlong count = 0;
  if (buffer != NULL)
    count = (*env)->CallLongMethod(env, user, methods.read_at, (jlong)(intptr_t)object,
                                   (jlong)offset, buffer);
  if (!(*env)->ExceptionCheck(env) && (count < 0 || (uint64_t)count > size))
    throw_bad_count(env, count, size);
  const shw_status status = shw_java_leave(env, err);
  if (status != SHW_OK) return status;
  *done = (uint64_t)count;
  return *done < size ? SHW_OUT_OF_RANGE : SHW_OK;
}

static shw_status storage_write_at(void* user, void* object, uint64_t offset, const void* data,
                                   uint64_t size, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  /* The bridge hands it on as a read-only buffer. */
  jobject buffer = (*env)->NewDirectByteBuffer(env, (void*)(intptr_t)data, (jlong)size);
  if (buffer != NULL)
    (*env)->CallVoidMethod(env, user, methods.write_at, (jlong)(intptr_t)object, (jlong)offset,
                           buffer);
  return shw_java_leave(env, err);
}

static shw_status storage_truncate(void* user, void* object, uint64_t size, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  (*env)->CallVoidMethod(env, user, methods.truncate, (jlong)(intptr_t)object, (jlong)size);
  return shw_java_leave(env, err);
}

static shw_status storage_sync(void* user, void* object, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  (*env)->CallVoidMethod(env, user, methods.sync, (jlong)(intptr_t)object);
  return shw_java_leave(env, err);
}

static shw_status storage_commit(void* user, void* object, int32_t condition, const char* version,
                                 uint64_t version_size, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, version, version_size);
  if (text != NULL)
    (*env)->CallVoidMethod(env, user, methods.commit, (jlong)(intptr_t)object, (jint)condition,
                           text);
  return shw_java_leave(env, err);
}

static shw_status storage_remove(void* user, const char* key, uint64_t key_size, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, key, key_size);
  if (text != NULL) (*env)->CallVoidMethod(env, user, methods.remove, text);
  return shw_java_leave(env, err);
}

static shw_status storage_space(void* user, const char* key, uint64_t key_size,
                                uint64_t* free_bytes, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, key, key_size);
  const jlong found = text != NULL ? (*env)->CallLongMethod(env, user, methods.space, text) : 0;
  const shw_status status = shw_java_leave(env, err);
  if (status == SHW_OK) *free_bytes = found < 0 ? 0 : (uint64_t)found;
  return status;
}

static shw_status storage_lock(void* user, const char* key, uint64_t key_size, int32_t mode,
                               void** lock, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jbyteArray text = shw_java_bytes(env, key, key_size);
  const jlong taken =
      text != NULL ? (*env)->CallLongMethod(env, user, methods.lock, text, (jint)mode) : 0;
  const shw_status status = shw_java_leave(env, err);
  if (status != SHW_OK) return status;
  if (taken == 0) return SHW_PENDING;
  *lock = (void*)(intptr_t)taken;
  return SHW_OK;
}

static void storage_unlock(void* user, void* lock) {
  call_object(user, lock, methods.unlock);
}

static void release_bridge(void* user) {
  JNIEnv* env = shw_java_environment();
  if (env != NULL) (*env)->DeleteGlobalRef(env, user);
}

/* What the storage says of itself; an exception comes out of the call. */
static shw_status read_offer(void* bridge, shw_storage_vtable* table, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  table->capabilities = (uint64_t)(*env)->CallLongMethod(env, bridge, methods.capabilities);
  if (!(*env)->ExceptionCheck(env))
    table->alignment = (uint64_t)(*env)->CallLongMethod(env, bridge, methods.alignment);
  if (!(*env)->ExceptionCheck(env))
    table->part_bytes = (uint64_t)(*env)->CallLongMethod(env, bridge, methods.part_bytes);
  return shw_java_leave(env, err);
}

shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err) {
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  const shw_status offered = read_offer(bridge, &table, err);
  if (offered != SHW_OK) {
    release_bridge(bridge);
    return offered;
  }
  table.name = "java";
  table.user = bridge;
  table.open = storage_open;
  table.close = storage_close;
  table.stat = storage_stat;
  table.list = storage_list;
  table.read_at = storage_read_at;
  table.write_at = storage_write_at;
  table.truncate = storage_truncate;
  table.sync = storage_sync;
  table.commit = storage_commit;
  table.abort = storage_abort;
  table.remove = storage_remove;
  table.space = storage_space;
  table.lock = storage_lock;
  table.unlock = storage_unlock;
  table.release = release_bridge;
  const shw_status status = shw_storage_create(&table, out, err);
  if (status != SHW_OK) release_bridge(bridge);
  return status;
}
