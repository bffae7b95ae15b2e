/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of HSDP: parameters and gradients from the flat arrays that Java gives, views of the
 * library's memory, and memory that the host gives. What is borrowed is kept alive by the classes
 * of Java. */
#include <stdlib.h>

#include "bindings/java/native/hsdp_params.h"
#include "bindings/java/native/tensor_facts.h"

enum { kShardDim = kTensorFacts, kFlags, kParamFacts };

/* ---- parameters and gradients ---- */

void* shw_java_params_next(ShwJavaParams* params, uint64_t count, shw_hsdp_param_batch* batch) {
  shw_tensor* tensors = malloc(count * (sizeof *tensors + 2 * sizeof(int32_t)) + 1);
  if (tensors == NULL) return NULL;
  int32_t* shard_dims = (int32_t*)(tensors + count);
  uint32_t* flags = (uint32_t*)(shard_dims + count);
  for (uint64_t i = 0; i < count; ++i, params->facts += kParamFacts) {
    tensors[i] = shw_java_tensor(params->facts, &params->shapes);
    shard_dims[i] = (int32_t)params->facts[kShardDim];
    flags[i] = (uint32_t)params->facts[kFlags];
  }
  const shw_hsdp_param_batch empty = SHW_HSDP_PARAM_BATCH_INIT;
  *batch = empty;
  batch->count = count;
  batch->names = params->names;
  batch->name_offsets = params->name_offsets;
  batch->tensors = tensors;
  batch->shard_dims = shard_dims;
  batch->param_flags = flags;
  batch->aliases = params->aliases;
  batch->alias_offsets = params->alias_offsets;
  batch->alias_ranges = params->alias_ranges;
  const uint64_t alias_count = params->alias_ranges[count];
  params->names += params->name_offsets[count];
  params->name_offsets += count + 1;
  params->aliases += params->alias_offsets[alias_count];
  params->alias_offsets += alias_count + 1;
  params->alias_ranges += count + 1;
  return tensors;
}

shw_status shw_java_hsdp_add_params(shw_hsdp_unit* unit, uint64_t count, const char* names,
                                    const uint64_t* name_offsets, const int64_t* facts,
                                    const int64_t* shapes, const char* aliases,
                                    const uint64_t* alias_offsets, const uint64_t* alias_ranges,
                                    shw_error** err) {
  ShwJavaParams params = {names, name_offsets, facts, shapes, aliases, alias_offsets, alias_ranges};
  shw_hsdp_param_batch batch;
  void* held = shw_java_params_next(&params, count, &batch);
  if (held == NULL) return shw_java_out_of_memory(err);
  const shw_status status = shw_hsdp_unit_add_params(unit, &batch, err);
  free(held);
  return status;
}

shw_status shw_java_hsdp_add_grads(shw_hsdp_unit* unit, const uint64_t* params,
                                   const int64_t* facts, const int64_t* shapes, uint64_t count,
                                   int32_t mode, shw_error** err) {
  shw_tensor* grads = malloc(count * sizeof *grads + 1);
  if (grads == NULL) return shw_java_out_of_memory(err);
  for (uint64_t i = 0; i < count; ++i)
    grads[i] = shw_java_tensor(facts + i * kTensorFacts, &shapes);
  const shw_status status = shw_hsdp_unit_add_grads(unit, params, grads, count, mode, err);
  free(grads);
  return status;
}

/* ---- lists of addresses and handles ---- */

/* Numbers as pointers, which Java has no arrays of; NULL without memory. */
static void** pointers_of(const int64_t* numbers, uint64_t count) {
  void** pointers = malloc(count * sizeof *pointers + 1);
  for (uint64_t i = 0; pointers != NULL && i < count; ++i)
    pointers[i] = (void*)(intptr_t)numbers[i];
  return pointers;
}

shw_status shw_java_hsdp_set_memory(shw_hsdp_unit* unit, uint64_t first, uint64_t count,
                                    const int64_t* memory, const uint64_t* sizes, shw_error** err) {
  void** places = pointers_of(memory, count);
  if (places == NULL) return shw_java_out_of_memory(err);
  const shw_status status = shw_hsdp_unit_set_memory(unit, first, count, places, sizes, err);
  free(places);
  return status;
}

shw_status shw_java_hsdp_set_units(shw_hsdp_unit* unit, int32_t key, const int64_t* units,
                                   uint64_t count, shw_error** err) {
  void** handles = pointers_of(units, count);
  if (handles == NULL) return shw_java_out_of_memory(err);
  const shw_status status =
      shw_hsdp_unit_set_units(unit, key, (shw_hsdp_unit* const*)handles, count, err);
  free(handles);
  return status;
}

/* ---- what units say ---- */

static jlongArray failed(JNIEnv* env, shw_status status, shw_error* err) {
  shw_java_throw(env, status, err);
  return NULL;
}

NATIVE(jdouble, hsdpGlobalNorm)(JNIEnv* env, jclass type, jlong hsdp, jdouble p) {
  (void)type;
  double norm = 0;
  shw_error* err = NULL;
  const shw_status status = shw_hsdp_global_norm((shw_hsdp*)(intptr_t)hsdp, p, &norm, &err);
  if (status != SHW_OK) shw_java_throw(env, status, err);
  return norm;
}

NATIVE(jdouble, hsdpDivideFactor)(JNIEnv* env, jclass type, jlong unit) {
  (void)type;
  double factor = 0;
  shw_error* err = NULL;
  const shw_status status = shw_hsdp_unit_get_f64((const shw_hsdp_unit*)(intptr_t)unit,
                                                  SHW_HSDP_DIVIDE_FACTOR, &factor, &err);
  if (status != SHW_OK) shw_java_throw(env, status, err);
  return factor;
}

/* address (0 = there is no gradient), bytes, dtype, device type, device id, then the extents */
NATIVE(jlongArray, hsdpView)(JNIEnv* env, jclass type, jlong unit, jint view, jlong index) {
  (void)type;
  shw_tensor found = SHW_TENSOR_INIT;
  shw_error* err = NULL;
  const shw_status status =
      shw_hsdp_unit_views((shw_hsdp_unit*)(intptr_t)unit, view, (uint64_t)index, 1, &found, &err);
  if (status != SHW_OK) return failed(env, status, err);
  jlong values[5 + 64] = {(jlong)(intptr_t)found.data, (jlong)found.byte_size, found.dtype,
                          found.device_type, found.device_id};
  for (int32_t d = 0; d < found.ndim; ++d) values[5 + d] = found.shape[d];
  return shw_java_longs(env, values, 5 + (uint64_t)found.ndim);
}

/* offsets, then sizes, then the global shape */
NATIVE(jlongArray, hsdpBox)(JNIEnv* env, jclass type, jlong unit, jlong index) {
  (void)type;
  shw_hsdp_box box = SHW_HSDP_BOX_INIT;
  shw_error* err = NULL;
  const shw_status status =
      shw_hsdp_unit_box((shw_hsdp_unit*)(intptr_t)unit, (uint64_t)index, &box, &err);
  if (status != SHW_OK) return failed(env, status, err);
  jlong values[3 * 64] = {0};
  for (int32_t d = 0; d < box.ndim; ++d) {
    values[d] = box.offsets[d];
    values[box.ndim + d] = box.sizes[d];
    values[2 * box.ndim + d] = box.global_shape[d];
  }
  return shw_java_longs(env, values, 3 * (uint64_t)box.ndim);
}
