// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/describe/entry_reader_internal.h"
#include "core/tensor/dtype_numbers.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kMaxBoxes = std::numeric_limits<uint32_t>::max() - 1;

}  // namespace

Status EntryReader::check_counts() const {
  const uint64_t boxes = in_.box_ranges.empty() ? in_.count : in_.box_ranges[in_.count];
  if (in_.count <= kMaxBoxes / 4 && boxes <= kMaxBoxes) return {};
  return resource_exhausted("entries",
                            fmt::format("{} entries with {} boxes are too many", in_.count, boxes));
}

Status EntryReader::naming(Status status, size_t i) const {
  return std::move(status)
      .with_detail("tensor", in_.names.at(i))
      .annotated(fmt::format("entries[{}] '{}'", i, escape_text(in_.names.at(i))));
}

Result<ReadEntry> EntryReader::read(size_t i) {
  ReadEntry entry;
  entry.name = in_.names.at(i);
  entry.path = in_.paths.at(i);
  entry.attribute = in_.attributes.at(i);
  entry.first_box = box_;
  if (!in_.digests.empty()) entry.digest = in_.digests[i];
  if (!in_.kinds.empty()) {
    const int32_t kind = in_.kinds[i];
    if (kind < 0 || kind > static_cast<int32_t>(EntryKind::kRankLocal))
      return invalid_argument(fmt::format("there is no kind {}", kind));
    entry.kind = static_cast<EntryKind>(kind);
  }
  SHW_RETURN_IF_ERROR(in_.dtypes[i] == 0 ? read_object(i, &entry) : read_tensor(i, &entry));
  return entry;
}

Status EntryReader::read_object(size_t i, ReadEntry* entry) {
  if (!in_.box_ranges.empty() && in_.box_ranges[i + 1] - in_.box_ranges[i] != 1)
    return invalid_argument("an object has one box of no dimensions");
  if (!in_.shape_offsets.empty() && in_.shape_offsets[i + 1] != in_.shape_offsets[i])
    return invalid_argument("an object has no extents");
  if (!in_.object_sizes.empty()) entry->object_bytes = in_.object_sizes[i];
  ++box_;
  return {};
}

Status EntryReader::read_tensor(size_t i, ReadEntry* entry) {
  SHW_ASSIGN_OR_RETURN(entry->dtype, dtype_from_number(in_.dtypes[i]));
  const uint64_t begin = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i];
  const uint64_t end = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i + 1];
  const size_t rank = end - begin;
  if (rank > static_cast<size_t>(kMaxTensorRank))
    return invalid_argument(fmt::format("{} dimensions are more than {}", rank, kMaxTensorRank));
  if (rank != 0) entry->shape = {in_.shapes + begin, rank};
  boxes_.clear();
  if (in_.box_ranges.empty()) {
    boxes_.push_back(whole_box(entry->shape));
  } else {
    for (uint64_t b = in_.box_ranges[i]; b < in_.box_ranges[i + 1]; ++b, value_ += rank) {
      if (rank == 0) {
        boxes_.emplace_back();
      } else {
        boxes_.push_back({Dims(std::span(in_.box_offsets + value_, rank)),
                          Dims(std::span(in_.box_sizes + value_, rank))});
      }
    }
  }
  entry->boxes = boxes_;
  box_ += boxes_.size();
  return {};
}

}  // namespace shardwright::plan::internal
