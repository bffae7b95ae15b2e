/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations of communicators, and the communicator table over a Java HostCommunicatorBridge:
 * memory goes as direct buffers that are valid until the work is released; a work of the host is a
 * global reference. An exception becomes HOST_EXCEPTION and is put aside. */
#include "bindings/java/native/host_transport.h"

#define CALL "JJJIIDJI" /* sequence, unit, count, dtype, op, scale, timeout, tag */
#define BUFFER "Ljava/nio/ByteBuffer;"
#define WORK "Lio/shardwright/hsdp/HostWork;"

static struct {
  jmethodID all_gather, all_to_all, reduce_scatter, all_reduce, broadcast, barrier;
  jmethodID wait, test, release, abort;
} methods;

int shw_java_bind_communicator(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/hsdp/HostCommunicatorBridge");
  if (type == NULL) return -1;
  const struct {
    jmethodID* id;
    const char *name, *signature;
  } wanted[] = {{&methods.all_gather, "allGather", "(" CALL BUFFER BUFFER ")" WORK},
                {&methods.all_to_all, "allToAll", "(" CALL BUFFER BUFFER ")" WORK},
                {&methods.reduce_scatter, "reduceScatter", "(" CALL BUFFER BUFFER ")" WORK},
                {&methods.all_reduce, "allReduce", "(" CALL BUFFER ")" WORK},
                {&methods.broadcast, "broadcast", "(" CALL BUFFER "I)" WORK},
                {&methods.barrier, "barrier", "(" CALL ")" WORK},
                {&methods.wait, "await", "(" WORK "J)Z"},
                {&methods.test, "isDone", "(" WORK ")Z"},
                {&methods.release, "close", "(" WORK ")V"},
                {&methods.abort, "abort", "(I[B)V"}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    *wanted[i].id = (*env)->GetMethodID(env, type, wanted[i].name, wanted[i].signature);
    if (*wanted[i].id == NULL) return -1;
  }
  return 0;
}

/* ---- the table of the host ---- */

/* Arguments of a method: those of the call, then up to two of its own. */
typedef struct Arguments {
  jvalue values[10];
} Arguments;

static Arguments arguments_of(const shw_communicator_call* call) {
  Arguments made;
  memset(&made, 0, sizeof made);
  made.values[0].j = (jlong)call->sequence;
  made.values[1].j = (jlong)call->unit_id;
  made.values[2].j = (jlong)call->count;
  made.values[3].i = call->dtype;
  made.values[4].i = call->op;
  made.values[5].d = call->scale;
  made.values[6].j = shw_java_limit(call->timeout_ns);
  made.values[7].i = (jint)call->tag;
  return made;
}

static uint64_t part_bytes(const shw_communicator_call* call) {
  return shw_dtype_byte_size(call->dtype, call->count); /* both checked by the library */
}

/* Calls a method that gives a work, and keeps it. */
static shw_status issue(JNIEnv* env, const ShwJavaTransport* host, jmethodID method,
                        const Arguments* arguments, void** work, shw_error** err) {
  if (!(*env)->ExceptionCheck(env)) {
    jobject made = (*env)->CallObjectMethodA(env, host->bridge, method, arguments->values);
    if (!(*env)->ExceptionCheck(env)) *work = (*env)->NewGlobalRef(env, made);
  }
  return shw_java_leave(env, err);
}

/* Operations from one memory to another; a buffer of all ranks has a part for each. */
static shw_status move(ShwJavaTransport* host, jmethodID method, const shw_communicator_call* call,
                       const void* in, uint64_t in_size, void* out, uint64_t out_size, void** work,
                       shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  Arguments arguments = arguments_of(call);
  arguments.values[8].l = shw_java_lent(env, in, in_size);
  if (arguments.values[8].l != NULL) arguments.values[9].l = shw_java_lent(env, out, out_size);
  return issue(env, host, method, &arguments, work, err);
}

static shw_status host_all_gather(void* user, const shw_communicator_call* call, const void* in,
                                  void* out, void** work, shw_error** err) {
  ShwJavaTransport* host = user;
  const uint64_t bytes = part_bytes(call);
  return move(host, methods.all_gather, call, in, bytes, out, bytes * (uint64_t)host->size, work,
              err);
}

static shw_status host_all_to_all(void* user, const shw_communicator_call* call, const void* in,
                                  void* out, void** work, shw_error** err) {
  ShwJavaTransport* host = user;
  const uint64_t bytes = part_bytes(call) * (uint64_t)host->size;
  return move(host, methods.all_to_all, call, in, bytes, out, bytes, work, err);
}

static shw_status host_reduce_scatter(void* user, const shw_communicator_call* call, const void* in,
                                      void* out, void** work, shw_error** err) {
  ShwJavaTransport* host = user;
  const uint64_t bytes = part_bytes(call);
  return move(host, methods.reduce_scatter, call, in, bytes * (uint64_t)host->size, out, bytes,
              work, err);
}

static shw_status host_all_reduce(void* user, const shw_communicator_call* call, void* data,
                                  void** work, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  Arguments arguments = arguments_of(call);
  arguments.values[8].l = shw_java_lent(env, data, part_bytes(call));
  return issue(env, user, methods.all_reduce, &arguments, work, err);
}

static shw_status host_broadcast(void* user, const shw_communicator_call* call, void* data,
                                 int32_t root, void** work, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  Arguments arguments = arguments_of(call);
  arguments.values[8].l = shw_java_lent(env, data, part_bytes(call));
  arguments.values[9].i = root;
  return issue(env, user, methods.broadcast, &arguments, work, err);
}

static shw_status host_barrier(void* user, const shw_communicator_call* call, void** work,
                               shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  const Arguments arguments = arguments_of(call);
  return issue(env, user, methods.barrier, &arguments, work, err);
}

/* What a method says of a work: it has ended, or not yet. */
static shw_status answer(JNIEnv* env, jboolean ended, shw_error** err) {
  const shw_status status = shw_java_leave(env, err);
  return status == SHW_OK && !ended ? SHW_PENDING : status;
}

static shw_status host_work_wait(void* user, void* work, int64_t timeout_ns, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  const jboolean ended = (*env)->CallBooleanMethod(env, ((ShwJavaTransport*)user)->bridge,
                                                   methods.wait, (jobject)work, (jlong)timeout_ns);
  return answer(env, ended, err);
}

static shw_status host_work_test(void* user, void* work, shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  const jboolean ended = (*env)->CallBooleanMethod(env, ((ShwJavaTransport*)user)->bridge,
                                                   methods.test, (jobject)work);
  return answer(env, ended, err);
}

static void host_work_release(void* user, void* work) {
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  (*env)->CallVoidMethod(env, ((ShwJavaTransport*)user)->bridge, methods.release, (jobject)work);
  (*env)->DeleteGlobalRef(env, (jobject)work);
  shw_java_leave(env, NULL); /* a release has no way to fail */
}

static void host_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  shw_java_transport_abort(user, methods.abort, code, message, message_size);
}

shw_status shw_java_communicator_create(void* bridge, int32_t rank, int32_t size,
                                        uint64_t capabilities, int32_t reduces, int32_t broadcasts,
                                        shw_communicator** out, shw_error** err) {
  ShwJavaTransport* host = shw_java_transport(bridge, size);
  if (host == NULL) return shw_java_out_of_memory(err);
  shw_communicator_vtable table = SHW_COMMUNICATOR_VTABLE_INIT;
  table.capabilities = capabilities;
  table.rank = rank;
  table.size = size;
  table.name = "java";
  table.user = host;
  table.all_gather = host_all_gather;
  table.all_to_all = host_all_to_all;
  if (reduces) {
    table.reduce_scatter = host_reduce_scatter;
    table.all_reduce = host_all_reduce;
  }
  if (broadcasts) {
    table.broadcast = host_broadcast;
    table.barrier = host_barrier;
  }
  table.work_wait = host_work_wait;
  table.work_test = host_work_test;
  table.work_release = host_work_release;
  table.abort = host_abort;
  table.release = shw_java_transport_release;
  const shw_status status = shw_communicator_create(&table, out, err);
  if (status != SHW_OK) shw_java_transport_release(host);
  return status;
}

/* ---- operations ---- */

enum { kSequence, kCount, kDtype, kOp, kTimeout };
enum { kAllGather, kAllToAll, kReduceScatter, kAllReduce, kBroadcast, kBarrier };

shw_status shw_java_communicator_issue(shw_communicator* communicator, int32_t operation,
                                       const int64_t* call, double scale, const void* in,
                                       uint64_t in_bytes, void* out_data, uint64_t out_bytes,
                                       int32_t root, shw_work** out, shw_error** err) {
  shw_communicator_call made = SHW_COMMUNICATOR_CALL_INIT;
  made.sequence = (uint64_t)call[kSequence];
  made.count = (uint64_t)call[kCount];
  made.dtype = (int32_t)call[kDtype];
  made.op = (int32_t)call[kOp];
  made.scale = scale;
  made.timeout_ns = call[kTimeout];
  switch (operation) {
    case kAllGather:
      return shw_communicator_all_gather(communicator, &made, in, in_bytes, out_data, out_bytes,
                                         out, err);
    case kAllToAll:
      return shw_communicator_all_to_all(communicator, &made, in, in_bytes, out_data, out_bytes,
                                         out, err);
    case kReduceScatter:
      return shw_communicator_reduce_scatter(communicator, &made, in, in_bytes, out_data, out_bytes,
                                             out, err);
    case kAllReduce:
      return shw_communicator_all_reduce(communicator, &made, out_data, out_bytes, out, err);
    case kBroadcast:
      return shw_communicator_broadcast(communicator, &made, out_data, out_bytes, root, out, err);
    default:
      return shw_communicator_barrier(communicator, &made, out, err);
  }
}
