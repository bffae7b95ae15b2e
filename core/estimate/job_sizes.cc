// SPDX-License-Identifier: Apache-2.0
//
// Tensors of one layout and shape are counted together, so that the cost is O(ranks) per kind of
// tensor and not per tensor.
#include <algorithm>
#include <bit>
#include <map>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

using plan::ChunkRecord;
using plan::ExtentPair;
using plan::ObjectRecord;
using plan::TensorRecord;

struct TensorCount {
  const JobTensor* first = nullptr;
  uint64_t count = 0;
};

// Tensors of one layout and shape.
struct Kind {
  const JobTensor* first = nullptr;
  uint64_t count = 0;
  uint64_t name_bytes = 0;
  std::map<DType, TensorCount> dtypes;
};

// Dimensions that some of the boxes do not cover whole.
uint64_t split_dimensions(std::span<const uint32_t> cells, const HeldCells& held,
                          std::span<const int64_t> shape) {
  uint64_t mask = 0;
  for (const uint32_t cell : cells) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (held.boxes[cell].sizes[d] != shape[d]) mask |= uint64_t{1} << d;
    }
  }
  return static_cast<uint64_t>(std::popcount(mask));
}

class SizeCounter {
 public:
  explicit SizeCounter(const JobDescription& job) : job_(job), cells_(job) {
    sizes_.held_bytes.assign(static_cast<size_t>(job.rank_count), 0);
    // The empty text of each plan.
    sizes_.local_plan_bytes = sizes_.held_bytes.size() * sizeof(uint64_t);
  }

  Result<JobSizes> run() && {
    std::map<std::pair<uint32_t, Dims>, Kind> kinds;
    for (const JobTensor& tensor : job_.tensors) {
      Kind& kind = kinds[{tensor.layout, tensor.shape}];
      if (kind.count++ == 0) kind.first = &tensor;
      kind.name_bytes += tensor.name.size();
      TensorCount& alike = kind.dtypes[tensor.dtype];
      if (alike.count++ == 0) alike.first = &tensor;
    }
    for (const auto& [key, kind] : kinds) SHW_RETURN_IF_ERROR(add_kind(kind));
    std::vector<bool> has_object(sizes_.held_bytes.size(), false);
    for (const JobObject& object : job_.objects) add_object(object, &has_object);
    return std::move(sizes_);
  }

 private:
  Status add_kind(const Kind& kind) {
    const Dims& shape = kind.first->shape;
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_.of(*kind.first));
    for (const auto& [dtype, alike] : kind.dtypes)
      SHW_RETURN_IF_ERROR(check_held_bytes(*alike.first, *cells));
    pieces_ += std::max(cells->ranks.size(), cells->cells.size()) * kind.count;
    if (pieces_ > kMaxSimulatedPieces) return too_many_pieces();
    const uint64_t per_rank =
        kind.name_bytes +
        kind.count * (sizeof(uint64_t) + sizeof(TensorRecord) + shape.size() * sizeof(int64_t));
    for (size_t i = 0; i < cells->ranks.size(); ++i) {
      const std::span<const uint32_t> held = cells->of(i);
      const uint64_t split = split_dimensions(held, *cells, shape);
      const uint64_t per_chunk =
          sizeof(ChunkRecord) + (split > 2 ? (split - 2) * sizeof(ExtentPair) : 0);
      sizes_.local_plan_bytes += per_rank + kind.count * held.size() * per_chunk;
      uint64_t& bytes = sizes_.held_bytes[static_cast<size_t>(cells->ranks[i])];
      for (const uint32_t cell : held) {
        for (const auto& [dtype, alike] : kind.dtypes)
          bytes += alike.count * box_bytes(dtype, cells->boxes[cell]);
      }
    }
    return {};
  }

  // Objects of one rank share the text of their type.
  void add_object(const JobObject& object, std::vector<bool>* has_object) {
    for (const int32_t rank : layout_ranks(*job_.layouts[object.layout].layout)) {
      const auto r = static_cast<size_t>(rank);
      sizes_.held_bytes[r] += object.size_bytes;
      sizes_.local_plan_bytes += object.name.size() + sizeof(uint64_t) + sizeof(ObjectRecord);
      if (!(*has_object)[r]) sizes_.local_plan_bytes += kJobObjectType.size() + sizeof(uint64_t);
      (*has_object)[r] = true;
    }
  }

  const JobDescription& job_;
  HeldCellsCache cells_;
  JobSizes sizes_;
  uint64_t pieces_ = 0;
};

}  // namespace

Result<JobSizes> sizes_of(const JobDescription& job) {
  return SizeCounter(job).run();
}

}  // namespace shardwright::estimate::internal
