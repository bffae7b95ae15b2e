// SPDX-License-Identifier: Apache-2.0
//
// Where buckets are cut into chunks and which files get them: at the ends of parameters and of what
// data-parallel ranks hold, in the file of the group; all else as a grid has it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/reshard/buckets.h"
#include "core/reshard/target_grid.h"

namespace shardwright::reshard {

class BucketPlacement final : public exec::FilePlacement {
 public:
  // The grid outlives it.
  explicit BucketPlacement(const TargetGrid& grid) : grid_(grid) {}

  // bounds: ascending, from 0 to the bucket's end. data_parallel: ranks that share the bucket with
  // its pad.
  void add(const Bucket& bucket, std::vector<int64_t> bounds, int64_t data_parallel);
  std::vector<Part> parts(const plan::Catalog& view, size_t tensor) const override;

 private:
  struct Chunks {
    std::vector<int64_t> bounds;
    uint32_t file = 0;
  };
  const TargetGrid& grid_;
  std::map<std::string, Chunks, std::less<>> chunks_;  // by the names of buckets
};

}  // namespace shardwright::reshard
