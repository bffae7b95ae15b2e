/* SPDX-License-Identifier: Apache-2.0
 *
 * What collectives and communicators of the host share: the bridge that they call, memory lent to
 * Java, limits, abort and release. Any thread. */
#ifndef SHARDWRIGHT_JAVA_HOST_TRANSPORT_H
#define SHARDWRIGHT_JAVA_HOST_TRANSPORT_H

#include "bindings/java/native/native.h"

/* Made with malloc; `user` of a table. */
typedef struct ShwJavaTransport {
  jobject bridge; /* global reference */
  int32_t size;
} ShwJavaTransport;

/* NULL without memory; the bridge stays the caller's then. */
ShwJavaTransport* shw_java_transport(void* bridge, int32_t size);
/* A direct buffer of memory that lives for the operation; NULL with an exception pending. */
jobject shw_java_lent(JNIEnv* env, const void* data, uint64_t size);
/* Nanoseconds that an operation may take; negative = no limit. */
jlong shw_java_limit(int64_t timeout_ns);
/* Calls `abort` of the bridge. */
void shw_java_transport_abort(const ShwJavaTransport* transport, jmethodID abort, shw_status code,
                              const char* message, uint64_t message_size);
/* `release` of a table. */
void shw_java_transport_release(void* transport);

#endif
