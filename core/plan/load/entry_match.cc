// SPDX-License-Identifier: Apache-2.0
//
// Names first, then boxes.
#include "core/plan/load/entry_match.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/describe/describe_entries.h"
#include "core/plan/describe/entry_reader_internal.h"
#include "core/plan/load/match_internal.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan {
namespace {

using internal::EntryReader;
using internal::ReadEntry;

class EntryMatching {
 public:
  EntryMatching(const Catalog& stored, const EntryArrays& wanted, const EntryMatchRules& rules)
      : stored_(stored), index_(stored), wanted_(wanted), rules_(rules) {}

  Result<EntryMatches> run() {
    // The wants are checked as a description is.
    SHW_RETURN_IF_ERROR(describe_local(wanted_, {}).status());
    out_.entry_begins.push_back(0);
    EntryReader reader(wanted_);
    SHW_RETURN_IF_ERROR(reader.for_each([this](const ReadEntry& wanted) {
      Status status = wanted.is_object() ? match_object(wanted) : match_tensor(wanted);
      out_.entry_begins.push_back(out_.wanted.size());
      return status;
    }));
    return std::move(out_);
  }

 private:
  Status not_stored(const ReadEntry& wanted) const {
    const std::string_view name = wanted.name;
    const bool tensor = !wanted.is_object();
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
    return internal::not_stored(index_, tensor ? "tensor" : "object", name, rules_.rank);
  }

  Status match_object(const ReadEntry& wanted) {
    if (index_.find_object(wanted.name, rules_.rank) < 0) return not_stored(wanted);
    out_.wanted.push_back(wanted.first_box);
    out_.chunks.push_back(0);
    return {};
  }

  Status match_tensor(const ReadEntry& wanted) {
    const int64_t found = index_.find_tensor(wanted.name, rules_.rank);
    if (found < 0) return not_stored(wanted);
    const auto tensor = static_cast<size_t>(found);
    if (!std::ranges::equal(wanted.shape, stored_.shape(tensor))) {
      const std::string expected = fmt::format("[{}]", fmt::join(wanted.shape, ", "));
      const std::string shape = fmt::format("[{}]", fmt::join(stored_.shape(tensor), ", "));
      return invalid_argument(fmt::format("'{}' is wanted with shape {} and stored with {}",
                                          escape_text(wanted.name), expected, shape))
          .with_detail("expected", expected)
          .with_detail("found", shape);
    }
    first_row_ = out_.wanted.size();
    first_value_ = out_.lengths.size();
    match_boxes(index_, tensor, wanted.boxes, rules_.boxes, &out_, wanted.first_box);
    if (rules_.cover != CoverRule::kOff) {
      for (size_t b = 0; b < wanted.boxes.size(); ++b) SHW_RETURN_IF_ERROR(prove_filled(wanted, b));
    }
    return {};
  }

  // The common parts are the chunks of a tensor that is the wanted box.
  Status prove_filled(const ReadEntry& wanted, size_t b) const {
    const size_t rank = wanted.shape.size();
    const Box& box = wanted.boxes[b];
    const auto parts = [&](const std::vector<int64_t>& column, uint64_t row) {
      return std::span(column).subspan(first_value_ + (row - first_row_) * rank, rank);
    };
    const uint64_t begin = out_.begins[b];
    const uint64_t end = out_.ends[b];
    if (end - begin == 1 && std::ranges::equal(parts(out_.lengths, begin), box.sizes)) return {};
    Catalog filled;
    std::vector<CatalogBuilder::Chunk> chunks;
    for (uint64_t row = begin; row < end; ++row) {
      const auto offsets = parts(out_.wanted_offsets, row);
      const auto lengths = parts(out_.lengths, row);
      chunks.push_back(
          {Box{Dims(offsets), Dims(lengths)}, static_cast<uint32_t>(out_.chunks[row])});
    }
    CatalogBuilder::Tensor tensor;
    tensor.name = wanted.name;
    tensor.dtype = DType::kUint8;
    tensor.kind = EntryKind::kSharded;
    tensor.shape = box.sizes;
    SHW_RETURN_IF_ERROR(CatalogBuilder(&filled).add_tensor(tensor, chunks));
    Status status = rules_.cover == CoverRule::kFull
                        ? prove_cover(filled, 0, Copies::kRefused, "chunk")
                        : internal::prove_disjoint(filled, 0, "chunk");
    if (status.ok()) return status;
    return std::move(status)
        .with_detail("cover", rules_.cover == CoverRule::kFull ? "full" : "disjoint")
        .annotated(fmt::format("fill box {} of '{}' (boxes above count from its begin)",
                               box_text(box), escape_text(wanted.name)));
  }

  const Catalog& stored_;
  const CatalogIndex index_;
  const EntryArrays& wanted_;
  const EntryMatchRules& rules_;
  EntryMatches out_;
  size_t first_row_ = 0;    // of the tensor at hand
  size_t first_value_ = 0;  // of its rows
};

}  // namespace

Result<EntryMatches> match_entries(const Catalog& stored, const EntryArrays& wanted,
                                   const EntryMatchRules& rules) {
  return EntryMatching(stored, wanted, rules).run();
}

}  // namespace shardwright::plan
