// SPDX-License-Identifier: Apache-2.0
//
// match_boxes: hits of each wanted box by the chunk search (or by looking at all chunks for a few
// wanted boxes), filtered and ordered as the rules say.
#include "core/plan/load/box_match.h"

#include <algorithm>
#include <numeric>

#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan {
namespace {

using internal::ChunkSearch;
using internal::common_of;
using internal::Interval;
using internal::SplitDims;

constexpr size_t kFewWanted = 4;  // cheaper to look at all chunks for each than to index them

class BoxMatching {
 public:
  BoxMatching(const CatalogIndex& stored, size_t tensor, std::span<const Box> wanted,
              const BoxMatchRules& rules, BoxMatches* out, uint64_t first_number)
      : stored_(stored.catalog()),
        tensor_(tensor),
        record_(stored_.tensors[tensor]),
        shape_(stored_.shape(tensor)),
        split_(internal::split_dims(stored_, tensor)),
        wanted_(wanted),
        rules_(rules),
        out_(out),
        first_number_(first_number) {
    if (wanted.size() > kFewWanted || record_.is_grid()) search_ = &stored.search(tensor);
  }

  void run() {
    out_->begins.assign(wanted_.size(), 0);
    out_->ends.assign(wanted_.size(), 0);
    std::vector<uint64_t> order(wanted_.size());
    std::iota(order.begin(), order.end(), uint64_t{0});
    if (rules_.order == MatchOrder::kSweep && !shape_.empty()) {
      sweep_ = sweep_dimension();
      std::ranges::stable_sort(order, [this](uint64_t a, uint64_t b) {
        return wanted_interval(a, sweep_).begin < wanted_interval(b, sweep_).begin;
      });
    }
    for (const uint64_t box : order) {
      out_->begins[box] = out_->chunks.size();
      add_matches(box);
      out_->ends[box] = out_->chunks.size();
    }
  }

 private:
  Interval wanted_interval(uint64_t box, size_t dimension) const {
    const Box& own = wanted_[box];
    return {own.offsets[dimension], own.offsets[dimension] + own.sizes[dimension]};
  }

  Interval chunk_interval(uint64_t chunk, uint32_t k) const {
    return internal::chunk_interval(stored_, record_, chunk, k);
  }

  // The dimension with the largest end over all boxes, the first of equals.
  size_t sweep_dimension() const {
    std::vector<int64_t> ends(shape_.size(), 0);
    for (uint64_t box = 0; box < wanted_.size(); ++box) {
      for (size_t d = 0; d < ends.size(); ++d)
        ends[d] = std::max(ends[d], wanted_interval(box, d).end);
    }
    for (size_t d = 0; d < ends.size() && record_.chunk_count > 0; ++d) {
      if ((record_.split_mask >> d & 1) == 0 || record_.is_grid())
        ends[d] = std::max(ends[d], shape_[d]);
    }
    for (uint64_t c = 0; c < record_.chunk_count && !record_.is_grid(); ++c) {
      for (uint32_t k = 0; k < split_.count; ++k) {
        int64_t& end = ends[split_.dims[k]];
        end = std::max(end, chunk_interval(record_.chunk_begin + c, k).end);
      }
    }
    return static_cast<size_t>(std::ranges::max_element(ends) - ends.begin());
  }

  void add_matches(uint64_t box) {
    if (!meets_in_whole_dimensions(box)) return;
    region_ = internal::region_of(split_, wanted_[box]);
    find_hits();
    if (rules_.order == MatchOrder::kSweep) sort_by_end();
    for (const uint64_t chunk : hits_) {
      if (has_match(chunk)) add_row(box, chunk);
    }
  }

  // Whether the box meets chunks in the dimensions that all of them cover.
  bool meets_in_whole_dimensions(uint64_t box) const {
    for (size_t d = 0; d < shape_.size(); ++d) {
      if ((record_.split_mask >> d & 1) != 0) continue;
      const Interval wanted = wanted_interval(box, d);
      if (!internal::intervals_meet(wanted, {0, shape_[d]})) return false;
      if (rules_.empty == EmptyMatch::kNone && wanted.begin == wanted.end) return false;
    }
    return true;
  }

  void find_hits() {
    if (search_ != nullptr) {
      search_->meeting(region_.data(), &hits_);
    } else {
      hits_.clear();
      for (uint64_t c = record_.chunk_begin; c < record_.chunk_begin + record_.chunk_count; ++c) {
        if (internal::chunk_meets(stored_, record_, c, region_.data())) hits_.push_back(c);
      }
    }
    // Copies of a chunk meet the same boxes.
    if (rules_.copies == CopyMatch::kFirst && !record_.is_grid() && hits_.size() > 1)
      hits_ = internal::distinct_chunks(stored_, tensor_, hits_);
  }

  void sort_by_end() {
    for (uint32_t k = 0; k < split_.count; ++k) {
      if (split_.dims[k] != sweep_) continue;
      std::ranges::stable_sort(hits_, [this, k](uint64_t a, uint64_t b) {
        return chunk_interval(a, k).end < chunk_interval(b, k).end;
      });
    }
  }

  // A hit has a common part, which may be empty.
  bool has_match(uint64_t chunk) const {
    if (rules_.empty == EmptyMatch::kStrictlyInside) return true;
    for (uint32_t k = 0; k < split_.count; ++k) {
      const Interval common = common_of(chunk_interval(chunk, k), region_[k]);
      if (common.begin == common.end) return false;
    }
    return true;
  }

  void add_row(uint64_t box, uint64_t chunk) {
    out_->wanted.push_back(first_number_ + box);
    out_->chunks.push_back(chunk - record_.chunk_begin);
    const size_t row = out_->lengths.size();
    const size_t dimensions = shape_.size();
    out_->wanted_offsets.resize(row + dimensions);
    out_->stored_offsets.resize(row + dimensions);
    out_->lengths.resize(row + dimensions);
    uint32_t k = 0;
    for (size_t d = 0; d < dimensions; ++d) {
      const Interval wanted = wanted_interval(box, d);
      const bool is_split = k < split_.count && split_.dims[k] == d;
      const Interval own = is_split ? chunk_interval(chunk, k++) : Interval{0, shape_[d]};
      const Interval common = common_of(own, wanted);
      out_->wanted_offsets[row + d] = common.begin - wanted.begin;
      out_->stored_offsets[row + d] = common.begin - own.begin;
      out_->lengths[row + d] = common.end - common.begin;
    }
  }

  const Catalog& stored_;
  const size_t tensor_;
  const TensorRecord& record_;
  const std::span<const int64_t> shape_;
  const SplitDims split_;
  const std::span<const Box> wanted_;
  const BoxMatchRules& rules_;
  BoxMatches* const out_;
  const uint64_t first_number_;
  const ChunkSearch* search_ = nullptr;
  size_t sweep_ = 0;
  internal::Region region_;  // of a wanted box
  std::vector<uint64_t> hits_;
};

}  // namespace

void match_boxes(const CatalogIndex& stored, size_t tensor, std::span<const Box> wanted,
                 const BoxMatchRules& rules, BoxMatches* out, uint64_t first_number) {
  BoxMatching(stored, tensor, wanted, rules, out, first_number).run();
}

}  // namespace shardwright::plan
