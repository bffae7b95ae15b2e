/* SPDX-License-Identifier: Apache-2.0
 *
 * What every callback into Java does around its call, and the log callback. */
#include "bindings/java/native/native.h"

static jmethodID log_method;

int shw_java_bind_log(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/LogBridge");
  if (type == NULL) return -1;
  log_method = (*env)->GetMethodID(env, type, "write", "(I[B[B)V");
  return log_method != NULL ? 0 : -1;
}

JNIEnv* shw_java_enter(shw_error** err) {
  JNIEnv* env = shw_java_environment();
  if (env != NULL && (*env)->PushLocalFrame(env, 16) == 0) return env;
  static const char kMessage[] = "the Java virtual machine takes no more calls";
  if (err != NULL)
    shw_error_create(SHW_UNAVAILABLE, kMessage, sizeof(kMessage) - 1, NULL, 0, NULL, err);
  return NULL;
}

shw_status shw_java_leave(JNIEnv* env, shw_error** err) {
  const shw_status status = shw_java_take_exception(env, err);
  (*env)->PopLocalFrame(env, NULL);
  return status;
}

void shw_java_log(void* user, int32_t level, const shw_log_record* record) {
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  const char* component = record->component != NULL ? record->component : "";
  jbyteArray from = shw_java_bytes(env, component, strlen(component));
  jbyteArray text = shw_java_bytes(env, record->message, record->message_size);
  if (from != NULL && text != NULL)
    (*env)->CallVoidMethod(env, user, log_method, (jint)level, from, text);
  shw_java_leave(env, NULL); /* a log callback has no way to fail */
}
