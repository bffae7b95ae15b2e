// SPDX-License-Identifier: Apache-2.0
//
// LocalGradient: the gradient of one whole parameter on this rank, before it is reduced. The first
// one that the host hands over for good is kept where it lies; whatever comes on top is summed in
// the accumulation dtype, in the order in which it comes. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/device/memory_work.h"
#include "core/hsdp/schedule.h"
#include "core/hsdp/unit_memory.h"
#include "core/tensor/dtype.h"

namespace shardwright::hsdp::internal {

// Elements of a whole gradient, contiguous.
struct GradientBytes {
  DType dtype = DType::kInvalid;
  std::span<const std::byte> bytes;
};

class LocalGradient {
 public:
  bool is_empty() const { return bytes_.dtype == DType::kInvalid; }
  const GradientBytes& bytes() const { return bytes_; }
  // Kept without a copy until clear; owner, which may be null, lives as long.
  void take(const GradientBytes& gradient, std::shared_ptr<const void> owner);
  // Adds a copy, in the accumulation dtype.
  Status add(UnitMemory& memory, device::MemoryWork& work, UnitId unit, DType accumulation,
             const GradientBytes& gradient);
  void clear();

 private:
  GradientBytes bytes_;
  std::shared_ptr<const void> owner_;  // co-owned with the host
  Buffer sum_;                         // where bytes_ lie when is_sum_
  bool is_sum_ = false;                // in our own memory, in the accumulation dtype
};

}  // namespace shardwright::hsdp::internal
