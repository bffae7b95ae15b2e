// SPDX-License-Identifier: Apache-2.0
#include "core/plan/box_bytes.h"

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {

uint64_t box_bytes(DType dtype, const Box& box) {
  return internal::packed_bytes(static_cast<uint64_t>(dtype_bits(dtype)), box_element_count(box));
}

}  // namespace shardwright::plan
