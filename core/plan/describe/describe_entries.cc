// SPDX-License-Identifier: Apache-2.0
//
// One pass over the entries.
#include "core/plan/describe/describe_entries.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/entry_arrays.h"

namespace shardwright::plan {
namespace {

constexpr std::string_view kContentType = "application/octet-stream";

class EntryDescriber {
 public:
  EntryDescriber(const EntryArrays& entries, std::span<const Layout* const> layouts,
                 SymbolicBuilder* builder)
      : in_(entries), layouts_(layouts), builder_(*builder) {}

  Status run() {
    for (size_t i = 0; i < in_.count; ++i) {
      Status status = in_.dtypes[i] == 0 ? add_object(i) : add_tensor(i);
      if (status.ok()) continue;
      return std::move(status)
          .with_detail("tensor", in_.names.at(i))
          .annotated(fmt::format("entries[{}] '{}'", i, escape_text(in_.names.at(i))));
    }
    return {};
  }

 private:
  Result<EntryKind> kind_of(size_t i) const {
    if (in_.kinds.empty()) return EntryKind::kAuto;
    const int32_t kind = in_.kinds[i];
    if (kind < 0 || kind > static_cast<int32_t>(EntryKind::kRankLocal))
      return invalid_argument(fmt::format("there is no kind {}", kind));
    return static_cast<EntryKind>(kind);
  }

  Digest128 digest_of(size_t i) const { return in_.digests.empty() ? Digest128{} : in_.digests[i]; }
  const Layout* layout_of(size_t i) const { return layouts_.empty() ? nullptr : layouts_[i]; }

  Status add_object(size_t i) {
    if (layout_of(i) != nullptr) return invalid_argument("a byte object has no layout");
    if (!in_.box_ranges.empty()) box_ = in_.box_ranges[i + 1];
    SHW_ASSIGN_OR_RETURN(const EntryKind kind, kind_of(i));
    const uint64_t bytes = in_.object_sizes.empty() ? 0 : in_.object_sizes[i];
    return builder_.add_object(
        {in_.names.at(i), in_.paths.at(i), kContentType, kind, bytes, digest_of(i)});
  }

  Status add_tensor(size_t i) {
    const int32_t number = in_.dtypes[i];
    if (number < 0 || number > 0xFFFF)
      return invalid_argument(fmt::format("dtype {} is no code + 256 x bits", number));
    SymbolicBuilder::Tensor tensor{
        in_.names.at(i), in_.paths.at(i), DType::kInvalid, EntryKind::kAuto, {}, digest_of(i)};
    SHW_ASSIGN_OR_RETURN(tensor.dtype, dtype_from_dlpack(static_cast<uint8_t>(number & 0xFF),
                                                         static_cast<uint8_t>(number >> 8), 1));
    SHW_ASSIGN_OR_RETURN(tensor.kind, kind_of(i));
    const uint64_t begin = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i];
    const uint64_t end = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i + 1];
    if (end - begin > static_cast<uint64_t>(kMaxTensorRank)) {
      return invalid_argument(
          fmt::format("{} dimensions are more than {}", end - begin, kMaxTensorRank));
    }
    if (end != begin) tensor.shape = {in_.shapes + begin, end - begin};
    const std::vector<Box> boxes = take_boxes(i, tensor.shape.size());
    const Layout* layout = layout_of(i);
    if (layout == nullptr)
      return in_.box_ranges.empty() ? builder_.add_whole(tensor)
                                    : builder_.add_boxes(tensor, boxes);
    if (!boxes.empty()) return invalid_argument("an entry has a layout and boxes");
    return builder_.add_sharded(tensor, *layout);
  }

  // The boxes of the entry, as they stand.
  std::vector<Box> take_boxes(size_t i, size_t dimension_count) {
    std::vector<Box> boxes;
    if (in_.box_ranges.empty()) return boxes;
    for (; box_ < in_.box_ranges[i + 1]; ++box_, value_ += dimension_count) {
      if (dimension_count == 0) {
        boxes.emplace_back();
        continue;
      }
      boxes.push_back({Dims(std::span(in_.box_offsets + value_, dimension_count)),
                       Dims(std::span(in_.box_sizes + value_, dimension_count))});
    }
    return boxes;
  }

  const EntryArrays& in_;
  std::span<const Layout* const> layouts_;
  SymbolicBuilder& builder_;
  uint64_t box_ = 0;
  uint64_t value_ = 0;  // of the next box in box_offsets and box_sizes
};

}  // namespace

Result<LocalSymbolicPlan> describe_symbolic(const EntryArrays& entries,
                                            std::span<const Layout* const> layouts,
                                            const DescribeRules& rules) {
  if (entries.numbers != nullptr || entries.order != nullptr || entries.secondary != nullptr ||
      !entries.attributes.offsets.empty()) {
    return invalid_argument(
        "a symbolic description has no numbers, no order, nothing secondary and no attributes");
  }
  SHW_ASSIGN_OR_RETURN(SymbolicBuilder builder,
                       SymbolicBuilder::create(rules.kinds, std::string(rules.agreement),
                                               {rules.rank, rules.world_size}));
  SHW_RETURN_IF_ERROR(EntryDescriber(entries, layouts, &builder).run());
  return builder.finish();
}

}  // namespace shardwright::plan
