/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte arrays and native memory of Java, and the JNI functions that SWIG only declares. */
#include <pthread.h>
#include <stdlib.h>

#include "bindings/java/native/native.h"

static JavaVM* machine;
/* Set in threads that this library attached; its destructor detaches them when they end, else the
 * virtual machine would keep a thread for each that ever called back. */
static pthread_key_t attached;

void* shw_java_pin(JNIEnv* env, jbyteArray array, ShwJavaBytes* bytes) {
  bytes->data = NULL;
  bytes->size = 0;
  if (array == NULL) return NULL;
  bytes->data = (*env)->GetByteArrayElements(env, array, NULL);
  if (bytes->data != NULL) bytes->size = (uint64_t)(*env)->GetArrayLength(env, array);
  return bytes->data;
}

void shw_java_unpin(JNIEnv* env, jbyteArray array, ShwJavaBytes* bytes) {
  if (bytes->data != NULL) (*env)->ReleaseByteArrayElements(env, array, bytes->data, JNI_ABORT);
}

jbyteArray shw_java_bytes(JNIEnv* env, const void* data, uint64_t size) {
  if (size > INT32_MAX) {
    jclass type = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
    if (type != NULL) (*env)->ThrowNew(env, type, "more than 2 GiB do not fit one byte array");
    return NULL;
  }
  const jsize length = data != NULL ? (jsize)size : 0;
  jbyteArray array = (*env)->NewByteArray(env, length);
  if (array != NULL && length > 0) (*env)->SetByteArrayRegion(env, array, 0, length, data);
  return array;
}

JNIEnv* shw_java_environment(void) {
  JNIEnv* env = NULL;
  if (machine == NULL) return NULL;
  if ((*machine)->GetEnv(machine, (void**)&env, JNI_VERSION_1_8) == JNI_OK) return env;
  if ((*machine)->AttachCurrentThreadAsDaemon(machine, (void**)&env, NULL) != JNI_OK) return NULL;
  if (pthread_setspecific(attached, machine) == 0) return env;
  (*machine)->DetachCurrentThread(machine);
  return NULL;
}

static void detach(void* of_machine) {
  JavaVM* vm = of_machine;
  (*vm)->DetachCurrentThread(vm);
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
  (void)reserved;
  machine = vm;
  JNIEnv* env = NULL;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  if (pthread_key_create(&attached, detach) != 0) return JNI_ERR;
  const int bound = shw_java_bind_errors(env) == 0 && shw_java_bind_log(env) == 0 &&
                    shw_java_bind_storage(env) == 0 && shw_java_bind_collective(env) == 0 &&
                    shw_java_bind_communicator(env) == 0 && shw_java_bind_allocator(env) == 0;
  return bound ? JNI_VERSION_1_8 : JNI_ERR;
}

/* Threads that end later must not call a destructor that is gone. */
JNIEXPORT void JNICALL JNI_OnUnload(JavaVM* vm, void* reserved) {
  (void)vm;
  (void)reserved;
  pthread_key_delete(attached);
}

jlongArray shw_java_longs(JNIEnv* env, const jlong* values, uint64_t count) {
  jlongArray array = (*env)->NewLongArray(env, (jsize)count);
  if (array != NULL && count > 0) (*env)->SetLongArrayRegion(env, array, 0, (jsize)count, values);
  return array;
}

/* Address of a direct buffer; 0 for any other. */
NATIVE(jlong, addressOf)(JNIEnv* env, jclass type, jobject buffer) {
  (void)type;
  return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}

NATIVE(jobject, view)(JNIEnv* env, jclass type, jlong address, jlong size) {
  (void)type;
  return (*env)->NewDirectByteBuffer(env, (void*)(intptr_t)address, size);
}

NATIVE(jbyteArray, copy)(JNIEnv* env, jclass type, jlong address, jlong size) {
  (void)type;
  return shw_java_bytes(env, (const void*)(intptr_t)address, (uint64_t)size);
}

NATIVE(jlong, reference)(JNIEnv* env, jclass type, jobject object) {
  (void)type;
  return (jlong)(intptr_t)(*env)->NewGlobalRef(env, object);
}

NATIVE(void, releaseReference)(JNIEnv* env, jclass type, jlong reference) {
  (void)type;
  (*env)->DeleteGlobalRef(env, (jobject)(intptr_t)reference);
}

/* Extents of all tensors back to back. */
NATIVE(jlongArray, tensorShapes)(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  const shw_checkpoint* checkpoint = (const shw_checkpoint*)(intptr_t)handle;
  const uint64_t count = shw_checkpoint_tensor_count(checkpoint);
  uint64_t total = 0;
  for (int fill = 0; fill < 2; ++fill) {
    jlong* values = fill ? malloc((total + 1) * sizeof(jlong)) : NULL;
    if (fill && values == NULL) return NULL;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; ++i) {
      shw_tensor_info info = SHW_TENSOR_INFO_INIT;
      if (shw_checkpoint_tensor_infos(checkpoint, i, 1, &info, NULL) != SHW_OK) continue;
      if (fill && info.ndim > 0)
        memcpy(values + at, shw_checkpoint_tensor_shape(checkpoint, i),
               (size_t)info.ndim * sizeof(jlong));
      at += (uint64_t)info.ndim;
    }
    total = at;
    if (fill) {
      jlongArray array = shw_java_longs(env, values, total);
      free(values);
      return array;
    }
  }
  return NULL;
}

/* address, bytes, dtype, then the extents */
NATIVE(jlongArray, ownedTensor)(JNIEnv* env, jclass type, jlong tensor) {
  (void)type;
  shw_tensor view = SHW_TENSOR_INIT;
  shw_error* err = NULL;
  const shw_status status =
      shw_owned_tensor_describe((const shw_owned_tensor*)(intptr_t)tensor, &view, &err);
  if (status != SHW_OK) {
    shw_java_throw(env, status, err);
    return NULL;
  }
  jlong values[3 + 64] = {(jlong)(intptr_t)view.data, (jlong)view.byte_size, view.dtype};
  for (int32_t d = 0; d < view.ndim; ++d) values[3 + d] = view.shape[d];
  return shw_java_longs(env, values, 3 + (uint64_t)view.ndim);
}

/* Copy of the bytes of an object of a state. */
NATIVE(jbyteArray, stateObject)(JNIEnv* env, jclass type, jlong state, jlong index) {
  (void)type;
  uint64_t size = 0;
  const void* data =
      shw_state_object_data((const shw_state*)(intptr_t)state, (uint64_t)index, &size);
  return shw_java_bytes(env, data, size);
}

/* major * 2^32 + minor */
NATIVE(jlong, abiVersion)(JNIEnv* env, jclass type) {
  (void)env;
  (void)type;
  uint32_t major = 0, minor = 0;
  shw_abi_version(&major, &minor);
  return ((jlong)major << 32) + minor;
}
