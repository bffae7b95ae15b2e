// SPDX-License-Identifier: Apache-2.0
//
// By what gradients are divided, and when: as FSDP2 of torch 2.15 has it for sums. It leaves some
// means to the transport; here a mean is a sum in rank order and one multiplication at its end, so
// that every factor works on every transport and a forced sum is nothing else. Pure, any thread.
#pragma once

#include "core/tensor/dtype.h"

namespace shardwright::hsdp {

// Gradients are divided by `pre` before they are summed, the sum by `post`.
struct DivideFactors {
  double pre = 1.0;
  double post = 1.0;
  friend bool operator==(const DivideFactors&, const DivideFactors&) = default;
};

// factor: positive; the ranks that share data unless the user gave another. float32, float64 and
// bfloat16 divide at the end only: their range is wide enough for the sum. Others divide in two
// steps about equally large, the first a power of two, so that neither terms nor sum leave the
// range.
DivideFactors divide_factors(double factor, DType reduce_dtype);

}  // namespace shardwright::hsdp
