/* SPDX-License-Identifier: Apache-2.0
 *
 * Mappings: rules that say under which names, in which shapes and in which boxes the entries of a
 * host are stored. docs/formats/mapping.md describes their JSON and those that the library brings.
 *
 * A state that a mapping made is saved and loaded as any other; its tensors are views of the memory
 * of the host, so nothing is copied where parts come together. */
#ifndef SHARDWRIGHT_MAPPING_H
#define SHARDWRIGHT_MAPPING_H

#include "base.h"
#include "state.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Rules; immutable, any thread.
 * Since: 0.1 unstable */
typedef struct shw_mapping shw_mapping;

/* What makes a mapping: `json` of `json_size` bytes, or `shipped`, the name of one that the library
 * brings ("swiglu", "gpt", "gpt_swiglu", "moe", "mamba"); one of both is NULL. Values of "$name" in
 * it: `parameter_names`, a blob that `parameter_name_offsets` (parameter_count + 1 values) cuts,
 * and `parameter_values`; all three NULL without.
 * Since: 0.1 unstable */
typedef struct shw_mapping_spec {
  uint32_t struct_size;
  uint32_t flags;
  const char* json;
  uint64_t json_size;
  const char* shipped;
  const char* parameter_names;
  const uint64_t* parameter_name_offsets;
  const int64_t* parameter_values;
  uint64_t parameter_count;
} shw_mapping_spec;

/* Byte size of the oldest published shw_mapping_spec.
 * Since: 0.1 unstable */
#define SHW_MAPPING_SPEC_SIZE_V1 64

#define SHW_MAPPING_SPEC_INIT {sizeof(shw_mapping_spec), 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a spec with zeros and its size, as SHW_MAPPING_SPEC_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_mapping_spec_init(shw_mapping_spec* spec, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a mapping; everything in `spec` is copied. INVALID_ARGUMENT names line, rule and member of
 * what is wrong, and parameters that are missing or not known.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND (nothing shipped has this name), UNIMPLEMENTED (schema)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_mapping_create(const shw_mapping_spec* spec, shw_mapping** out,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a state of what the mapping says of the entries of another one, which `out` keeps alive and
 * which must not change before `out` is released. Tensors share their memory; objects are copied,
 * number i of one being number i of the other, so that what a load found is read from `out`. Boxes
 * that one stored tensor gets from several entries are one entry. Loads set to zero what a "pad"
 * leaves out. INVALID_ARGUMENT names rule and entry (details `rule`, from 1, and `tensor`): two for
 * one entry, none for a rule, axes not divided, padding that would cut what is none, entries of one
 * tensor that do not fit; OUT_OF_RANGE: a number above its count; UNIMPLEMENTED: sub-byte elements.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ALREADY_EXISTS, UNIMPLEMENTED, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_state_map(const shw_state* state, const shw_mapping* mapping,
                                              shw_state** out,
                                              shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the mapping; states that it made do not need it. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: mapping
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_mapping_release(shw_mapping* SHW_NULLABLE mapping) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_MAPPING_H */
