// SPDX-License-Identifier: Apache-2.0
//
// Slices typed by a user. Input: one byte for the number of dimensions, eight bytes per extent,
// then the text. What is accepted must lie inside the shape and read back equal from its canonical
// text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/slice_parser.h"

namespace {

using shardwright::cli::DimensionSlice;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_inside(const std::vector<DimensionSlice>& slices, const std::vector<int64_t>& shape) {
  check(slices.size() == shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const DimensionSlice& slice = slices[d];
    check(slice.start >= 0 && slice.start <= shape[d] && slice.step > 0 && slice.count >= 0);
    if (slice.count > 0) check((slice.count - 1) <= (shape[d] - 1 - slice.start) / slice.step);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t dims = data[0] % 9;
  if (size < 1 + dims * 8) return 0;
  std::vector<int64_t> shape(dims);
  for (size_t d = 0; d < dims; ++d) {
    std::memcpy(&shape[d], data + 1 + d * 8, 8);
    shape[d] &= INT64_MAX;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1 + dims * 8,
                              size - 1 - dims * 8);
  std::vector<DimensionSlice> slices;
  std::string problem;
  if (!shardwright::cli::parse_slice(text, shape, &slices, &problem)) {
    check(!problem.empty());
    return 0;
  }
  check_inside(slices, shape);
  std::vector<DimensionSlice> again;
  const std::string canonical = shardwright::cli::slice_text(slices);
  check(shardwright::cli::parse_slice(canonical, shape, &again, &problem));
  check(shardwright::cli::slice_text(again) == canonical);
  return 0;
}
