// SPDX-License-Identifier: Apache-2.0
//
// GridTables: numbers of splits and rank maps in a catalog, equal ones once. One thread; the
// catalog must outlive it and holds none of them when it is made.
#pragma once

#include <cstdint>

#include "core/base/hash_index.h"
#include "core/plan/catalog.h"

namespace shardwright::plan::internal {

class GridTables {
 public:
  explicit GridTables(Catalog* catalog) : catalog_(catalog) {}
  uint32_t split_of(DimSplit split);
  uint32_t rank_map_of(RankMap map);

 private:
  Catalog* catalog_;
  HashIndex splits_;
  HashIndex rank_maps_;
};

}  // namespace shardwright::plan::internal
