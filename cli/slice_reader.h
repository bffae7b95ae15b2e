// SPDX-License-Identifier: Apache-2.0
//
// Reads the elements of a slice, or only those at its edges when it is large, into one compact
// array. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/entries.h"
#include "cli/slice_parser.h"

namespace shardwright::cli {

struct SliceValues {
  std::vector<int64_t> shape;     // of the slice, dropped dimensions left out
  std::vector<int64_t> stored;    // elements per dimension that were read, in the order of `shape`
  std::vector<bool> cut;          // items left out in the middle of a dimension
  std::vector<Element> elements;  // row-major, `stored` each
  uint64_t count = 0;             // elements of the whole slice
};

// An open checkpoint and its path, for failures. Borrowed.
struct SliceSource {
  const Checkpoint& checkpoint;
  const std::string& path;
};

// edges_only: of dimensions longer than 2 * kEdgeItems only the edges, when the slice has more than
// kSummaryThreshold elements. Throws a Failure; RESOURCE_EXHAUSTED when more than kMaxShownElements
// would be read.
inline constexpr uint64_t kMaxShownElements = 1'000'000;
SliceValues read_slice(const SliceSource& source, const TensorFacts& tensor,
                       const std::vector<DimensionSlice>& slices, bool edges_only);

}  // namespace shardwright::cli
