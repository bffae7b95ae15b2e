// SPDX-License-Identifier: Apache-2.0
//
// PlanParts: what a merge makes, one part behind the other as it leaves the library.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "core/plan/wire/wire.h"

namespace shardwright::plan {

// Upper bound of the bytes of a merged plan.
uint64_t merged_save_wire_bytes(const GlobalSavePlan& plan);

// A merged plan and then columns of numbers, in memory of a fixed capacity that begins at a
// multiple of 64.
class PlanParts {
 public:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;

  // numbers: how many the columns may have in all.
  static Result<PlanParts> create(const GlobalSavePlan& merged, uint64_t numbers);
  // The next part, for the caller to fill. INTERNAL when it does not fit into what is left.
  Result<std::span<uint32_t>> append(size_t count);
  std::span<const uint64_t> offsets() const { return offsets_; }  // one more than parts
  std::span<const std::byte> part(size_t index) const {
    return {memory_.get() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }
  // A part that append made.
  std::span<const uint32_t> numbers(size_t index) const;
  size_t size() const { return offsets_.size() - 1; }
  // The memory, with a zero behind the last part; the parts are gone then.
  Memory take_memory();
  std::vector<uint64_t> take_offsets() { return std::move(offsets_); }

 private:
  explicit PlanParts(size_t capacity);

  size_t capacity_;
  Memory memory_;
  std::vector<uint64_t> offsets_ = {0};
};

}  // namespace shardwright::plan
