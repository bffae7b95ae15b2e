// SPDX-License-Identifier: Apache-2.0
//
// Encodes many plans into one reused memory, and PlanParts: plans one behind the other as they
// leave the library. Thread-compatible.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "core/plan/wire/wire.h"

namespace shardwright::plan {

// Upper bounds of the bytes of a description, a part and a merged plan.
uint64_t description_wire_bytes(const Description& description);
uint64_t part_wire_bytes(const PartView& part);
uint64_t merged_save_wire_bytes(const GlobalSavePlan& plan);

class PlanEncoder {
 public:
  PlanEncoder();
  ~PlanEncoder();
  PlanEncoder(const PlanEncoder&) = delete;
  PlanEncoder& operator=(const PlanEncoder&) = delete;

  // A plan of kind kLocalSave or kKeptSave whose description is a plan buffer already. The bytes
  // are valid until the next call.
  Result<std::span<const std::byte>> encode(std::span<const std::byte> description,
                                            const LocalPart& part, PlanKind kind);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// Bytes of plans one behind the other, the first aligned to 64, in memory of a fixed capacity that
// is used as it fills.
class PlanParts {
 public:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }
  };
  using Memory = std::unique_ptr<std::byte[], Free>;

  explicit PlanParts(size_t capacity);
  // INTERNAL when the part does not fit into what is left.
  Status append(std::span<const std::byte> part);
  // The first part, encoded where it will lie: a large one is not copied to memory that nobody has
  // touched yet. INTERNAL as above, and when it is not the first.
  Status append_first(const GlobalSavePlan& plan);
  std::span<const uint64_t> offsets() const { return offsets_; }  // one more than parts
  std::span<const std::byte> part(size_t index) const {
    return {memory_.get() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }
  size_t size() const { return offsets_.size() - 1; }
  // The memory, of capacity + 1 bytes with a zero behind the last part; the parts are gone then.
  Memory take_memory() { return std::move(memory_); }
  std::vector<uint64_t> take_offsets() { return std::move(offsets_); }

 private:
  size_t capacity_;
  Memory memory_;
  std::vector<uint64_t> offsets_ = {0};
};

}  // namespace shardwright::plan
