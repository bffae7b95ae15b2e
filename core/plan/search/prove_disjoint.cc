// SPDX-License-Identifier: Apache-2.0
//
// Chunks that tile the tensor are disjoint, which is linear to show; else a sweep along the first
// split dimension keeps the chunks that it is inside of, ordered by the second: with one or two
// split dimensions they are then intervals that may not touch, so neighbours are all that must be
// compared, O(n log n). With more, chunks that meet in the first two dimensions are compared one by
// one.
#include "core/plan/search/prove_disjoint_internal.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/search/chunk_search_internal.h"

namespace shardwright::plan::internal {
namespace {

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

class OverlapSweep {
 public:
  OverlapSweep(const Catalog& catalog, size_t tensor, const SplitDims& split)
      : catalog_(catalog), index_(tensor), tensor_(catalog.tensors[tensor]), split_(split) {}

  std::optional<Pair> run() {
    collect();
    if (chunks_.size() < 2) return std::nullopt;
    if (split_.count == 0) return Pair{chunks_[0], chunks_[1]};
    std::ranges::sort(chunks_, [this](uint64_t a, uint64_t b) {
      return std::pair(begin_of(a, 0), a) < std::pair(begin_of(b, 0), b);
    });
    if (split_.count == 1) return neighbours();
    return split_.count == 2 ? sweep() : search();
  }

 private:
  ExtentPair pair_of(uint64_t chunk, uint32_t k) const {
    return chunk_pair(catalog_, tensor_, chunk, k);
  }
  int64_t begin_of(uint64_t chunk, uint32_t k) const { return pair_of(chunk, k).offset; }
  int64_t end_of(uint64_t chunk, uint32_t k) const {
    return pair_of(chunk, k).offset + pair_of(chunk, k).size;
  }

  // Chunks that hold an element.
  void collect() {
    for (uint64_t c = tensor_.chunk_begin; c < tensor_.chunk_begin + tensor_.chunk_count; ++c) {
      if (chunk_elements(catalog_, tensor_, split_, c) != 0) chunks_.push_back(c);
    }
  }

  std::optional<Pair> neighbours() const {
    for (size_t i = 1; i < chunks_.size(); ++i) {
      if (begin_of(chunks_[i], 0) < end_of(chunks_[i - 1], 0))
        return Pair{chunks_[i - 1], chunks_[i]};
    }
    return std::nullopt;
  }

  std::optional<Pair> sweep() const {
    std::map<int64_t, uint64_t> active;    // by begin in the second dimension
    std::multimap<int64_t, int64_t> ends;  // end in the first -> key in active
    for (const uint64_t chunk : chunks_) {
      while (!ends.empty() && ends.begin()->first <= begin_of(chunk, 0)) {
        active.erase(ends.begin()->second);
        ends.erase(ends.begin());
      }
      const auto after = active.lower_bound(begin_of(chunk, 1));
      if (after != active.end() && after->first < end_of(chunk, 1))
        return Pair{after->second, chunk};
      if (after != active.begin()) {
        const uint64_t before = std::prev(after)->second;
        if (end_of(before, 1) > begin_of(chunk, 1)) return Pair{before, chunk};
      }
      active.emplace(begin_of(chunk, 1), chunk);
      ends.emplace(end_of(chunk, 0), begin_of(chunk, 1));
    }
    return std::nullopt;
  }

  std::optional<Pair> search() const {
    const ChunkTree tree(catalog_, index_);
    std::array<Interval, kMaxTensorRank> region;
    std::vector<uint64_t> met;
    for (const uint64_t chunk : chunks_) {
      for (uint32_t k = 0; k < split_.count; ++k)
        region[k] = {begin_of(chunk, k), end_of(chunk, k)};
      met.clear();
      tree.meeting(region.data(), &met);
      const auto other = std::ranges::find_if(met, [&](uint64_t c) {
        return c != chunk && chunk_elements(catalog_, tensor_, split_, c) != 0;
      });
      if (other != met.end()) return Pair{std::min(chunk, *other), std::max(chunk, *other)};
    }
    return std::nullopt;
  }

  const Catalog& catalog_;
  const size_t index_;
  const TensorRecord& tensor_;
  const SplitDims& split_;
  std::vector<uint64_t> chunks_;
};

}  // namespace

Status prove_disjoint(const Catalog& catalog, size_t tensor, std::string_view place_noun) {
  const SplitDims split = split_dims(catalog, tensor);
  if (catalog.tensors[tensor].chunk_count < 2 || chunks_tile(catalog, tensor, split)) return {};
  const std::optional<Pair> pair = OverlapSweep(catalog, tensor, split).run();
  if (!pair.has_value()) return {};
  const std::string first = box_text(catalog.chunk_box(pair->first));
  const std::string second = box_text(catalog.chunk_box(pair->second));
  const uint32_t first_place = catalog.place_of(pair->first);
  const uint32_t second_place = catalog.place_of(pair->second);
  return invalid_argument(fmt::format("tensor '{}': box {} of {} {} overlaps box {} of {} {}",
                                      escape_text(catalog.tensor_name(tensor)), first, place_noun,
                                      first_place, second, place_noun, second_place))
      .with_detail("tensor", catalog.tensor_name(tensor))
      .with_detail("box", first)
      .with_detail(place_noun, std::to_string(first_place))
      .with_detail("box", second)
      .with_detail(place_noun, std::to_string(second_place));
}

}  // namespace shardwright::plan::internal
