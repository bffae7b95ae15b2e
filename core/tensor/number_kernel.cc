// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/number_kernel_internal.h"

namespace shardwright::internal {

const NumberKernel& best_number_kernel() {
#if defined(SHW_NUMBERS_WIDE)
  static const NumberKernel* const kBest =
      __builtin_cpu_supports("avx2") ? &kNumberAvx2 : &kNumberBaseline;
  return *kBest;
#else
  return kNumberBaseline;
#endif
}

}  // namespace shardwright::internal
