/* SPDX-License-Identifier: Apache-2.0
 *
 * Java typemaps. Handles are jlong; a status other than OK throws through ShardwrightException.create; `out` becomes
 * the result; text goes as UTF-8 byte arrays in both directions, because JNI strings are modified UTF-8. The generated
 * classes are of the package io.shardwright.internal, which is no API; all others are hand-written in bindings/java.
 *
 * Structs are objects of the classes of Structs.java: structs.i is generated from the headers, as they are, and says which;
 * native/structs.c fills and reads them. What needs more than a typemap (tensors in bulk, callbacks) is C in
 * bindings/java/native, declared at the end with flat arrays as parameters. */
%{
#include "bindings/java/native/native.h"
#include "bindings/java/native/structs.h"
%}

%pragma(java) jniclassclassmodifiers="public final class"
%pragma(java) moduleclassmodifiers="public final class"
%pragma(java) constantsmodifiers="public interface"
%javaconst(1);
/* The same four bytes as an int of Java. */
%javaconstvalue("-1") SHW_NOT_KEPT;

/* Errors are read by native/errors.c; structs and vtables are filled by hand-written C. */
%rename("$ignore", regextarget=1) "_init$";
%rename("$ignore", regextarget=1, fullname=1, %$isclass) ".*";
%rename("$ignore", regextarget=1) "^shw_error_";
%ignore shw_get_api;
%ignore SHW_PLUGIN_ENTRY;
%ignore SHW_MEGATRON_NAME;
%ignore shw_abi_version;
%ignore shw_get_extension;
%ignore shw_tensor_check;
%ignore shw_tensor_from_dlpack;
%ignore shw_tensor_from_dlpack_legacy;
%ignore shw_owned_tensor_describe;
%ignore shw_owned_tensor_dlpack;
%ignore shw_owned_tensor_dlpack_legacy;
%ignore shw_layout_box_count;
%ignore shw_layout_boxes;
%ignore shw_layout_local_offsets;
%ignore shw_layout_local_shape;
%ignore shw_layout_contains;
%ignore shw_save_options_set_metadata;
%ignore shw_state_add_tensor;
%ignore shw_state_add_tensors;
%ignore shw_state_add_dlpack;
%ignore shw_state_add_dlpack_legacy;
%ignore shw_state_add_object;
%ignore shw_state_tensor;
%ignore shw_state_global_shape;
%ignore shw_state_boxes;
%ignore shw_object_key_parse;
%ignore shw_state_object_data;
%ignore shw_plan_item_at;
%ignore shw_plan_merge_buffers;
%ignore shw_job_error;
%ignore shw_job_on_done;
%ignore shw_context_create;
%ignore shw_exchange_plans;
%ignore shw_load_exchange_begin_round;
%ignore shw_checkpoint_tensor_shape;
%ignore shw_checkpoint_chunk_box;
%ignore shw_checkpoint_read_boxes;
%ignore shw_storage_create;
%ignore shw_collective_create;
%ignore shw_collective_create_node;
%ignore shw_buffer_part_offsets;
%ignore shw_collective_barrier;
%ignore shw_collective_broadcast;
%ignore shw_collective_all_gather;
%ignore shw_collective_all_gather_v;
%ignore shw_collective_gather_v;
%ignore shw_collective_scatter_v;
%ignore shw_collective_all_to_all_v;
%ignore shw_collective_all_reduce_i64;
%rename("$ignore", regextarget=1) "^shw_context_(plugins|open_(storage|collective))$";
/* Tables of functions, memory of the host and lists of handles: bindings/java/native has them. */
%ignore shw_communicator_create;
%rename("$ignore", regextarget=1) "^shw_communicator_(all_gather|all_to_all|reduce_scatter|all_reduce|broadcast|barrier)$";
%ignore shw_work_order;
%ignore shw_device_create;
%ignore shw_hsdp_global_norm;
%ignore shw_hsdp_unit_get_f64;
%ignore shw_hsdp_estimate;
%rename("$ignore", regextarget=1) "^shw_hsdp_unit_(add_params|add_grads|view|box|set_allocator|set_memory|set_units)";

/* Java long holds both: sizes are bounded by INT64_MAX. */
%apply long long { int64_t, uint64_t };

/* Status and error. The result of a status function is 0 unless it has an `out`. */
%typemap(jni) shw_status "jlong"
%typemap(jtype) shw_status "long"
%typemap(jstype) shw_status "long"
%typemap(javaout) shw_status { return $jnicall; }
%typemap(out, noblock=1) shw_status { $result = 0; (void)$1; }
%typemap(in, numinputs=0, noblock=1) shw_error **err (shw_error *error = NULL) { $1 = &error; }
%typemap(argout, noblock=1) shw_error **err {
  if (result != SHW_OK && result != SHW_PENDING) shw_java_throw(jenv, result, *$1);
}
/* A wait answers PENDING, which is no error. */
%typemap(out, noblock=1) shw_status shw_job_wait, shw_status shw_job_wait_staged, shw_status shw_context_shutdown,
                         shw_status shw_work_wait, shw_status shw_work_poll {
  $result = $1;
}

/* Handles. */
%define SHW_JAVA_HANDLE(NOUN)
%typemap(jni) shw_##NOUN *, const shw_##NOUN * "jlong"
%typemap(jtype) shw_##NOUN *, const shw_##NOUN * "long"
%typemap(jstype) shw_##NOUN *, const shw_##NOUN * "long"
%typemap(javain) shw_##NOUN *, const shw_##NOUN * "$javainput"
%typemap(javaout) shw_##NOUN *, const shw_##NOUN * { return $jnicall; }
%typemap(in, noblock=1) shw_##NOUN *, const shw_##NOUN * { $1 = ($1_ltype)(intptr_t)$input; }
%typemap(out, noblock=1) shw_##NOUN *, const shw_##NOUN * { $result = (jlong)(intptr_t)$1; }
%typemap(in, numinputs=0, noblock=1) shw_##NOUN **out (shw_##NOUN *made = NULL) { $1 = &made; }
%typemap(argout, noblock=1) shw_##NOUN **out { if (result == SHW_OK) $result = (jlong)(intptr_t)*$1; }
%enddef
SHW_JAVA_HANDLE(context)
SHW_JAVA_HANDLE(layout)
SHW_JAVA_HANDLE(mapping)
SHW_JAVA_HANDLE(state)
SHW_JAVA_HANDLE(save_planner)
SHW_JAVA_HANDLE(load_planner)
SHW_JAVA_HANDLE(load_exchange)
SHW_JAVA_HANDLE(plan)
SHW_JAVA_HANDLE(checkpoint)
SHW_JAVA_HANDLE(storage)
SHW_JAVA_HANDLE(collective)
SHW_JAVA_HANDLE(collective_group)
SHW_JAVA_HANDLE(job)
SHW_JAVA_HANDLE(cancellation)
SHW_JAVA_HANDLE(report)
SHW_JAVA_HANDLE(buffer)
SHW_JAVA_HANDLE(owned_tensor)
SHW_JAVA_HANDLE(job_description)
SHW_JAVA_HANDLE(global_plan)
SHW_JAVA_HANDLE(communicator)
SHW_JAVA_HANDLE(communicator_group)
SHW_JAVA_HANDLE(work)
SHW_JAVA_HANDLE(device)
SHW_JAVA_HANDLE(hsdp_mesh)
SHW_JAVA_HANDLE(hsdp)
SHW_JAVA_HANDLE(hsdp_unit)

/* Structs, by the generated tables. A call whose arguments threw is not made. */
%define SHW_STRUCT_IN(NAME, CLASS)
%typemap(jni) const NAME * "jobject"
%typemap(jtype) const NAME * "Structs.CLASS"
%typemap(jstype) const NAME * "Structs.CLASS"
%typemap(javain) const NAME * "$javainput"
%typemap(in, noblock=1) const NAME * (NAME filled, ShwJavaHeld held) {
  held.count = 0;
  $1 = ($1_ltype)shw_java_struct_read(jenv, $input, &NAME##_table, &filled, &held);
}
%typemap(freearg, noblock=1) const NAME * { shw_java_struct_free(jenv, &held$argnum); }
%enddef
%define SHW_STRUCT_OUT(NAME)
%typemap(in, numinputs=0, noblock=1) NAME *out (NAME made) {
  memset(&made, 0, sizeof made);
  made.struct_size = sizeof made;
  $1 = &made;
}
%typemap(argout, noblock=1) NAME *out {
  if (result == SHW_OK) $result = shw_java_struct_write(jenv, &NAME##_table, $1);
}
%enddef
%define SHW_STRUCT_RESULT(FUNCTION, CLASS)
%typemap(jni) shw_status FUNCTION "jobject"
%typemap(jtype) shw_status FUNCTION "Structs.CLASS"
%typemap(jstype) shw_status FUNCTION "Structs.CLASS"
%typemap(javaout) shw_status FUNCTION { return $jnicall; }
%typemap(out, noblock=1) shw_status FUNCTION { $result = NULL; (void)$1; }
%enddef
%define SHW_STRUCT_CALL(FUNCTION)
%exception FUNCTION {
  result = SHW_INTERNAL;
  if (!(*jenv)->ExceptionCheck(jenv)) { $action }
}
%enddef
/* `count` structs: an object of columns. */
%define SHW_STRUCT_LIST(FUNCTION, NAME, CLASS, LIST)
%typemap(jni) (uint64_t count, NAME *LIST) "jlong"
%typemap(jtype) (uint64_t count, NAME *LIST) "long"
%typemap(jstype) (uint64_t count, NAME *LIST) "long"
%typemap(javain) (uint64_t count, NAME *LIST) "$javainput"
%typemap(in, noblock=1) (uint64_t count, NAME *LIST) {
  $1 = (uint64_t)$input;
  $2 = shw_java_struct_list(jenv, &NAME##_table, $1);
}
%typemap(argout, noblock=1) (uint64_t count, NAME *LIST) {
  if (result == SHW_OK) $result = shw_java_struct_write_columns(jenv, &NAME##_table, $2, $1);
}
%typemap(freearg, noblock=1) (uint64_t count, NAME *LIST) { free($2); }
%typemap(jni) shw_status FUNCTION "jobject"
%typemap(jtype) shw_status FUNCTION "Structs." #CLASS "Columns"
%typemap(jstype) shw_status FUNCTION "Structs." #CLASS "Columns"
%typemap(javaout) shw_status FUNCTION { return $jnicall; }
%typemap(out, noblock=1) shw_status FUNCTION { $result = NULL; (void)$1; }
SHW_STRUCT_CALL(FUNCTION)
%enddef
%include "structs.i"
/* Of native/hsdp.c, which no header has. */
SHW_STRUCT_RESULT(shw_java_hsdp_estimate, HsdpMemory)
SHW_STRUCT_CALL(shw_java_hsdp_estimate)
/* One layout per entry, as shw_global_plan_describe has them. */
%typemap(jni) const shw_layout *const *layouts "jlongArray"
%typemap(jtype) const shw_layout *const *layouts "long[]"
%typemap(jstype) const shw_layout *const *layouts "long[]"
%typemap(javain) const shw_layout *const *layouts "$javainput"
%typemap(in, noblock=1) const shw_layout *const *layouts {
  $1 = $input != NULL ? ($1_ltype)(*jenv)->GetLongArrayElements(jenv, $input, NULL) : NULL;
}
%typemap(freearg, noblock=1) const shw_layout *const *layouts {
  if ($1 != NULL) (*jenv)->ReleaseLongArrayElements(jenv, $input, (void *)(intptr_t)$1, JNI_ABORT);
}

%typemap(in, numinputs=0, noblock=1) uint64_t *out (uint64_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) uint64_t *out { if (result == SHW_OK) $result = (jlong)*$1; }
%typemap(in, numinputs=0, noblock=1) int64_t *out (int64_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) int64_t *out { if (result == SHW_OK) $result = (jlong)*$1; }
%typemap(in, numinputs=0, noblock=1) int32_t *out (int32_t number = 0) { $1 = &number; }
%typemap(argout, noblock=1) int32_t *out { if (result == SHW_OK) $result = (jlong)*$1; }

/* Addresses of native memory, as given by addressOf and read by view. */
%typemap(jni) const void *, void * "jlong"
%typemap(jtype) const void *, void * "long"
%typemap(jstype) const void *, void * "long"
%typemap(javain) const void *, void * "$javainput"
%typemap(javaout) const void *, void * { return $jnicall; }
%typemap(in, noblock=1) const void *, void * { $1 = ($1_ltype)(intptr_t)$input; }
%typemap(out, noblock=1) const void *, void * { $result = (jlong)(intptr_t)$1; }

/* Text out: `size` bytes, NUL allowed; static text without size ends at its NUL. */
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "byte[]"
%typemap(javaout) const char * { return $jnicall; }
%typemap(out, noblock=1) const char * { $result = shw_java_bytes(jenv, $1, $1 != NULL ? strlen($1) : 0); }
%typemap(in, numinputs=0, noblock=1) uint64_t *size (uint64_t length = 0) { $1 = &length; }
%typemap(argout, noblock=1) uint64_t *size { $result = shw_java_bytes(jenv, result, *$1); }

/* Text in: NUL-terminated byte arrays, null = NULL. */
%typemap(in, noblock=1) const char * (ShwJavaBytes text) {
  $1 = ($1_ltype)shw_java_pin(jenv, $input, &text);
}
%typemap(freearg, noblock=1) const char * { shw_java_unpin(jenv, $input, &text$argnum); }
%typemap(javain) const char * "$javainput"

/* (bytes, size): one byte array of exactly that size. */
%define SHW_JAVA_BYTES(TYPE, NAME, SIZE)
%typemap(jni) (TYPE NAME, uint64_t SIZE) "jbyteArray"
%typemap(jtype) (TYPE NAME, uint64_t SIZE) "byte[]"
%typemap(jstype) (TYPE NAME, uint64_t SIZE) "byte[]"
%typemap(javain) (TYPE NAME, uint64_t SIZE) "$javainput"
%typemap(in, noblock=1) (TYPE NAME, uint64_t SIZE) (ShwJavaBytes pinned) {
  $1 = ($1_ltype)shw_java_pin(jenv, $input, &pinned);
  $2 = pinned.size;
}
%typemap(freearg, noblock=1) (TYPE NAME, uint64_t SIZE) { shw_java_unpin(jenv, $input, &pinned$argnum); }
%enddef
SHW_JAVA_BYTES(const char *, name, name_size)
SHW_JAVA_BYTES(const char *, key, key_size)
SHW_JAVA_BYTES(const char *, prefix, prefix_size)
SHW_JAVA_BYTES(const char *, expected_version, expected_version_size)
SHW_JAVA_BYTES(const char *, message, message_size)
SHW_JAVA_BYTES(const char *, config, config_size)
SHW_JAVA_BYTES(const char *, question, question_size)
SHW_JAVA_BYTES(const void *, data, size)
SHW_JAVA_BYTES(const void *, plan, plan_size)

/* Arrays of numbers, null = NULL; copied back is nothing: all are inputs. */
%define SHW_JAVA_ARRAY(CTYPE, JARRAY, JNAME, GETTER, RELEASER)
%typemap(jni) const CTYPE * "JARRAY"
%typemap(jtype) const CTYPE * "JNAME[]"
%typemap(jstype) const CTYPE * "JNAME[]"
%typemap(javain) const CTYPE * "$javainput"
%typemap(in, noblock=1) const CTYPE * {
  $1 = $input != NULL ? ($1_ltype)(*jenv)->GETTER(jenv, $input, NULL) : NULL;
}
%typemap(freearg, noblock=1) const CTYPE * {
  if ($1 != NULL) (*jenv)->RELEASER(jenv, $input, (void *)(intptr_t)$1, JNI_ABORT);
}
%enddef
SHW_JAVA_ARRAY(int64_t, jlongArray, long, GetLongArrayElements, ReleaseLongArrayElements)
SHW_JAVA_ARRAY(uint64_t, jlongArray, long, GetLongArrayElements, ReleaseLongArrayElements)
SHW_JAVA_ARRAY(int32_t, jintArray, int, GetIntArrayElements, ReleaseIntArrayElements)

%include "bindings/java/native/natives.i"
