/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries and options of planning from flat arrays, and the entries of a plan as arrays of Java:
 * one call each, however many entries there are. */
#include <stddef.h>
#include <stdlib.h>

#include "bindings/java/native/native.h"
#include "bindings/native/entry_columns.h"

shw_status shw_java_describe_options_create(const int32_t* ints, const char* kind_globs,
                                            const uint64_t* kind_offsets,
                                            const int32_t* kind_values, uint64_t kind_count,
                                            const char* agreement, uint64_t agreement_size,
                                            shw_describe_options** out, shw_error** err) {
  const uint64_t globs = kind_offsets[kind_count];
  const uint64_t offsets = (kind_count + 1) * 8, values = kind_count * 4;
  char* end = NULL;
  shw_describe_options* o =
      shw_java_block(sizeof(*o), globs + offsets + values + agreement_size, 4, &end);
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_describe_options_init(o, sizeof(*o));
  o->kind = ints[0];
  o->rank = ints[1];
  o->world_size = ints[2];
  o->kind_globs = shw_java_place(&end, kind_globs, globs);
  o->kind_offsets = shw_java_place(&end, kind_offsets, offsets);
  o->kind_values = shw_java_place(&end, kind_values, values);
  o->kind_count = kind_count;
  o->agreement = shw_java_place(&end, agreement, agreement_size);
  o->agreement_size = agreement_size;
  *out = o;
  return SHW_OK;
}

void shw_java_describe_options_release(shw_describe_options* options) {
  free(options);
}

shw_status shw_java_merge_options_create(const int32_t* ints, shw_merge_options** out,
                                         shw_error** err) {
  shw_merge_options* o = malloc(sizeof(*o));
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_merge_options_init(o, sizeof(*o));
  o->owner = ints[0];
  o->preset = ints[1];
  o->cover = ints[2];
  o->verify_replicas = ints[3];
  *out = o;
  return SHW_OK;
}

void shw_java_merge_options_release(shw_merge_options* options) {
  free(options);
}

shw_status shw_java_match_options_create(const int32_t* ints, shw_match_options** out,
                                         shw_error** err) {
  shw_match_options* o = malloc(sizeof(*o));
  if (o == NULL) return shw_java_out_of_memory(err);
  shw_match_options_init(o, sizeof(*o));
  o->flags = (uint32_t)ints[0];
  o->order = ints[1];
  o->cover = ints[2];
  o->missing = ints[3];
  o->rank = ints[4];
  *out = o;
  return SHW_OK;
}

void shw_java_match_options_release(shw_match_options* options) {
  free(options);
}

/* ---- entries ---- */

/* Java gives arrays of the lengths that its builder has checked; all are copied behind the struct.
 * codes: dtypes, then kinds. */
shw_status shw_java_entry_batch_create(
    uint64_t count, const char* names, const uint64_t* name_offsets, const int32_t* codes,
    const int64_t* shapes, const uint64_t* shape_offsets, const uint64_t* box_ranges,
    const int64_t* box_offsets, const int64_t* box_sizes, const uint64_t* numbers,
    const uint64_t* order, const char* secondary, const uint64_t* object_sizes, const char* paths,
    const uint64_t* path_offsets, const char* attributes, const uint64_t* attribute_offsets,
    const char* digests, shw_entry_batch** out, shw_error** err) {
  shw_entry_batch given = SHW_ENTRY_BATCH_INIT;
  given.count = count;
  given.names = names;
  given.name_offsets = name_offsets;
  given.dtypes = codes;
  given.kinds = codes + count;
  given.shapes = shapes;
  given.shape_offsets = shape_offsets;
  given.box_ranges = box_ranges;
  given.box_offsets = box_offsets;
  given.box_sizes = box_sizes;
  given.numbers = numbers;
  given.order = order;
  given.secondary = (const shw_bool*)secondary;
  given.object_sizes = object_sizes;
  given.paths = paths;
  given.path_offsets = path_offsets;
  given.attributes = attributes;
  given.attribute_offsets = attribute_offsets;
  given.digests = (const uint8_t*)digests;
  uint64_t bytes = 0;
  for (size_t i = 0; i < ENTRY_COLUMNS; ++i)
    bytes += entry_column_length(&given, &kEntryColumns[i]) * kEntryColumns[i].width;
  char* end = NULL;
  shw_entry_batch* batch = shw_java_block(sizeof(*batch), bytes, ENTRY_COLUMNS, &end);
  if (batch == NULL) return shw_java_out_of_memory(err);
  *batch = given;
  for (size_t i = 0; i < ENTRY_COLUMNS; ++i) {
    const entry_column* c = &kEntryColumns[i];
    *entry_field(batch, c->offset) = shw_java_place(&end, *entry_field(&given, c->offset),
                                                    entry_column_length(&given, c) * c->width);
  }
  *out = batch;
  return SHW_OK;
}

void shw_java_entry_batch_release(shw_entry_batch* batch) {
  free(batch);
}

/* An array of Java with the column; NULL with an exception pending when memory is out. */
static jobject array_of(JNIEnv* env, const void* data, uint64_t count, uint32_t width) {
  if (count * width > INT32_MAX) return shw_java_bytes(env, data, count * width); /* throws */
  const jsize length = (jsize)count;
  if (width == 8) return shw_java_longs(env, data, count);
  if (width != 4) return shw_java_bytes(env, data, count * width);
  jintArray array = (*env)->NewIntArray(env, length);
  if (array != NULL && length > 0) (*env)->SetIntArrayRegion(env, array, 0, length, data);
  return array;
}

/* Arrays in the order of kEntryColumns, null for those that the plan does not have; null for a plan
 * without entries. */
NATIVE(jobject, planEntries)(JNIEnv* env, jclass type, jlong plan) {
  (void)type;
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_error* err = NULL;
  const shw_status status = shw_plan_entries((const shw_plan*)(intptr_t)plan, &batch, &err);
  if (status != SHW_OK) {
    shw_java_throw(env, status, err);
    return NULL;
  }
  if (batch.count == 0) return NULL;
  jclass object = (*env)->FindClass(env, "java/lang/Object");
  jobjectArray arrays =
      object != NULL ? (*env)->NewObjectArray(env, ENTRY_COLUMNS, object, NULL) : NULL;
  for (size_t i = 0; arrays != NULL && i < ENTRY_COLUMNS; ++i) {
    const entry_column* c = &kEntryColumns[i];
    const void* data = *entry_field(&batch, c->offset);
    const uint64_t count = entry_column_length(&batch, c);
    const int absent = data == NULL && (count != 0 || c->length == BY_BOX || c->length == CUTS);
    if (absent) continue;
    jobject array = array_of(env, data, count, (uint32_t)c->width);
    if (array == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, arrays, (jsize)i, array);
    (*env)->DeleteLocalRef(env, array);
  }
  return arrays;
}

/* ---- calls whose arguments need more than a typemap ---- */

/* layouts: handles, 0 where there is none; NULL = no entry has one. */
shw_status shw_java_global_plan_describe(const shw_describe_options* options,
                                         const shw_entry_batch* entries, const int64_t* layouts,
                                         shw_buffer** out, shw_error** err) {
  const shw_layout** list = NULL;
  if (layouts != NULL) {
    list = malloc((entries->count + 1) * sizeof(*list));
    if (list == NULL) return shw_java_out_of_memory(err);
    for (uint64_t i = 0; i < entries->count; ++i) list[i] = (const shw_layout*)(intptr_t)layouts[i];
  }
  const shw_status status = shw_global_plan_describe(options, entries, list, out, err);
  free(list);
  return status;
}

/* The one part of out: a rank (int32) per shard. */
shw_status shw_java_plan_owners(uint64_t count, const uint64_t* weights, const int32_t* sets,
                                const char* secondary, uint64_t set_count,
                                const uint64_t* set_offsets, const int32_t* holders,
                                int32_t rank_count, shw_buffer** out, shw_error** err) {
  int32_t* owners = malloc((count + 1) * sizeof(*owners));
  if (owners == NULL) return shw_java_out_of_memory(err);
  shw_status status =
      shw_plan_owners(count, weights, (const uint32_t*)sets, (const shw_bool*)secondary, set_count,
                      set_offsets, holders, rank_count, owners, err);
  if (status == SHW_OK) status = shw_buffer_create(owners, count * sizeof(*owners), out, err);
  free(owners);
  return status;
}
