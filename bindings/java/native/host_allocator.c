/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator table of a unit over a Java HostAllocatorBridge, whose global reference is the user
 * of the table. An exception becomes HOST_EXCEPTION and is put aside. */
#include "bindings/java/native/native.h"

static struct {
  jmethodID allocate, deallocate;
} methods;

int shw_java_bind_allocator(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "io/shardwright/hsdp/HostAllocatorBridge");
  if (type == NULL) return -1;
  methods.allocate = (*env)->GetMethodID(env, type, "allocate", "(JJ)J");
  if (methods.allocate == NULL) return -1;
  methods.deallocate = (*env)->GetMethodID(env, type, "deallocate", "(JJ)V");
  return methods.deallocate == NULL ? -1 : 0;
}

static shw_status host_allocate(void* user, uint64_t param, uint64_t bytes, void** out,
                                shw_error** err) {
  JNIEnv* env = shw_java_enter(err);
  if (env == NULL) return SHW_UNAVAILABLE;
  const jlong address =
      (*env)->CallLongMethod(env, (jobject)user, methods.allocate, (jlong)param, (jlong)bytes);
  const shw_status status = shw_java_leave(env, err);
  if (status == SHW_OK) *out = (void*)(intptr_t)address;
  return status;
}

static void host_deallocate(void* user, uint64_t param, void* memory, uint64_t bytes) {
  (void)bytes;
  JNIEnv* env = shw_java_enter(NULL);
  if (env == NULL) return;
  (*env)->CallVoidMethod(env, (jobject)user, methods.deallocate, (jlong)param,
                         (jlong)(intptr_t)memory);
  shw_java_leave(env, NULL); /* a release has no way to fail */
}

static void host_release(void* user) {
  JNIEnv* env = shw_java_environment();
  if (env != NULL) (*env)->DeleteGlobalRef(env, (jobject)user);
}

shw_status shw_java_hsdp_set_allocator(shw_hsdp_unit* unit, void* bridge, shw_error** err) {
  shw_hsdp_allocator table = SHW_HSDP_ALLOCATOR_INIT;
  table.user = bridge;
  table.allocate = host_allocate;
  table.deallocate = host_deallocate;
  table.release = host_release;
  const shw_status status = shw_hsdp_unit_set_allocator(unit, &table, err);
  if (status != SHW_OK) host_release(bridge);
  return status;
}
