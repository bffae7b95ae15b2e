// SPDX-License-Identifier: Apache-2.0
#include "core/layout/box_bytes.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright {

Status check_whole_bytes(std::string_view name, DType dtype, std::span<const int64_t> shape,
                         const Box& box) {
  if (!dtype_is_subbyte(dtype) || box_is_empty(box) || std::ranges::equal(box.sizes, shape))
    return {};
  const size_t last = shape.size() - 1;
  if (dtype_fills_bytes(dtype, shape[last]) && dtype_fills_bytes(dtype, box.offsets[last]) &&
      dtype_fills_bytes(dtype, box.sizes[last]))
    return {};
  const std::string text = box_text(box);
  return unimplemented(fmt::format("tensor '{}': box {} of dtype {} does not begin and end on "
                                   "whole bytes in the last dimension",
                                   escape_text(name), text, dtype_name(dtype)))
      .with_detail("tensor", name)
      .with_detail("box", text);
}

}  // namespace shardwright
