// SPDX-License-Identifier: Apache-2.0
//
// Hosts that own the memory of whole parameters: by a table of functions, or by addresses that they
// give before each use. Thread-compatible; called by the thread that calls the unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/parameter_allocator.h"
#include "shardwright/hsdp_unit.h"

namespace shardwright::capi {

// The table is copied; its release runs when what is returned goes. INVALID_ARGUMENT naming a
// missing function.
Result<std::shared_ptr<hsdp::ParameterAllocator>> make_host_allocator(
    const shw_hsdp_allocator& table, std::string unit);

// Addresses that the host gave.
class GivenMemory : public hsdp::ParameterAllocator {
 public:
  explicit GivenMemory(std::string unit) : unit_(std::move(unit)) {}

  // Of the parameters from first on.
  void give(size_t first, std::span<const std::span<std::byte>> memory);
  // FAILED_PRECONDITION naming a parameter whose memory was not given, or has another size.
  Result<std::span<std::byte>> allocate(size_t parameter, uint64_t bytes) override;
  void release(size_t parameter, std::span<std::byte> memory) noexcept override;

 private:
  const std::string unit_;
  std::vector<std::span<std::byte>> memory_;  // of the host, by parameter
};

}  // namespace shardwright::capi
