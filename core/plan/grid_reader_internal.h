// SPDX-License-Identifier: Apache-2.0
//
// Recognises chunks that are a grid in row-major order. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {

class GridReader {
 public:
  // The catalog must outlive it.
  explicit GridReader(const Catalog& catalog) : catalog_(catalog) {}

  // False when the chunks of the tensor are no grid in their order. Linear.
  bool read(size_t tensor);
  uint32_t count() const { return split_.count; }
  uint8_t dim(uint32_t k) const { return split_.dims[k]; }
  // Of the parts of split dimension k, after read().
  std::span<const int64_t> sizes(uint32_t k) const { return sizes_[k]; }

 private:
  ExtentPair pair(uint64_t chunk, uint32_t k) const {
    return chunk_pair(catalog_, *tensor_, tensor_->chunk_begin + chunk, k);
  }
  bool read_parts(uint32_t k, uint64_t stride);
  bool every_chunk_fits() const;

  const Catalog& catalog_;
  const TensorRecord* tensor_ = nullptr;
  SplitDims split_;
  std::vector<std::vector<int64_t>> sizes_;  // per split dimension
};

}  // namespace shardwright::plan::internal
