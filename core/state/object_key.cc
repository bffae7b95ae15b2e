// SPDX-License-Identifier: Apache-2.0
#include "core/state/object_key.h"

#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright {
namespace {

constexpr std::string_view kMark = "/shard_";

Status wrong_name(std::string_view name, std::string_view what) {
  return invalid_argument(
      fmt::format("'{}' {}; such names end in \"/shard_0.3_1.8\"", escape_text(name, 200), what));
}

// Numbers without signs and leading zeros, joined by ".".
std::optional<Dims> numbers_of(std::string_view text) {
  Dims numbers;
  while (true) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || number < 0 || text[0] == '-' || (digits > 1 && text[0] == '0'))
      return std::nullopt;
    Dims longer(numbers.size() + 1, number);
    std::copy(numbers.begin(), numbers.end(), longer.begin());
    numbers = std::move(longer);
    if (numbers.size() > static_cast<size_t>(kMaxTensorRank)) return std::nullopt;
    text.remove_prefix(digits);
    if (text.empty()) return numbers;
    if (text[0] != '.') return std::nullopt;
    text.remove_prefix(1);
  }
}

Status check_cell(std::span<const int64_t> offsets, std::span<const int64_t> shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (offsets[d] >= 0 && offsets[d] < shape[d]) continue;
    return invalid_argument(fmt::format("the cell [{}] lies outside the grid [{}]",
                                        fmt::join(offsets, ", "), fmt::join(shape, ", ")));
  }
  return {};
}

}  // namespace

Result<std::string> format_object_key(std::string_view key, std::span<const int64_t> offsets,
                                      std::span<const int64_t> shape) {
  if (offsets.size() != shape.size() || shape.empty() ||
      shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return invalid_argument(fmt::format("{} offsets in a grid of {} axes; it has 1 to {}",
                                        offsets.size(), shape.size(), kMaxTensorRank));
  }
  SHW_RETURN_IF_ERROR(check_cell(offsets, shape));
  return fmt::format("{}{}{}_{}", key, kMark, fmt::join(offsets, "."), fmt::join(shape, "."));
}

Result<ObjectKey> split_object_key(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos) return wrong_name(name, "is no cell of a grid");
  const std::string_view cell = name.substr(mark + kMark.size());
  const size_t bar = cell.find('_');
  std::optional<Dims> offsets = numbers_of(cell.substr(0, bar));
  std::optional<Dims> shape;
  if (bar != std::string_view::npos) shape = numbers_of(cell.substr(bar + 1));
  if (!offsets.has_value() || !shape.has_value())
    return wrong_name(name, "does not say offsets and shape");
  const bool legacy = shape->size() + 1 == offsets->size();
  if (!legacy && shape->size() != offsets->size())
    return wrong_name(name, "has another number of offsets than of extents");
  ObjectKey found{std::string(name.substr(0, mark)), *std::move(offsets), Dims()};
  found.shape = Dims(found.offsets.size(), -1);
  std::copy(shape->begin(), shape->end(), found.shape.begin());
  return found;
}

Status check_object_cell(const ObjectKey& name) {
  // The extent that older names leave out is whatever holds their cells.
  Dims shape = name.shape;
  if (!shape.empty() && shape[shape.size() - 1] == -1)
    shape[shape.size() - 1] = std::numeric_limits<int64_t>::max();
  return check_cell(name.offsets, shape);
}

Result<ObjectKey> parse_object_key(std::string_view name) {
  SHW_ASSIGN_OR_RETURN(ObjectKey found, split_object_key(name));
  const Status inside = check_object_cell(found);
  if (!inside.ok()) return wrong_name(name, inside.message());
  return found;
}

}  // namespace shardwright
