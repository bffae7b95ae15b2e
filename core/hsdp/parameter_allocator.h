// SPDX-License-Identifier: Apache-2.0
//
// ParameterAllocator: a host that owns the memory of full parameters (a framework whose tensors
// outlive each use of theirs). Called by the thread that calls the unit, never from lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"

namespace shardwright::hsdp {

class ParameterAllocator {
 public:
  virtual ~ParameterAllocator() = default;
  // Memory of exactly so many bytes for the whole parameter, content undefined.
  virtual Result<std::span<std::byte>> allocate(size_t parameter, uint64_t bytes) = 0;
  // What allocate gave; its content is not needed any more.
  virtual void release(size_t parameter, std::span<std::byte> memory) noexcept = 0;
};

}  // namespace shardwright::hsdp
