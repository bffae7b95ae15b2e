// SPDX-License-Identifier: Apache-2.0
//
// EntryReader: the entries of flat arrays one after the other, every number checked. Views the
// arrays. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/plan/entry_arrays.h"
#include "core/state/tensor_entry.h"

namespace shardwright::plan::internal {

struct ReadEntry {
  std::string_view name;
  std::string_view path;
  EntryKind kind = EntryKind::kAuto;
  Digest128 digest{};
  std::string_view attribute;
  uint64_t first_box = 0;  // its number among all; an object is one box
  // Of a tensor.
  DType dtype = DType::kInvalid;
  std::span<const int64_t> shape;
  std::span<const Box> boxes;  // until the next entry; they need not lie inside the shape
  // Of an object, which has no dtype.
  uint64_t object_bytes = 0;
  bool is_object() const { return dtype == DType::kInvalid; }
};

class EntryReader {
 public:
  explicit EntryReader(const EntryArrays& entries) : in_(entries) {}

  // Calls visit(entry) for each. What it refuses, and INVALID_ARGUMENT, OUT_OF_RANGE and
  // UNIMPLEMENTED of a dtype without a name, name the entry; RESOURCE_EXHAUSTED for too many.
  template <typename Visit>
  Status for_each(const Visit& visit) {
    SHW_RETURN_IF_ERROR(check_counts());
    for (size_t i = 0; i < in_.count; ++i) {
      Result<ReadEntry> entry = read(i);
      Status status = entry.ok() ? visit(*entry) : entry.status();
      if (!status.ok()) return naming(std::move(status), i);
    }
    return {};
  }

 private:
  Status check_counts() const;
  Status naming(Status status, size_t i) const;
  Result<ReadEntry> read(size_t i);
  Status read_tensor(size_t i, ReadEntry* entry);
  Status read_object(size_t i, ReadEntry* entry);

  const EntryArrays& in_;
  uint64_t box_ = 0;        // of the next entry
  uint64_t value_ = 0;      // where its first box begins in box_offsets and box_sizes
  std::vector<Box> boxes_;  // of the entry at hand
};

}  // namespace shardwright::plan::internal
