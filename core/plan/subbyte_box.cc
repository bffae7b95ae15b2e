// SPDX-License-Identifier: Apache-2.0
//
// Where boxes of sub-byte dtypes may be cut.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/subbyte_box_internal.h"

namespace shardwright::plan::internal {

bool box_is_whole_bytes(DType dtype, std::span<const int64_t> shape, const Box& box) {
  if (!dtype_is_subbyte(dtype) || box_is_empty(box)) return true;
  if (std::ranges::equal(box.sizes, shape)) return true;
  const int64_t unit =
      dtype_bits(dtype) == 6 ? 4 : 8 / dtype_bits(dtype);  // elements that fill whole bytes
  const size_t last = shape.size() - 1;
  return shape[last] % unit == 0 && box.offsets[last] % unit == 0 && box.sizes[last] % unit == 0;
}

Status check_whole_bytes(std::string_view name, DType dtype, std::span<const int64_t> shape,
                         const Box& box) {
  if (box_is_whole_bytes(dtype, shape, box)) return {};
  const std::string text = box_text(box);
  return unimplemented(fmt::format("tensor '{}': box {} of dtype {} does not begin and end on "
                                   "whole bytes in the last "
                                   "dimension",
                                   escape_text(name), text, dtype_name(dtype)))
      .with_detail("tensor", name)
      .with_detail("box", text);
}

}  // namespace shardwright::plan::internal
