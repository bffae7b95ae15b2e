// SPDX-License-Identifier: Apache-2.0
//
// Names first, then boxes.
#include "core/plan/load/entry_match.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/describe/describe_entries.h"
#include "core/plan/search/prove_disjoint_internal.h"

namespace shardwright::plan {
namespace {

class EntryMatching {
 public:
  EntryMatching(const Catalog& stored, const EntryArrays& wanted, const EntryMatchRules& rules)
      : stored_(stored), index_(stored), wanted_(wanted), rules_(rules) {}

  Result<EntryMatches> run() {
    // The wants are checked as a description is.
    SHW_RETURN_IF_ERROR(describe_local(wanted_, {}).status());
    out_.entry_begins.push_back(0);
    for (size_t i = 0; i < wanted_.count; ++i) {
      Status status = wanted_.dtypes[i] == 0 ? match_object(i) : match_tensor(i);
      if (!status.ok()) return std::move(status).with_detail("tensor", wanted_.names.at(i));
      out_.entry_begins.push_back(out_.wanted.size());
    }
    return std::move(out_);
  }

 private:
  Status not_stored(size_t i) const {
    const std::string_view name = wanted_.names.at(i);
    const bool tensor = wanted_.dtypes[i] != 0;
    const int64_t other =
        tensor ? index_.find_object(name, rules_.rank) : index_.find_tensor(name, rules_.rank);
    if (other >= 0) {
      return invalid_argument(fmt::format("'{}' is wanted as {} and stored as {}",
                                          escape_text(name), tensor ? "tensor" : "object",
                                          tensor ? "object" : "tensor"));
    }
    // Found by the name alone.
    const bool of_single_ranks =
        index_.find_tensor_of_any(name) >= 0 || index_.find_object_of_any(name) >= 0;
    if (rules_.rank < 0 && of_single_ranks) {
      return invalid_argument(fmt::format(
          "'{}' is stored by single ranks, each its own; say which rank wants it (rank)",
          escape_text(name)));
    }
    if (rules_.missing == MissingRule::kReport) return {};
    std::vector<std::string_view> names;
    names.reserve(stored_.tensors.size() + stored_.objects.size());
    for (size_t t = 0; t < stored_.tensors.size(); ++t) names.push_back(stored_.tensor_name(t));
    for (size_t k = 0; k < stored_.objects.size(); ++k) names.push_back(stored_.object_name(k));
    const std::string nearest =
        escape_text(fmt::format("{}", fmt::join(nearest_names(name, names, kNearestNames), ", ")));
    return not_found(
               fmt::format("'{}' is not stored; nearest names: {}", escape_text(name), nearest))
        .with_detail("hint", nearest);
  }

  Status match_object(size_t i) {
    const uint64_t box = box_++;
    if (index_.find_object(wanted_.names.at(i), rules_.rank) < 0) return not_stored(i);
    out_.wanted.push_back(box);
    out_.chunks.push_back(0);
    return {};
  }

  Status match_tensor(size_t i) {
    const std::span<const int64_t> shape = shape_of(i);
    WantedBoxes boxes = boxes_of(i, shape);
    const uint64_t first_box = box_;
    box_ += boxes.count;
    const int64_t found = index_.find_tensor(wanted_.names.at(i), rules_.rank);
    if (found < 0) return not_stored(i);
    const auto tensor = static_cast<size_t>(found);
    if (!std::ranges::equal(shape, stored_.shape(tensor))) {
      return invalid_argument(fmt::format("'{}' is wanted with shape [{}] and stored with [{}]",
                                          escape_text(wanted_.names.at(i)), fmt::join(shape, ", "),
                                          fmt::join(stored_.shape(tensor), ", ")))
          .with_detail("expected", fmt::format("[{}]", fmt::join(shape, ", ")))
          .with_detail("found", fmt::format("[{}]", fmt::join(stored_.shape(tensor), ", ")));
    }
    match_boxes(index_, tensor, boxes, rules_.boxes, &matches_);
    if (rules_.cover != CoverRule::kOff) {
      for (size_t b = 0; b < boxes.count; ++b) SHW_RETURN_IF_ERROR(prove_filled(i, boxes, b));
    }
    for (const uint64_t box : matches_.wanted) out_.wanted.push_back(first_box + box);
    append(matches_.chunks, &out_.chunks);
    append(matches_.wanted_offsets, &out_.wanted_offsets);
    append(matches_.stored_offsets, &out_.stored_offsets);
    append(matches_.lengths, &out_.lengths);
    return {};
  }

  template <typename T>
  static void append(const std::vector<T>& from, std::vector<T>* to) {
    to->insert(to->end(), from.begin(), from.end());
  }

  std::span<const int64_t> shape_of(size_t i) const {
    if (wanted_.shape_offsets.empty()) return {};
    const uint64_t begin = wanted_.shape_offsets[i];
    return {wanted_.shapes + begin, wanted_.shape_offsets[i + 1] - begin};
  }

  WantedBoxes boxes_of(size_t i, std::span<const int64_t> shape) {
    WantedBoxes boxes;
    boxes.dimension_count = shape.size();
    if (wanted_.box_ranges.empty()) {
      zeros_.assign(shape.size(), 0);
      boxes.count = 1;
      boxes.offsets = zeros_;
      boxes.sizes = shape;
      return boxes;
    }
    boxes.count = wanted_.box_ranges[i + 1] - wanted_.box_ranges[i];
    const size_t values = boxes.count * shape.size();
    boxes.offsets = {wanted_.box_offsets + value_, values};
    boxes.sizes = {wanted_.box_sizes + value_, values};
    value_ += values;
    return boxes;
  }

  // The common parts are the chunks of a tensor that is the wanted box.
  Status prove_filled(size_t i, const WantedBoxes& boxes, size_t b) const {
    const size_t rank = boxes.dimension_count;
    const auto sizes = boxes.sizes.subspan(b * rank, rank);
    const auto parts = [rank](const std::vector<int64_t>& column, uint64_t row) {
      return std::span<const int64_t>(column).subspan(row * rank, rank);
    };
    const uint64_t begin = matches_.begins[b];
    const uint64_t end = matches_.ends[b];
    if (end - begin == 1 && std::ranges::equal(parts(matches_.lengths, begin), sizes)) return {};
    Catalog filled;
    std::vector<CatalogBuilder::Chunk> chunks;
    for (uint64_t row = begin; row < end; ++row) {
      const auto offsets = parts(matches_.wanted_offsets, row);
      const auto lengths = parts(matches_.lengths, row);
      chunks.push_back(
          {Box{Dims(offsets), Dims(lengths)}, static_cast<uint32_t>(matches_.chunks[row]), 0});
    }
    CatalogBuilder::Tensor tensor;
    tensor.name = wanted_.names.at(i);
    tensor.dtype = DType::kUint8;
    tensor.kind = EntryKind::kSharded;
    tensor.shape = sizes;
    SHW_RETURN_IF_ERROR(CatalogBuilder(&filled).add_tensor(tensor, chunks));
    Status status = rules_.cover == CoverRule::kFull
                        ? internal::prove_cover_naming(filled, 0, "chunk")
                        : internal::prove_disjoint(filled, 0, "chunk");
    if (status.ok()) return status;
    const auto offsets = boxes.offsets.subspan(b * rank, rank);
    return std::move(status)
        .with_detail("cover", rules_.cover == CoverRule::kFull ? "full" : "disjoint")
        .annotated(fmt::format("fill box {} of '{}' (boxes above count from its begin)",
                               box_text(Box{Dims(offsets), Dims(sizes)}),
                               escape_text(wanted_.names.at(i))));
  }

  const Catalog& stored_;
  const CatalogIndex index_;
  const EntryArrays& wanted_;
  const EntryMatchRules& rules_;
  EntryMatches out_;
  BoxMatches matches_;
  uint64_t box_ = 0;    // of the next entry
  uint64_t value_ = 0;  // where its first box begins in box_offsets and box_sizes
  std::vector<int64_t> zeros_;
};

}  // namespace

Result<EntryMatches> match_entries(const Catalog& stored, const EntryArrays& wanted,
                                   const EntryMatchRules& rules) {
  return EntryMatching(stored, wanted, rules).run();
}

}  // namespace shardwright::plan
