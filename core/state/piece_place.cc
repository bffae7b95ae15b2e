// SPDX-License-Identifier: Apache-2.0
#include "core/state/piece_place.h"

#include <algorithm>

namespace shardwright {
namespace {

bool is_whole_local(const TensorRef& tensor) {
  if (tensor.pieces.size() != 1 || tensor.pieces.local_offset(0) != 0) return false;
  const std::span<const int64_t> sizes = tensor.pieces.sizes(0);
  if (sizes.size() < tensor.local.shape.size()) return false;
  const size_t missing = sizes.size() - tensor.local.shape.size();
  return std::ranges::equal(sizes.subspan(missing), tensor.local.shape) &&
         std::ranges::all_of(sizes.first(missing), [](int64_t extent) { return extent == 1; });
}

}  // namespace

PiecePlace place_of_pieces(const TensorRef& tensor) {
  if (is_whole_local(tensor)) return PiecePlace::kWhole;
  return tensor.local.shape.size() == tensor.global_shape.size() ? PiecePlace::kWindow
                                                                 : PiecePlace::kRun;
}

Box local_window(const TensorRef& tensor, size_t piece) {
  Box window{Dims(tensor.local.shape.size(), 0), Dims(tensor.pieces.sizes(piece))};
  int64_t rest = tensor.pieces.local_offset(piece);
  for (size_t d = window.offsets.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(tensor.local.shape[d], 1);
    window.offsets[d] = rest % extent;
    rest /= extent;
  }
  return window;
}

}  // namespace shardwright
