/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of HSDP, foretold: units are runs of one list of parameters. */
#include <stdlib.h>

#include "bindings/java/native/hsdp_params.h"

/* The numbers of a unit: those of its options, then its own. */
enum {
  kOptionFlags,
  kParamDtype,
  kReduceDtype,
  kOutputDtype,
  kGradDtype,
  kLayout,
  kReshard,
  kSecondarySize,
  kUnused,
  kUnitFlags,
  kParamCount,
  kUnitFacts
};

/* What a unit points to. */
typedef struct Held {
  shw_hsdp_unit_options options;
  shw_hsdp_param_batch params;
  void* columns;
} Held;

static shw_hsdp_unit_options options_of(const int64_t* facts) {
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  options.flags = (uint32_t)facts[kOptionFlags];
  options.param_dtype = (int32_t)facts[kParamDtype];
  options.reduce_dtype = (int32_t)facts[kReduceDtype];
  options.output_dtype = (int32_t)facts[kOutputDtype];
  options.grad_dtype = (int32_t)facts[kGradDtype];
  options.layout = (int32_t)facts[kLayout];
  options.reshard_after_forward = (int32_t)facts[kReshard];
  options.secondary_size = facts[kSecondarySize];
  options.unused = (int32_t)facts[kUnused];
  return options;
}

/* -1 without memory; what was made is to be freed in either case. */
static int fill(const int64_t* facts, uint64_t count, ShwJavaParams* params, Held* held,
                shw_hsdp_estimate_unit* units) {
  for (uint64_t i = 0; i < count; ++i, facts += kUnitFacts) {
    const shw_hsdp_estimate_unit empty = SHW_HSDP_ESTIMATE_UNIT_INIT;
    held[i].options = options_of(facts);
    held[i].columns = shw_java_params_next(params, (uint64_t)facts[kParamCount], &held[i].params);
    if (held[i].columns == NULL) return -1;
    units[i] = empty;
    units[i].flags = (uint32_t)facts[kUnitFlags];
    units[i].params = &held[i].params;
    units[i].options = &held[i].options;
  }
  return 0;
}

shw_status shw_java_hsdp_estimate(uint64_t unit_count, const int64_t* units, const char* names,
                                  const uint64_t* name_offsets, const int64_t* facts,
                                  const int64_t* shapes, const char* aliases,
                                  const uint64_t* alias_offsets, const uint64_t* alias_ranges,
                                  const shw_hsdp_estimate_world* world,
                                  const shw_hsdp_options* options, int32_t kind,
                                  shw_hsdp_memory* out, shw_error** err) {
  ShwJavaParams params = {names, name_offsets, facts, shapes, aliases, alias_offsets, alias_ranges};
  Held* held = calloc(unit_count + 1, sizeof *held);
  shw_hsdp_estimate_unit* made = calloc(unit_count + 1, sizeof *made);
  shw_status status;
  if (held != NULL && made != NULL && fill(units, unit_count, &params, held, made) == 0)
    status = shw_hsdp_estimate(made, unit_count, world, options, kind, out, err);
  else
    status = shw_java_out_of_memory(err);
  for (uint64_t i = 0; held != NULL && i < unit_count; ++i) free(held[i].columns);
  free(made);
  free(held);
  return status;
}
