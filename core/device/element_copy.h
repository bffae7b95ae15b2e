// SPDX-License-Identifier: Apache-2.0
//
// ElementCopy: runs of elements that are copied inside the memory of one device, and what becomes
// of them on the way: another dtype, a factor, a sum with what is there. What packs parameters and
// gradients, casts them and adds them up is one of these. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace shardwright::device {

// `rows` runs of `columns` elements; pitches are elements from one run to the next. Each element is
// multiplied by scale (1 = not), added to that of target where adds is set, and rounded once to
// target's dtype; products and sums are in float64 where one of the dtypes is, else in float32.
// source may be target where dtypes and pitches are equal; else they do not overlap. Both are
// aligned to their elements.
struct ElementCopy {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  uint64_t rows = 1;
  uint64_t columns = 0;
  uint64_t source_pitch = 0;
  uint64_t target_pitch = 0;
  DType source_dtype = DType::kFloat32;
  DType target_dtype = DType::kFloat32;
  double scale = 1.0;
  bool adds = false;
};

// True for one that only moves bytes.
bool copies_bytes(const ElementCopy& copy);
// UNIMPLEMENTED naming the dtypes that are not converted, added or multiplied; INVALID_ARGUMENT for
// runs that overlap in the target, and sizes that no memory has.
Status check_element_copy(const ElementCopy& copy);
// The copy, in memory of the host; failures are those of the check.
Status copy_elements_on_host(const ElementCopy& copy);

}  // namespace shardwright::device
