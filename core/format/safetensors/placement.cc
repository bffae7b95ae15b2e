// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/format/safetensors/placement_internal.h"

namespace shardwright::format::safetensors::internal {

BoxPlace place_box(const Box& box, std::span<const int64_t> shape, DType dtype) {
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  const auto bytes = [bits](int64_t elements) {
    return static_cast<uint64_t>(elements) * bits / 8;
  };
  BoxPlace place;
  int64_t stride = 1;       // elements between neighbours of dimension d
  int64_t run = 1;          // elements that lie together
  bool is_together = true;  // the dimensions behind d are covered whole
  int64_t offset = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    offset += box.offsets[d] * stride;
    if (is_together) {
      run *= box.sizes[d];
      is_together = box.sizes[d] == shape[d];
    } else if (box.sizes[d] > 1) {
      place.scatter.loops.push_back({static_cast<uint64_t>(box.sizes[d]), bytes(stride)});
    }
    stride *= shape[d];
  }
  std::ranges::reverse(place.scatter.loops);
  place.scatter.run_bytes = bytes(run);
  place.offset = bytes(offset);
  return place;
}

}  // namespace shardwright::format::safetensors::internal
