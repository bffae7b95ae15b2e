/* SPDX-License-Identifier: Apache-2.0
 *
 * The collective table over a Java HostCollectiveBridge: byte ranges go as direct buffers that are
 * valid for the call. An exception becomes HOST_EXCEPTION and is put aside. */
#include "bindings/java/native/host_transport.h"

static struct {
  jmethodID barrier, broadcast, all_gather, all_gather_v, gather_v, scatter_v, all_to_all_v,
      all_reduce, abort;
} methods;

int shw_java_bind_collective(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/collective/HostCollectiveBridge");
  if (type == NULL) return -1;
  methods.barrier = (*env)->GetMethodID(env, type, "barrier", "(J)V");
  methods.broadcast = (*env)->GetMethodID(env, type, "broadcast", "(Ljava/nio/ByteBuffer;IJ)V");
  methods.all_gather =
      (*env)->GetMethodID(env, type, "allGather", "(Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;J)V");
  methods.all_gather_v = (*env)->GetMethodID(env, type, "allGatherV",
                                             "(Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;[JJ)V");
  methods.gather_v = (*env)->GetMethodID(env, type, "gatherV",
                                         "(Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;[JIJ)V");
  methods.scatter_v = (*env)->GetMethodID(env, type, "scatterV",
                                          "(Ljava/nio/ByteBuffer;[JLjava/nio/ByteBuffer;IJ)V");
  methods.all_to_all_v = (*env)->GetMethodID(env, type, "allToAllV",
                                             "(Ljava/nio/ByteBuffer;[JLjava/nio/ByteBuffer;[JJ)V");
  methods.all_reduce = (*env)->GetMethodID(env, type, "allReduce", "([JIJ)[J");
  methods.abort = (*env)->GetMethodID(env, type, "abort", "(I[B)V");
  return (*env)->ExceptionCheck(env) ? -1 : 0;
}

/* Nanoseconds that the operation may take; negative = no limit. */
static jlong timeout_of(const shw_collective_call* call) {
  return shw_java_limit(call != NULL ? call->timeout_ns : 0);
}

static shw_status host_barrier(void* user, const shw_collective_call* call, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  (*env)->CallVoidMethod(env, ((ShwJavaTransport*)user)->bridge, methods.barrier, timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_broadcast(void* user, const shw_collective_call* call, void* data,
                                 uint64_t size, int32_t root, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jobject buffer = shw_java_lent(env, data, size);
  if (buffer != NULL)
    (*env)->CallVoidMethod(env, ((ShwJavaTransport*)user)->bridge, methods.broadcast, buffer,
                           (jint)root, timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_all_gather(void* user, const shw_collective_call* call, const void* in,
                                  uint64_t size, void* out, shw_error** err) {
  const ShwJavaTransport* host = user;
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jobject from = shw_java_lent(env, in, size);
  jobject to = from != NULL ? shw_java_lent(env, out, size * (uint64_t)host->size) : NULL;
  if (to != NULL)
    (*env)->CallVoidMethod(env, host->bridge, methods.all_gather, from, to, timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_all_gather_v(void* user, const shw_collective_call* call, const void* in,
                                    uint64_t size, void* out, const uint64_t* sizes,
                                    shw_error** err) {
  const ShwJavaTransport* host = user;
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  for (int32_t r = 0; r < host->size; ++r) total += sizes[r];
  jlongArray counts = (*env)->NewLongArray(env, host->size);
  jobject from = counts != NULL ? shw_java_lent(env, in, size) : NULL;
  jobject to = from != NULL ? shw_java_lent(env, out, total) : NULL;
  if (to != NULL) {
    (*env)->SetLongArrayRegion(env, counts, 0, host->size, (const jlong*)sizes);
    (*env)->CallVoidMethod(env, host->bridge, methods.all_gather_v, from, to, counts,
                           timeout_of(call));
  }
  return shw_java_leave(env, err);
}

/* Sizes of all ranks, NULL without exception where there are none; their sum. */
static jlongArray sizes_of(JNIEnv* env, const ShwJavaTransport* host, const uint64_t* sizes,
                           uint64_t* total) {
  *total = 0;
  if (sizes == NULL) return NULL;
  for (int32_t r = 0; r < host->size; ++r) *total += sizes[r];
  jlongArray counts = (*env)->NewLongArray(env, host->size);
  if (counts != NULL) (*env)->SetLongArrayRegion(env, counts, 0, host->size, (const jlong*)sizes);
  return counts;
}

static shw_status host_gather_v(void* user, const shw_collective_call* call, const void* in,
                                uint64_t size, void* out, const uint64_t* sizes, int32_t root,
                                shw_error** err) {
  const ShwJavaTransport* host = user;
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  jlongArray counts = sizes_of(env, host, sizes, &total);
  jobject from = counts != NULL || sizes == NULL ? shw_java_lent(env, in, size) : NULL;
  jobject to = from != NULL ? shw_java_lent(env, out, total) : NULL;
  if (to != NULL)
    (*env)->CallVoidMethod(env, host->bridge, methods.gather_v, from, to, counts, (jint)root,
                           timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_scatter_v(void* user, const shw_collective_call* call, const void* in,
                                 const uint64_t* sizes, void* out, uint64_t size, int32_t root,
                                 shw_error** err) {
  const ShwJavaTransport* host = user;
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  uint64_t total = 0;
  jlongArray counts = sizes_of(env, host, sizes, &total);
  jobject from = counts != NULL || sizes == NULL ? shw_java_lent(env, in, total) : NULL;
  jobject to = from != NULL ? shw_java_lent(env, out, size) : NULL;
  if (to != NULL)
    (*env)->CallVoidMethod(env, host->bridge, methods.scatter_v, from, counts, to, (jint)root,
                           timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_all_to_all_v(void* user, const shw_collective_call* call, const void* in,
                                    const uint64_t* in_sizes, void* out, const uint64_t* out_sizes,
                                    shw_error** err) {
  const ShwJavaTransport* host = user;
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  uint64_t sent_bytes = 0, received_bytes = 0;
  jlongArray sent = sizes_of(env, host, in_sizes, &sent_bytes);
  jlongArray received = sent != NULL ? sizes_of(env, host, out_sizes, &received_bytes) : NULL;
  jobject from = received != NULL ? shw_java_lent(env, in, sent_bytes) : NULL;
  jobject to = from != NULL ? shw_java_lent(env, out, received_bytes) : NULL;
  if (to != NULL)
    (*env)->CallVoidMethod(env, host->bridge, methods.all_to_all_v, from, sent, to, received,
                           timeout_of(call));
  return shw_java_leave(env, err);
}

static shw_status host_all_reduce(void* user, const shw_collective_call* call, int64_t* values,
                                  uint64_t count, int32_t operation, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  jlongArray in = (*env)->NewLongArray(env, (jsize)count);
  if (in != NULL) {
    (*env)->SetLongArrayRegion(env, in, 0, (jsize)count, (const jlong*)values);
    jlongArray out =
        (*env)->CallObjectMethod(env, ((ShwJavaTransport*)user)->bridge, methods.all_reduce, in,
                                 (jint)operation, timeout_of(call));
    if (!(*env)->ExceptionCheck(env) && out != NULL)
      (*env)->GetLongArrayRegion(env, out, 0, (jsize)count, (jlong*)values);
  }
  return shw_java_leave(env, err);
}

static void host_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  shw_java_transport_abort(user, methods.abort, code, message, message_size);
}

shw_status shw_java_collective_create_node(shw_collective* inner, shw_collective** out,
                                           shw_error** err) {
  return shw_collective_create_node(inner, NULL, out, err);
}

shw_status shw_java_collective_create(void* bridge, int32_t rank, int32_t size, int32_t rooted,
                                      int32_t between_all, shw_collective** out, shw_error** err) {
  ShwJavaTransport* host = shw_java_transport(bridge, size);
  if (host == NULL) return SHW_RESOURCE_EXHAUSTED;
  shw_collective_vtable table = SHW_COLLECTIVE_VTABLE_INIT;
  table.rank = rank;
  table.size = size;
  table.name = "java";
  table.user = host;
  table.barrier = host_barrier;
  table.broadcast = host_broadcast;
  table.all_gather = host_all_gather;
  table.all_gather_v = host_all_gather_v;
  if (rooted) {
    table.gather_v = host_gather_v;
    table.scatter_v = host_scatter_v;
  }
  if (between_all) table.all_to_all_v = host_all_to_all_v;
  table.all_reduce_i64 = host_all_reduce;
  table.abort = host_abort;
  table.release = shw_java_transport_release;
  const shw_status status = shw_collective_create(&table, out, err);
  if (status != SHW_OK) shw_java_transport_release(host);
  return status;
}
