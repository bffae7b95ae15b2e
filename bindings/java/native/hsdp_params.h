/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of units as the flat arrays that Java gives. Any thread. */
#ifndef SHARDWRIGHT_JAVA_HSDP_PARAMS_H
#define SHARDWRIGHT_JAVA_HSDP_PARAMS_H

#include "bindings/java/native/native.h"

/* A place in the arrays of a call, which hold the parameters of one unit behind those of another.
 * Offsets and ranges of each unit begin with 0 anew. */
typedef struct ShwJavaParams {
  const char* names;
  const uint64_t* name_offsets;
  const int64_t* facts;
  const int64_t* shapes;
  const char* aliases;
  const uint64_t* alias_offsets;
  const uint64_t* alias_ranges;
} ShwJavaParams;

/* The next `count` parameters, which borrow from the arrays and from the memory that is given
 * back, to be freed; NULL without memory. */
void* shw_java_params_next(ShwJavaParams* params, uint64_t count, shw_hsdp_param_batch* batch);

#endif
