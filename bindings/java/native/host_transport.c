/* SPDX-License-Identifier: Apache-2.0
 *
 * What collectives and communicators of the host share. */
#include "bindings/java/native/host_transport.h"

#include <stdlib.h>

#define DEFAULT_TIMEOUT_NS 1800000000000LL /* what 0 stands for */

ShwJavaTransport* shw_java_transport(void* bridge, int32_t size) {
  ShwJavaTransport* made = malloc(sizeof *made);
  if (made == NULL) return NULL;
  made->bridge = bridge;
  made->size = size;
  return made;
}

jobject shw_java_lent(JNIEnv* env, const void* data, uint64_t size) {
  static char empty; /* a direct buffer needs an address */
  return (*env)->NewDirectByteBuffer(env, size > 0 ? (void*)(intptr_t)data : &empty, (jlong)size);
}

jlong shw_java_limit(int64_t timeout_ns) {
  return (jlong)(timeout_ns != 0 ? timeout_ns : DEFAULT_TIMEOUT_NS);
}

void shw_java_transport_abort(const ShwJavaTransport* transport, jmethodID abort, shw_status code,
                              const char* message, uint64_t message_size) {
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  jbyteArray text = shw_java_bytes(env, message, message_size);
  if (text != NULL) (*env)->CallVoidMethod(env, transport->bridge, abort, (jint)code, text);
  shw_java_leave(env, NULL); /* abort has no way to fail */
}

void shw_java_transport_release(void* transport) {
  JNIEnv* env = shw_java_environment();
  if (env != NULL) (*env)->DeleteGlobalRef(env, ((ShwJavaTransport*)transport)->bridge);
  free(transport);
}
