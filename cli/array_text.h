// SPDX-License-Identifier: Apache-2.0
//
// Nested brackets around words, laid out as numpy.array2string (numpy 2.x) does for print: 75
// columns, one space between words, "..." where items were left out. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardwright::cli {

inline constexpr int64_t kEdgeItems = 3;            // items kept at each end of a long dimension
inline constexpr int64_t kSummaryThreshold = 1000;  // more elements than this are summarised

// shape: of the words that are there, row-major. cut[d]: items were left out behind the first
// kEdgeItems of dimension d.
std::string array_text(const std::vector<int64_t>& shape, const std::vector<bool>& cut,
                       const std::vector<std::string>& words);

// Nested JSON arrays of the same values.
std::string array_json(const std::vector<int64_t>& shape, const std::vector<std::string>& values);

}  // namespace shardwright::cli
