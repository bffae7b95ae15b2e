/* SPDX-License-Identifier: Apache-2.0
 *
 * The storage table over a Java HostStorageBridge. Objects are numbers that the bridge gives.
 * Threads of the library are attached as daemons; an exception becomes HOST_EXCEPTION and is put
 * aside. */
#include <stdio.h>

#include "bindings/java/native/native.h"

static struct {
  jmethodID open, close, stat, list, read_at, write_at, sync, commit, abort, remove, space, lock,
      unlock;
} methods;

int shw_java_bind_storage(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/HostStorageBridge");
  if (type == NULL) return -1;
  methods.open = (*env)->GetMethodID(env, type, "open", "([BI)J");
  methods.close = (*env)->GetMethodID(env, type, "close", "(J)V");
  methods.stat = (*env)->GetMethodID(env, type, "stat", "([B)[J");
  methods.list = (*env)->GetMethodID(env, type, "list", "([B)[[B");
  methods.read_at = (*env)->GetMethodID(env, type, "readAt", "(JJLjava/nio/ByteBuffer;)J");
  methods.write_at = (*env)->GetMethodID(env, type, "writeAt", "(JJLjava/nio/ByteBuffer;)V");
  methods.sync = (*env)->GetMethodID(env, type, "sync", "(J)V");
  methods.commit = (*env)->GetMethodID(env, type, "commit", "(JIJ)V");
  methods.abort = (*env)->GetMethodID(env, type, "abort", "(J)V");
  methods.remove = (*env)->GetMethodID(env, type, "remove", "([B)V");
  methods.space = (*env)->GetMethodID(env, type, "space", "([B)J");
  methods.lock = (*env)->GetMethodID(env, type, "lock", "([BI)J");
  methods.unlock = (*env)->GetMethodID(env, type, "unlock", "(J)V");
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

/* size, modified, version of a key through the bridge. */
static shw_status stat_values(JNIEnv* env, void* user, jbyteArray key, jlong values[3]) {
  jlongArray found = (*env)->CallObjectMethod(env, user, methods.stat, key);
  if ((*env)->ExceptionCheck(env) || found == NULL) return SHW_UNKNOWN;
  (*env)->GetLongArrayRegion(env, found, 0, 3, values);
  (*env)->DeleteLocalRef(env, found);
  return SHW_OK;
}

static shw_status storage_stat(void* user, const char* key, uint64_t key_size,
                               shw_storage_stat* out, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jlong values[3] = {0, 0, 0};
  jbyteArray text = shw_java_bytes(env, key, key_size);
  if (text != NULL) stat_values(env, user, text, values);
  const shw_status status = shw_java_leave(env, err);
  if (status == SHW_OK) {
    out->size = (uint64_t)values[0];
    out->modified_ns = values[1];
    out->version = (uint64_t)values[2];
  }
  return status;
}

/* Gives one key to the sink. */
static shw_status sink_key(JNIEnv* env, void* user, jbyteArray key, shw_storage_list_fn sink,
                           void* sink_user) {
  jlong values[3] = {0, 0, 0};
  const shw_status found = stat_values(env, user, key, values);
  if (found != SHW_OK) return found;
  ShwJavaBytes text;
  shw_storage_entry entry = SHW_STORAGE_ENTRY_INIT;
  entry.key = shw_java_pin(env, key, &text);
  entry.key_size = text.size;
  entry.size = (uint64_t)values[0];
  entry.modified_ns = values[1];
  entry.version = (uint64_t)values[2];
  const shw_status status = sink(sink_user, &entry);
  shw_java_unpin(env, key, &text);
  return status;
}

static shw_status storage_list(void* user, const char* prefix, uint64_t prefix_size,
                               shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  shw_status stopped = SHW_OK;
  jbyteArray text = shw_java_bytes(env, prefix, prefix_size);
  jobjectArray keys = text != NULL ? (*env)->CallObjectMethod(env, user, methods.list, text) : NULL;
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

static shw_status storage_sync(void* user, void* object, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  (*env)->CallVoidMethod(env, user, methods.sync, (jlong)(intptr_t)object);
  return shw_java_leave(env, err);
}

static shw_status storage_commit(void* user, void* object, int32_t condition, uint64_t version,
                                 shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  (*env)->CallVoidMethod(env, user, methods.commit, (jlong)(intptr_t)object, (jint)condition,
                         (jlong)version);
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

shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err) {
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  table.capabilities = SHW_STORAGE_ATOMIC_COMMIT | SHW_STORAGE_CONDITIONAL_COMMIT;
  table.name = "java";
  table.user = bridge;
  table.open = storage_open;
  table.close = storage_close;
  table.stat = storage_stat;
  table.list = storage_list;
  table.read_at = storage_read_at;
  table.write_at = storage_write_at;
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
