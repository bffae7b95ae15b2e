/* SPDX-License-Identifier: Apache-2.0
 *
 * Exceptions of Java from error objects, and error objects from exceptions of callbacks. */
#include <stdlib.h>

#include "bindings/java/native/native.h"

static jclass exception_class;
static jmethodID
    create_method; /* static Throwable create(int, byte[], byte[][], boolean, byte[][]) */
static jmethodID describe_method; /* static byte[][] describe(Throwable) */
static jclass bytes_class;

int shw_java_bind_errors(JNIEnv* env) {
  jclass local = (*env)->FindClass(env, "io/shardwright/errors/ShardwrightException");
  jclass bytes = (*env)->FindClass(env, "[B");
  if (local == NULL || bytes == NULL) return -1;
  exception_class = (*env)->NewGlobalRef(env, local);
  bytes_class = (*env)->NewGlobalRef(env, bytes);
  create_method =
      (*env)->GetStaticMethodID(env, local, "create", "(I[B[[BZ[[B)Ljava/lang/Throwable;");
  describe_method = (*env)->GetStaticMethodID(env, local, "describe", "(Ljava/lang/Throwable;)[[B");
  return exception_class != NULL && create_method != NULL && describe_method != NULL ? 0 : -1;
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
  for (const shw_error* c = shw_error_cause(error); array != NULL && c != NULL;
       c = shw_error_cause(c)) {
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
      jobject thrown = (*env)->CallStaticObjectMethod(
          env, exception_class, create_method, (jint)status, message, details, retryable, causes);
      if (!(*env)->ExceptionCheck(env) && thrown != NULL) (*env)->Throw(env, thrown);
    }
  }
  shw_error_release(error);
}

/* Gives the error of a callback: a status that the host chose keeps it, anything else is
 * HOST_EXCEPTION and can be found again under `key`. */
static shw_status callback_error(shw_status status, const char* key, const char* message,
                                 uint64_t size, shw_error** err) {
  const shw_error_detail detail = {"host_exception", key, strlen(key)};
  shw_error* unused = NULL;
  shw_error_create(status, message, size, &detail, key[0] != '\0' ? 1 : 0, NULL,
                   err != NULL ? err : &unused);
  shw_error_release(unused);
  return status;
}

/* describe(thrown) = {status as text, key, message}; NULL when the machine has no memory left for
 * it. */
static jobjectArray describe(JNIEnv* env, jthrowable thrown) {
  jobjectArray parts =
      (*env)->CallStaticObjectMethod(env, exception_class, describe_method, thrown);
  if (!(*env)->ExceptionCheck(env)) return parts;
  (*env)->ExceptionClear(env);
  return NULL;
}

shw_status shw_java_take_exception(JNIEnv* env, shw_error** err) {
  jthrowable thrown = (*env)->ExceptionOccurred(env);
  if (thrown == NULL) return SHW_OK;
  (*env)->ExceptionClear(env);
  static const char kMessage[] = "a callback of the host threw an exception";
  shw_status status = SHW_HOST_EXCEPTION;
  jobjectArray parts = describe(env, thrown);
  if (parts == NULL) return callback_error(status, "", kMessage, sizeof(kMessage) - 1, err);
  ShwJavaBytes texts[3];
  jbyteArray arrays[3];
  for (jsize i = 0; i < 3; ++i) {
    arrays[i] = (*env)->GetObjectArrayElement(env, parts, i); /* each ends with a NUL */
    shw_java_pin(env, arrays[i], &texts[i]);
  }
  if (texts[0].data != NULL && texts[1].data != NULL && texts[2].data != NULL) {
    status = (shw_status)strtol((const char*)texts[0].data, NULL, 10);
    callback_error(status, (const char*)texts[1].data, (const char*)texts[2].data,
                   texts[2].size - 1, err);
  } else {
    callback_error(status, "", kMessage, sizeof(kMessage) - 1, err);
  }
  for (jsize i = 0; i < 3; ++i) shw_java_unpin(env, arrays[i], &texts[i]);
  return status;
}
