// SPDX-License-Identifier: Apache-2.0
#include "core/plan/save/shard_grid_internal.h"

#include <algorithm>

#include "core/layout/index_range.h"

namespace shardwright::plan::internal {

ShardGrid::ShardGrid(std::span<const int64_t> shape, std::span<const GridAxis> axes) {
  struct Cut {
    GridAxis axis;
    uint32_t stride = 0;  // columns between its parts
  };
  std::vector<Cut> nested;
  uint32_t columns = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    nested.push_back({axes[i], columns});
    columns *= static_cast<uint32_t>(axes[i].extent);
  }
  std::ranges::sort(nested, {}, [](const Cut& cut) { return cut.axis.level; });
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<Part> parts;
    if (shape[d] > 0) parts.push_back({shape[d], 0});
    for (const auto& [axis, stride] : nested) {
      if (static_cast<size_t>(axis.dim) != d) continue;
      std::vector<Part> finer;
      for (const Part& part : parts) {
        const ChunkParts sizes = chunk_parts(part.size, axis.extent);
        for (uint32_t i = 0; sizes.size_of(i) > 0; ++i)
          finer.push_back({sizes.size_of(i), part.column + i * stride});
      }
      parts = std::move(finer);
    }
    chunk_count_ *= parts.size();
    if (parts.size() > 1) split_mask_ |= uint64_t{1} << d;
    parts_.push_back(std::move(parts));
  }
  if (chunk_count_ == 0) split_mask_ = 0;
  find_runs(columns);
}

std::vector<ShardGrid::Part> ShardGrid::chunks() const {
  std::vector<Part> chunks;
  if (chunk_count_ == 0) return chunks;
  chunks.push_back({1, 0});
  // The last dimension changes fastest.
  for (const std::vector<Part>& parts : parts_) {
    std::vector<Part> finer;
    finer.reserve(chunks.size() * parts.size());
    for (const Part& chunk : chunks) {
      for (const Part& part : parts)
        finer.push_back({chunk.size * part.size, chunk.column + part.column});
    }
    chunks = std::move(finer);
  }
  return chunks;
}

void ShardGrid::find_runs(uint32_t column_count) {
  std::vector<int64_t> elements(column_count, 0);
  for (const Part& chunk : chunks()) elements[chunk.column] = chunk.size;
  bool joins = false;
  for (uint32_t column = 0; column < column_count; ++column) {
    joins = joins && elements[column] == runs_.back().elements;
    if (joins) {
      ++runs_.back().count;
    } else if (elements[column] != 0) {
      runs_.push_back({column, 1, elements[column]});
      joins = true;
    }
  }
}

std::vector<uint32_t> ShardGrid::chunk_columns() const {
  std::vector<uint32_t> columns;
  columns.reserve(chunk_count_);
  for (const Part& chunk : chunks()) columns.push_back(chunk.column);
  return columns;
}

std::vector<std::vector<int64_t>> ShardGrid::split_sizes() const {
  std::vector<std::vector<int64_t>> splits;
  for (const std::vector<Part>& parts : parts_) {
    if (chunk_count_ == 0 || parts.size() < 2) continue;
    std::vector<int64_t>& sizes = splits.emplace_back();
    for (const Part& part : parts) sizes.push_back(part.size);
  }
  return splits;
}

}  // namespace shardwright::plan::internal
