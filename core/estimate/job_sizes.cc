// SPDX-License-Identifier: Apache-2.0
//
// Tensors of one layout and shape are counted together, so that the cost is O(ranks) per kind of
// tensor and not per tensor.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

struct TensorCount {
  const JobTensor* first = nullptr;
  uint64_t count = 0;
};

// Tensors of one layout and shape.
struct Kind {
  const JobTensor* first = nullptr;
  uint64_t count = 0;
  std::map<DType, TensorCount> dtypes;
};

class SizeCounter {
 public:
  explicit SizeCounter(const JobDescription& job) : job_(job), cells_(job) {
    held_bytes_.assign(static_cast<size_t>(job.rank_count), 0);
  }

  Result<RankColumn> run() && {
    std::map<std::pair<uint32_t, Dims>, Kind> kinds;
    for (const JobTensor& tensor : job_.tensors) {
      if (tensor.layout == kHeldByBoxes) {
        SHW_RETURN_IF_ERROR(add_kind({&tensor, 1, {{tensor.dtype, {&tensor, 1}}}}));
        continue;
      }
      Kind& kind = kinds[{tensor.layout, tensor.shape}];
      if (kind.count++ == 0) kind.first = &tensor;
      TensorCount& alike = kind.dtypes[tensor.dtype];
      if (alike.count++ == 0) alike.first = &tensor;
    }
    for (const auto& [key, kind] : kinds) SHW_RETURN_IF_ERROR(add_kind(kind));
    for (const JobObject& object : job_.objects) {
      for (const int32_t rank : layout_ranks(*job_.layouts[object.layout].layout))
        held_bytes_[static_cast<size_t>(rank)] += object.size_bytes;
    }
    return std::move(held_bytes_);
  }

 private:
  Status add_kind(const Kind& kind) {
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_.of(*kind.first));
    for (const auto& [dtype, alike] : kind.dtypes)
      SHW_RETURN_IF_ERROR(check_held_bytes(*alike.first, *cells));
    pieces_ += std::max(cells->ranks.size(), cells->cells.size()) * kind.count;
    if (pieces_ > kMaxSimulatedPieces) return too_many_pieces();
    for (size_t i = 0; i < cells->ranks.size(); ++i) {
      uint64_t& bytes = held_bytes_[static_cast<size_t>(cells->ranks[i])];
      for (const uint32_t cell : cells->of(i)) {
        for (const auto& [dtype, alike] : kind.dtypes)
          bytes += alike.count * box_bytes(dtype, cells->boxes[cell]);
      }
    }
    return {};
  }

  const JobDescription& job_;
  HeldCellsCache cells_;
  RankColumn held_bytes_;
  uint64_t pieces_ = 0;
};

}  // namespace

Status too_many_pieces() {
  return resource_exhausted(
      "simulated_pieces",
      fmt::format("the ranks hold more than {} boxes; simulate a smaller job or fewer tensors",
                  kMaxSimulatedPieces));
}

Result<RankColumn> held_bytes_of(const JobDescription& job) {
  return SizeCounter(job).run();
}

}  // namespace shardwright::estimate::internal
