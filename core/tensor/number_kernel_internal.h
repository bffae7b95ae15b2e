// SPDX-License-Identifier: Apache-2.0
//
// Loops over numbers, compiled once per instruction set from one body: the library's baseline stays
// plain, the best table is chosen at run time. All tables give the same bits: nothing is contracted
// or reassociated, and a NaN that is computed is the positive quiet one, for which operand it comes
// from is the compiler's choice. Included by sources that are compiled with wider instruction sets,
// so no C++ library header may come in here: inline functions of those would be shared with files
// that run on every processor. Immutable tables.
#pragma once

#include <stddef.h>

namespace shardwright::internal {

// target[i] = round((first[i] + rest[0][i] + rest[1][i] + ...) * scale). Nothing needs alignment.
struct SumArguments {
  const unsigned char* first;
  const unsigned char* rest;  // rest_count runs of `count` elements, back to back
  size_t rest_count;
  size_t count;
  double scale;           // 1 leaves the multiplication out
  unsigned char* target;  // overlaps no other than `first`, and that wholly
};
using SumFunction = void (*)(const SumArguments& arguments);

// Converts count elements; nothing needs alignment, the two do not overlap.
using CastFunction = void (*)(const unsigned char* source, size_t count, unsigned char* target);

struct NumberKernel {
  const char* name;
  // Floats of 16 bits add in float32 and round once. Integers wrap and take no scale.
  SumFunction sum_float16;
  SumFunction sum_bfloat16;
  SumFunction sum_float32;
  SumFunction sum_float64;
  SumFunction sum_integer8;
  SumFunction sum_integer16;
  SumFunction sum_integer32;
  SumFunction sum_integer64;
  // As core/tensor/cast.h says; NaN keeps its sign.
  CastFunction float32_to_bfloat16;
  CastFunction bfloat16_to_float32;
  CastFunction float32_to_float16;
  CastFunction float16_to_float32;
};

extern const NumberKernel kNumberBaseline;
#if defined(SHW_NUMBERS_WIDE)
extern const NumberKernel kNumberAvx2;
#endif

// The widest kernel that this processor runs.
const NumberKernel& best_number_kernel();

}  // namespace shardwright::internal
