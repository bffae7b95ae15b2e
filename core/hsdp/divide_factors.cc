// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/divide_factors.h"

#include <cmath>

namespace shardwright::hsdp {
namespace {

bool has_wide_range(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBfloat16;
}

}  // namespace

DivideFactors divide_factors(double factor, DType reduce_dtype) {
  if (has_wide_range(reduce_dtype)) return {1.0, factor};
  double pre = 1.0;
  while (std::fmod(factor, pre) == 0 && factor / pre > pre) pre *= 2;
  return {pre, factor / pre};
}

}  // namespace shardwright::hsdp
