/* SPDX-License-Identifier: Apache-2.0
 *
 * What every callback into Java does around its call, and the callbacks of log and progress. */
#include "bindings/java/native/structs.h"

static jmethodID log_method;
static jmethodID progress_method;
static jclass interrupt_alarm;
static jmethodID rearm_method;

int shw_java_bind_log(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/LogBridge");
  if (type == NULL) return -1;
  log_method = (*env)->GetMethodID(env, type, "write", "(I[B[B)V");
  if (log_method == NULL) return -1;
  type = (*env)->FindClass(env, "io/shardwright/internal/InterruptAlarm");
  interrupt_alarm = type != NULL ? (*env)->NewGlobalRef(env, type) : NULL;
  rearm_method =
      interrupt_alarm != NULL ? (*env)->GetStaticMethodID(env, type, "rearm", "()V") : NULL;
  if (rearm_method == NULL) return -1;
  type = (*env)->FindClass(env, "io/shardwright/ProgressBridge");
  if (type == NULL) return -1;
  progress_method =
      (*env)->GetMethodID(env, type, "tell", "(Lio/shardwright/internal/Structs$Progress;)V");
  if (progress_method == NULL) return -1;
  /* Its callback may come on a thread that does not find the classes of this library. */
  return shw_java_struct_bind(env, &shw_progress_table);
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
  /* A channel that the host used on this thread has taken the place of the call's own. */
  (*env)->CallStaticVoidMethod(env, interrupt_alarm, rearm_method);
  if ((*env)->ExceptionCheck(env)) (*env)->ExceptionClear(env); /* no memory for it */
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

void shw_java_progress(void* user, const shw_progress* p) {
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  jobject progress = shw_java_struct_write(env, &shw_progress_table, p);
  if (progress != NULL) (*env)->CallVoidMethod(env, user, progress_method, progress);
  shw_java_leave(env, NULL); /* the bridge lets no exception out */
}
