/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-written native part of the Java binding: byte arrays, exceptions, tensors from flat arrays,
 * and callbacks into Java. Functions named shw_java_* with C types are wrapped by SWIG
 * (natives.i); those that need the JNI environment take it first. Any thread. */
#ifndef SHARDWRIGHT_JAVA_NATIVE_H
#define SHARDWRIGHT_JAVA_NATIVE_H

#include <jni.h>
#include <stdint.h>
#include <string.h>

#include "shardwright/shardwright.h"

/* A byte array held for one call. */
typedef struct ShwJavaBytes {
  jbyte* data;
  uint64_t size;
} ShwJavaBytes;

/* Elements of array (NULL: NULL, size 0), to be given back by shw_java_unpin. An empty array gives
 * a non-NULL pointer. */
void* shw_java_pin(JNIEnv* env, jbyteArray array, ShwJavaBytes* bytes);
void shw_java_unpin(JNIEnv* env, jbyteArray array, ShwJavaBytes* bytes);
/* New byte array with a copy; NULL text gives an empty array. */
jbyteArray shw_java_bytes(JNIEnv* env, const void* data, uint64_t size);
/* A new long array of these numbers; NULL with an exception pending when memory is out. */
jlongArray shw_java_longs(JNIEnv* env, const jlong* values, uint64_t count);
/* Head of a JNI function that natives.i declares. */
#define NATIVE(result, name) \
  JNIEXPORT result JNICALL Java_io_shardwright_internal_shw_1nativeJNI_##name

/* Throws the exception of a failed call and releases the error. Nothing happens when an exception
 * is pending. */
void shw_java_throw(JNIEnv* env, shw_status status, shw_error* error);

/* Environment of this thread; attaches threads of the library as daemons until they end. NULL when
 * the virtual machine is gone. */
JNIEnv* shw_java_environment(void);
/* Turns a pending exception of a callback into an error: the exception is put aside under a key. OK
 * when none is. */
shw_status shw_java_take_exception(JNIEnv* env, shw_error** err);

/* Around each callback: environment with room for local references (NULL with an error when the
 * machine is gone), and the status that a pending exception gives. */
JNIEnv* shw_java_enter(shw_error** err);
shw_status shw_java_leave(JNIEnv* env, shw_error** err);

shw_status shw_java_out_of_memory(shw_error** err);

/* Context with a Java log callback (io.shardwright.LogBridge), NULL = off; machine NULL = none. */
shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level,
                                   void* log_bridge, const char* machine, shw_context** out,
                                   shw_error** err);

/* Tensors in bulk. facts: ten numbers per tensor: address, bytes (0 = as shape and strides need),
 * dtype, ndim, device type, device id, flags, kind, number of its layout (0 = none), replica id.
 * shapes and strides back to back (strides NULL = row-major all). layouts: their handles. The other
 * arrays are those of shw_tensor_batch. */
shw_status shw_java_state_add_tensors(
    shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
    const int64_t* facts, const int64_t* shapes, const int64_t* strides,
    const int64_t* global_shapes, const uint64_t* global_shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const int64_t* local_offsets,
    const int64_t* layouts, uint64_t layout_count, int32_t rank, const char* paths,
    const uint64_t* path_offsets, const int64_t* grid_fragments, const int64_t* grid_indices,
    const uint64_t* grid_offsets, shw_error** err);
/* The one part of out: int64 values: bytes of the key, then index and shape of the cell. */
shw_status shw_java_object_key_parse(const char* name, uint64_t name_size, shw_buffer** out,
                                     shw_error** err);
/* The one part of out: a rank (int32) per shard. */
shw_status shw_java_plan_owners(uint64_t count, const uint64_t* weights, const int32_t* sets,
                                const char* secondary, uint64_t set_count,
                                const uint64_t* set_offsets, const int32_t* holders,
                                int32_t rank_count, shw_buffer** out, shw_error** err);
/* Reads a whole tensor. */
shw_status shw_java_read_whole(const shw_checkpoint* checkpoint, uint64_t index,
                               shw_owned_tensor** out, shw_error** err);
/* Reads one box of a tensor into memory of the host. */
shw_status shw_java_read_box(const shw_checkpoint* checkpoint, uint64_t index,
                             const int64_t* box_offsets, const int64_t* box_sizes, int32_t ndim,
                             void* target, uint64_t target_bytes, shw_error** err);

/* Waits for the end of a job or for the time to pass; the outcome is asked for elsewhere. */
void shw_java_job_wait(shw_job* job, int64_t timeout_ns);
/* As shw_java_job_wait, until the job is staged. */
void shw_java_job_wait_staged(shw_job* job, int64_t timeout_ns);
/* The end of the job, which may be over, will wake shw_java_job_ends_wait, once. */
void shw_java_job_watch(shw_job* job);
/* Waits until a watched job has ended since the last call; may return without one. */
void shw_java_job_ends_wait(void);

/* Storages and collectives of the host; bridge is the global reference that shw_java_reference
 * gave. */
shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err);
shw_status shw_java_collective_create_node(shw_collective* inner, shw_collective** out,
                                           shw_error** err);
shw_status shw_java_collective_create(void* bridge, int32_t rank, int32_t size, int32_t rooted,
                                      int32_t between_all, shw_collective** out, shw_error** err);
/* Communicators of the host, likewise. `reduces`: it has reduce_scatter and all_reduce;
 * `broadcasts`: broadcast and barrier. */
shw_status shw_java_communicator_create(void* bridge, int32_t rank, int32_t size,
                                        uint64_t capabilities, int32_t reduces, int32_t broadcasts,
                                        shw_communicator** out, shw_error** err);
/* Issues an operation, numbered as in Communicator.java. call: sequence, count, dtype, op and
 * timeout. The memory stays until the work has gone. */
shw_status shw_java_communicator_issue(shw_communicator* communicator, int32_t operation,
                                       const int64_t* call, double scale, const void* in,
                                       uint64_t in_bytes, void* out_data, uint64_t out_bytes,
                                       int32_t root, shw_work** out, shw_error** err);

/* Parameters and gradients of units. facts: of a parameter address, bytes (0 = as the shape needs),
 * dtype, ndim, device type, device id, dimension that is cut, SHW_HSDP_PARAM_ flags; of a gradient
 * the first six. shapes back to back. The other arrays are those of shw_hsdp_param_batch. */
shw_status shw_java_hsdp_add_params(shw_hsdp_unit* unit, uint64_t count, const char* names,
                                    const uint64_t* name_offsets, const int64_t* facts,
                                    const int64_t* shapes, const char* aliases,
                                    const uint64_t* alias_offsets, const uint64_t* alias_ranges,
                                    shw_error** err);
shw_status shw_java_hsdp_add_grads(shw_hsdp_unit* unit, const uint64_t* params,
                                   const int64_t* facts, const int64_t* shapes, uint64_t count,
                                   int32_t mode, shw_error** err);
shw_status shw_java_hsdp_set_memory(shw_hsdp_unit* unit, uint64_t first, uint64_t count,
                                    const int64_t* memory, const uint64_t* sizes, shw_error** err);
shw_status shw_java_hsdp_set_units(shw_hsdp_unit* unit, int32_t key, const int64_t* units,
                                   uint64_t count, shw_error** err);
/* Whole parameters lie in memory of a HostAllocatorBridge; `bridge` is the global reference that
 * shw_java_reference gave. */
shw_status shw_java_hsdp_set_allocator(shw_hsdp_unit* unit, void* bridge, shw_error** err);
/* units: ten numbers each, the fields of shw_hsdp_unit_options from `flags` to `unused`, behind
 * them SHW_HSDP_ESTIMATE_ flags and the number of its parameters, which lie one unit behind the
 * other. */
shw_status shw_java_hsdp_estimate(uint64_t unit_count, const int64_t* units, const char* names,
                                  const uint64_t* name_offsets, const int64_t* facts,
                                  const int64_t* shapes, const char* aliases,
                                  const uint64_t* alias_offsets, const uint64_t* alias_ranges,
                                  const shw_hsdp_estimate_world* world,
                                  const shw_hsdp_options* options, int32_t kind,
                                  shw_hsdp_memory* out, shw_error** err);

/* Method tables that the host's objects are called through; cached at load. */
int shw_java_bind_storage(JNIEnv* env);
int shw_java_bind_collective(JNIEnv* env);
int shw_java_bind_communicator(JNIEnv* env);
int shw_java_bind_allocator(JNIEnv* env);
int shw_java_bind_log(JNIEnv* env);
int shw_java_bind_errors(JNIEnv* env);
void shw_java_log(void* user, int32_t level, const shw_log_record* record);
/* user: global reference of an io.shardwright.ProgressBridge. */
void shw_java_progress(void* user, const shw_progress* progress);

#endif
