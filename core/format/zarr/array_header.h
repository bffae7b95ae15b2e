// SPDX-License-Identifier: Apache-2.0
//
// .zarray, which says what an array of zarr version 2 is: a folder of chunks that are all equally
// large, each in a file of its own, those at the edge with padding.
//
//   {"zarr_format": 2, "shape": [9, 8], "chunks": [4, 8], "dtype": "<f4", "order": "C",
//    "compressor": null, "filters": null, "fill_value": null, "dimension_separator": "."}
//
// dtype is bfloat16 where tensorstore has written it; the separator is "." when it is not said.
// Follows the specification of zarr version 2. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::zarr {

inline constexpr std::string_view kHeaderName = ".zarray";
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 10;

struct ArrayHeader {
  DType dtype = DType::kInvalid;
  Dims shape;   // its elements can be counted
  Dims chunks;  // as many as shape; none is 0 but in an array without elements
  char separator = '.';
  // The element that chunks without a file have everywhere; empty = no such chunk is allowed.
  std::vector<std::byte> fill;
};

// array: its name, for messages. DATA_LOSS for what is no such text; UNIMPLEMENTED for what is
// sound and not read: another version, compressed or filtered chunks, columns first, other dtypes.
Result<ArrayHeader> decode_header(std::span<const std::byte> bytes, std::string_view array);

}  // namespace shardwright::format::zarr
