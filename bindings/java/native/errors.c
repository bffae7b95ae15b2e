/* SPDX-License-Identifier: Apache-2.0
 *
 * Exceptions of Java from error objects, and error objects from exceptions of callbacks. */
#include <stdio.h>

#include "bindings/java/native/native.h"

static jclass exception_class;
static jmethodID create_method;  /* static Throwable create(int, byte[], byte[][], boolean, byte[][]) */
static jmethodID put_aside_method; /* static byte[] putAside(Throwable) */
static jclass bytes_class;

int shw_java_bind_errors(JNIEnv* env) {
  jclass local = (*env)->FindClass(env, "io/shardwright/ShardwrightException");
  jclass bytes = (*env)->FindClass(env, "[B");
  if (local == NULL || bytes == NULL) return -1;
  exception_class = (*env)->NewGlobalRef(env, local);
  bytes_class = (*env)->NewGlobalRef(env, bytes);
  create_method = (*env)->GetStaticMethodID(env, local, "create", "(I[B[[BZ[[B)Ljava/lang/Throwable;");
  put_aside_method = (*env)->GetStaticMethodID(env, local, "putAside", "(Ljava/lang/Throwable;)[B");
  return exception_class != NULL && create_method != NULL && put_aside_method != NULL ? 0 : -1;
}

static jbyteArray message_of(JNIEnv* env, const shw_error* error) {
  uint64_t size = 0;
  const char* text = shw_error_message(error, &size);
  return shw_java_bytes(env, text, size);
}

/* Key, value, key, value, ... */
static jobjectArray details_of(JNIEnv* env, const shw_error* error) {
  const uint64_t count = shw_error_detail_count(error);
  jobjectArray array = (*env)->NewObjectArray(env, (jsize)(2 * count), bytes_class, NULL);
  for (uint64_t i = 0; array != NULL && i < count; ++i) {
    shw_error_detail detail = {NULL, NULL, 0};
    if (shw_error_detail_at(error, i, &detail) != SHW_OK) continue;
    jbyteArray key = shw_java_bytes(env, detail.key, strlen(detail.key));
    jbyteArray value = shw_java_bytes(env, detail.value, detail.value_size);
    if (key == NULL || value == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, array, (jsize)(2 * i), key);
    (*env)->SetObjectArrayElement(env, array, (jsize)(2 * i + 1), value);
    (*env)->DeleteLocalRef(env, key);
    (*env)->DeleteLocalRef(env, value);
  }
  return array;
}

static jobjectArray causes_of(JNIEnv* env, const shw_error* error) {
  jsize count = 0;
  for (const shw_error* c = shw_error_cause(error); c != NULL; c = shw_error_cause(c)) ++count;
  jobjectArray array = (*env)->NewObjectArray(env, count, bytes_class, NULL);
  jsize i = 0;
  for (const shw_error* c = shw_error_cause(error); array != NULL && c != NULL; c = shw_error_cause(c)) {
    jbyteArray message = message_of(env, c);
    if (message == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, array, i++, message);
    (*env)->DeleteLocalRef(env, message);
  }
  return array;
}

void shw_java_throw(JNIEnv* env, shw_status status, shw_error* error) {
  if (!(*env)->ExceptionCheck(env)) {
    jbyteArray message = message_of(env, error);
    jobjectArray details = message != NULL ? details_of(env, error) : NULL;
    jobjectArray causes = details != NULL ? causes_of(env, error) : NULL;
    if (causes != NULL) {
      const jboolean retryable = shw_error_is_retryable(error) != 0;
      jobject thrown = (*env)->CallStaticObjectMethod(env, exception_class, create_method, (jint)status, message, details,
                                                      retryable, causes);
      if (thrown != NULL) (*env)->Throw(env, thrown);
    }
  }
  shw_error_release(error);
}

shw_status shw_java_take_exception(JNIEnv* env, shw_error** err) {
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  if (thrown == NULL) return SHW_OK;
  (*env)->ExceptionClear(env);
  char key[64] = "";
  jbyteArray text = (*env)->CallStaticObjectMethod(env, exception_class, put_aside_method, thrown);
  if (text != NULL) {
    const jsize size = (*env)->GetArrayLength(env, text);
    (*env)->GetByteArrayRegion(env, text, 0, size < 63 ? size : 63, (jbyte*)key);
    (*env)->DeleteLocalRef(env, text);
  }
  (*env)->ExceptionClear(env);
  (*env)->DeleteLocalRef(env, thrown);
  static const char kMessage[] = "a callback of the host threw an exception";
  const shw_error_detail detail = {"host_exception", key, strlen(key)};
  shw_error* unused = NULL;
  shw_error_create(SHW_HOST_EXCEPTION, kMessage, sizeof(kMessage) - 1, &detail, 1, NULL, err != NULL ? err : &unused);
  shw_error_release(unused);
  return SHW_HOST_EXCEPTION;
}
