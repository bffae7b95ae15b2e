// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/flat_boxes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/checked.h"

namespace shardwright::format::megatron {
namespace {

Status no_such_entry(std::span<const int64_t> shape, std::span<const int64_t> entry) {
  return invalid_argument(
      fmt::format("sizes [{}] are not those of a flattened tensor of shape [{}]",
                  fmt::join(entry, ", "), fmt::join(shape, ", ")));
}

}  // namespace

Result<Dims> flattened_box_sizes(std::span<const int64_t> shape, std::span<const int64_t> entry) {
  if (entry.size() != shape.size() + 1) return no_such_entry(shape, entry);
  Dims sizes(shape);
  uint64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || entry[d] <= 0 || shape[d] % entry[d] != 0)
      return no_such_entry(shape, entry);
    sizes[d] = shape[d] / entry[d];
    if (!checked_multiply(elements, static_cast<uint64_t>(sizes[d]), &elements))
      return no_such_entry(shape, entry);
  }
  if (entry.back() < 0 || elements != static_cast<uint64_t>(entry.back()))
    return no_such_entry(shape, entry);
  return sizes;
}

}  // namespace shardwright::format::megatron
