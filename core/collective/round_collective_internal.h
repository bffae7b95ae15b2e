// SPDX-License-Identifier: Apache-2.0
//
// RoundCollective: a collective in which every operation is one round that all ranks take part in.
// Used as the interface says.
#pragma once

#include <span>

#include "core/collective/collective.h"
#include "core/collective/operation_internal.h"

namespace shardwright::collective::internal {

// What one rank lays down for a round; the memory is its caller's and stays until it leaves.
struct Slot {
  Operation operation;
  std::span<const std::byte> in;
  std::span<std::byte> out;
  std::span<int64_t> values;
};

class RoundCollective : public Collective {
 public:
  Status barrier(const Call& call) final;
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) final;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) final;
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) final;
  bool has_gather_v() const final { return true; }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) final;
  bool has_scatter_v() const final { return true; }
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) final;
  bool has_all_to_all_v() const final { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) final;
  Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                        ReduceOperation operation) final;

 private:
  virtual Status take_part(const Slot& slot) = 0;
};

}  // namespace shardwright::collective::internal
