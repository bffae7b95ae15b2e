// SPDX-License-Identifier: Apache-2.0
//
// Slices as NumPy writes them: "[2:5, :, -1, ::2]", "[...]", "[..., 0]". Steps must be positive.
// Pure, any thread; any bytes are safe input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

// What one dimension gives: indices start, start + step, ... (count of them). An index drops the
// dimension.
struct DimensionSlice {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
  bool dropped = false;
};

// One slice per dimension of the shape. False with a sentence in *problem when the text is no
// slice, has too many parts or an index leaves its dimension; ranges are cut to the dimension, as
// NumPy does.
bool parse_slice(std::string_view text, const std::vector<int64_t>& shape,
                 std::vector<DimensionSlice>* slices, std::string* problem);

// The slice of everything.
std::vector<DimensionSlice> whole_slice(const std::vector<int64_t>& shape);

// "[2:5, 0:8:1, 3]": canonical text of slices.
std::string slice_text(const std::vector<DimensionSlice>& slices);

}  // namespace shardwright::cli
