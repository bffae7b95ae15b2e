// SPDX-License-Identifier: Apache-2.0
//
// One pass over the list per part of the file.
#include "core/format/native/file_layout.h"

#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native {
namespace {

constexpr uint64_t kMaxDataBytes = std::numeric_limits<int64_t>::max() / 2;

class Placement {
 public:
  explicit Placement(std::span<const plan::WriteItem> items) : items_(items) {
    layout_.items.reserve(items.size());
  }

  Result<FileLayout> run() {
    for (const Part part : {Part::kLarge, Part::kSmallChunks, Part::kSmallObjects}) {
      for (uint32_t i = 0; i < items_.size(); ++i) {
        if (part_of(items_[i]) == part) SHW_RETURN_IF_ERROR(place(i));
      }
    }
    if (!items_.empty()) layout_.data_bytes = end_;
    return std::move(layout_);
  }

 private:
  enum class Part { kLarge, kSmallChunks, kSmallObjects };

  static Part part_of(const plan::WriteItem& item) {
    if (item.size_bytes >= kSlabChunkLimitBytes) return Part::kLarge;
    return item.piece == plan::kObjectPiece ? Part::kSmallObjects : Part::kSmallChunks;
  }

  Status place(uint32_t number) {
    const uint64_t bytes = items_[number].size_bytes;
    const uint64_t alignment =
        bytes >= kSlabChunkLimitBytes ? kExtentAlignmentBytes : kSlabAlignmentBytes;
    uint64_t begin = end_;
    uint64_t end = 0;
    if ((bytes != 0 && !checked_round_up(end_, alignment, &begin)) ||
        !checked_add(begin, bytes, &end) || end > kMaxDataBytes) {
      return resource_exhausted("file_size", "a rank would write a file of more than 2^62 bytes");
    }
    layout_.items.push_back({.item = number, .position = begin, .size_bytes = bytes});
    end_ = end;
    return {};
  }

  std::span<const plan::WriteItem> items_;
  uint64_t end_ = kFileHeaderBytes;
  FileLayout layout_;
};

}  // namespace

Result<FileLayout> lay_out(std::span<const plan::WriteItem> items) {
  return Placement(items).run();
}

}  // namespace shardwright::format::native
