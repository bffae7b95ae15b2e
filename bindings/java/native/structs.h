/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the headers between the classes of Structs.java and C, by the generated tables. Any
 * thread. */
#ifndef SHARDWRIGHT_JAVA_STRUCTS_H
#define SHARDWRIGHT_JAVA_STRUCTS_H

#include "bindings/java/native/native.h"
#include "struct_tables.h"

/* Arrays that a filled struct borrows. */
typedef struct ShwJavaHeld {
  jarray arrays[SHW_POINTERS_MAX];
  void* elements[SHW_POINTERS_MAX];
  uint8_t widths[SHW_POINTERS_MAX]; /* bytes of an element of Java */
  int count;
} ShwJavaHeld;

/* Looks up the class of a struct, which else happens at its first use; -1 with an exception
 * pending. */
int shw_java_struct_bind(JNIEnv* env, const shw_struct* type);
/* Fills a struct from an object of its class; null gives a NULL result. With an exception pending
 * the call must not be made. What is held is given back by struct_free. */
const void* shw_java_struct_read(JNIEnv* env, jobject given, const shw_struct* type, void* into,
                                 ShwJavaHeld* held);
void shw_java_struct_free(JNIEnv* env, ShwJavaHeld* held);
/* A new object of the struct's class: arrays are copied, null where they are NULL; NULL with an
 * exception pending. */
jobject shw_java_struct_write(JNIEnv* env, const shw_struct* type, const void* from);
/* Memory for `count` structs, their sizes set, to be freed; NULL with an exception pending. */
void* shw_java_struct_list(JNIEnv* env, const shw_struct* type, uint64_t count);
/* A new object of the class of their columns: an object each would cost more than what it says.
 * NULL with an exception pending. */
jobject shw_java_struct_write_columns(JNIEnv* env, const shw_struct* type, const void* from,
                                      uint64_t count);

#endif
