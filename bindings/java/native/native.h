/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-written native part of the Java binding: byte arrays, exceptions, structs filled from flat
 * arrays, and callbacks into Java. Functions named shw_java_* with C types are wrapped by SWIG
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
#define NATIVE(result, name) JNIEXPORT result JNICALL Java_io_shardwright_shw_1nativeJNI_##name

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

/* Struct and everything that it points to in one zeroed block: rounding adds at most eight bytes
 * per part. */
void* shw_java_block(uint64_t struct_size, uint64_t bytes, int parts, char** end);
/* Copy of size bytes at *end, which moves on; NULL stays NULL. Parts are kept at multiples of
 * eight. */
void* shw_java_place(char** end, const void* data, uint64_t size);
shw_status shw_java_out_of_memory(shw_error** err);

/* Options with copied texts; NULL pointers in ints or longs are not allowed. Release with the
 * function below. */
shw_status shw_java_save_options_create(const int32_t* ints, const int64_t* longs,
                                        const char* trace_path, const char* kind_globs,
                                        const uint64_t* kind_offsets, const int32_t* kind_values,
                                        uint64_t kind_count, const char* metadata,
                                        const uint64_t* metadata_offsets, uint64_t metadata_count,
                                        shw_cancellation* cancellation, shw_save_options** out,
                                        shw_error** err);
void shw_java_save_options_release(shw_save_options* options);
shw_status shw_java_load_options_create(const int32_t* ints, const int64_t* longs,
                                        const char* trace_path, const char* strict_globs,
                                        const uint64_t* strict_offsets, const int32_t* strict_rules,
                                        const int32_t* strict_shapes, uint64_t strict_count,
                                        shw_cancellation* cancellation, shw_load_options** out,
                                        shw_error** err);
void shw_java_load_options_release(shw_load_options* options);
shw_status shw_java_checkpoint_options_create(const int32_t* ints, const int64_t* longs,
                                              shw_cancellation* cancellation,
                                              shw_checkpoint_options** out, shw_error** err);
void shw_java_checkpoint_options_release(shw_checkpoint_options* options);
/* longs: owner, preset, flags, memory budget, bytes per second of a rank and of all. */
shw_status shw_java_estimate_options_create(const int64_t* longs, shw_estimate_options** out,
                                            shw_error** err);
void shw_java_estimate_options_release(shw_estimate_options* options);

/* Context with a Java log callback (io.shardwright.LogBridge), NULL = off. */
shw_status shw_java_context_create(uint32_t threads, uint64_t memory_budget, int32_t log_level,
                                   void* log_bridge, shw_context** out, shw_error** err);

/* Tensors in bulk. facts: seven numbers per tensor: address, bytes, dtype code + 256 * bits, ndim,
 * flags, kind, number of its layout (0 = none). shapes and strides back to back (strides NULL =
 * row-major all). layouts: their handles. The other arrays are those of shw_tensor_batch. */
shw_status shw_java_state_add_tensors(
    shw_state* state, uint64_t count, const char* names, const uint64_t* name_offsets,
    const int64_t* facts, const int64_t* shapes, const int64_t* strides,
    const int64_t* global_shapes, const uint64_t* global_shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const int64_t* local_offsets,
    const int64_t* layouts, uint64_t layout_count, int32_t rank, const char* paths,
    const uint64_t* path_offsets, shw_error** err);
shw_status shw_java_state_add_objects(shw_state* state, uint64_t count, const char* names,
                                      const uint64_t* name_offsets, const char* contents,
                                      const uint64_t* content_offsets, const char* content_types,
                                      const uint64_t* content_type_offsets, const char* paths,
                                      const uint64_t* path_offsets, const int32_t* kinds,
                                      shw_error** err);

/* placements: kinds, then dimensions, then factors, one of each per mesh axis; NULL with a tensor
 * map. */
shw_status shw_java_layout_create(const int64_t* mesh, int32_t mesh_ndim, const char* axis_names,
                                  const uint64_t* axis_name_offsets, const int32_t* ranks,
                                  uint64_t rank_count, const int32_t* placements,
                                  const int32_t* map, const uint64_t* map_offsets,
                                  int32_t tensor_ndim, shw_layout** out, shw_error** err);
/* Planning. ints: kind, rank, world size; owner, preset, cover, verify_replicas; flags, order,
 * cover, missing. */
shw_status shw_java_describe_options_create(const int32_t* ints, const char* kind_globs,
                                            const uint64_t* kind_offsets,
                                            const int32_t* kind_values, uint64_t kind_count,
                                            const char* agreement, uint64_t agreement_size,
                                            shw_describe_options** out, shw_error** err);
void shw_java_describe_options_release(shw_describe_options* options);
shw_status shw_java_merge_options_create(const int32_t* ints, shw_merge_options** out,
                                         shw_error** err);
void shw_java_merge_options_release(shw_merge_options* options);
shw_status shw_java_match_options_create(const int32_t* ints, shw_match_options** out,
                                         shw_error** err);
void shw_java_match_options_release(shw_match_options* options);
/* The arrays are those of shw_entry_batch; codes: dtypes, then kinds; secondary and digests as
 * bytes. */
shw_status shw_java_entry_batch_create(
    uint64_t count, const char* names, const uint64_t* name_offsets, const int32_t* codes,
    const int64_t* shapes, const uint64_t* shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const uint64_t* numbers,
    const uint64_t* order, const char* secondary, const uint64_t* object_sizes, const char* paths,
    const uint64_t* path_offsets, const char* attributes, const uint64_t* attribute_offsets,
    const char* digests, shw_entry_batch** out, shw_error** err);
void shw_java_entry_batch_release(shw_entry_batch* batch);
/* layouts: handles, 0 where there is none; NULL = no entry has one. */
shw_status shw_java_global_plan_describe(const shw_describe_options* options,
                                         const shw_entry_batch* entries, const int64_t* layouts,
                                         shw_buffer** out, shw_error** err);
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
shw_status shw_java_storage_size(shw_storage* storage, const char* key, uint64_t key_size,
                                 uint64_t* out, shw_error** err);

/* Waits for the end of a job or for the time to pass; the outcome is asked for elsewhere. */
void shw_java_job_wait(shw_job* job, int64_t timeout_ns);
/* The end of the job, which may be over, will wake shw_java_job_ends_wait, once. */
void shw_java_job_watch(shw_job* job);
/* Waits until a watched job has ended since the last call; may return without one. */
void shw_java_job_ends_wait(void);

/* Storages and collectives of the host; bridge is the global reference that shw_java_reference
 * gave. */
shw_status shw_java_storage_create(void* bridge, shw_storage** out, shw_error** err);
shw_status shw_java_collective_create(void* bridge, int32_t rank, int32_t size, int32_t rooted,
                                      shw_collective** out, shw_error** err);
/* Method tables that the host's objects are called through; cached at load. */
int shw_java_bind_storage(JNIEnv* env);
int shw_java_bind_collective(JNIEnv* env);
int shw_java_bind_log(JNIEnv* env);
int shw_java_bind_errors(JNIEnv* env);
void shw_java_log(void* user, int32_t level, const shw_log_record* record);

#endif
