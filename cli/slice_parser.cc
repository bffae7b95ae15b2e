// SPDX-License-Identifier: Apache-2.0
//
// Grammar: "[" [part {"," part} [","]] "]"; part = "..." | integer | [integer] ":" [integer] [":"
// [integer]].
#include "cli/slice_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace shardwright::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool parse_integer(std::string_view text, int64_t* value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; (at = text.find(separator)) != std::string_view::npos;) {
    parts.push_back(trimmed(text.substr(0, at)));
    text.remove_prefix(at + 1);
  }
  parts.push_back(trimmed(text));
  return parts;
}

// A bound of a range: negative values count from the end, the result is cut to [0, extent].
int64_t bound(int64_t value, int64_t extent) {
  if (value < 0) value = value < -extent ? 0 : value + extent;
  return std::min(value, extent);
}

bool parse_range(const std::vector<std::string_view>& fields, int64_t extent, DimensionSlice* slice,
                 std::string* problem) {
  int64_t values[3] = {0, extent, 1};
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty()) continue;
    if (!parse_integer(fields[i], &values[i])) {
      *problem = fmt::format("'{}' is no integer of 64 bits", fields[i]);
      return false;
    }
    if (i < 2) values[i] = bound(values[i], extent);
  }
  if (values[2] <= 0) {
    *problem = fmt::format("the step {} is not positive", values[2]);
    return false;
  }
  slice->start = values[0];
  slice->step = values[2];
  // Rounded up without adding to the distance, which may be near the limit of the type.
  const int64_t distance = std::max<int64_t>(0, values[1] - values[0]);
  slice->count = distance / slice->step + (distance % slice->step != 0 ? 1 : 0);
  return true;
}

bool parse_index(std::string_view text, int64_t extent, DimensionSlice* slice,
                 std::string* problem) {
  int64_t value = 0;
  if (!parse_integer(text, &value)) {
    *problem = fmt::format("'{}' is neither an index nor a range", text);
    return false;
  }
  if (value < -extent || value >= extent) {
    *problem = fmt::format("index {} is outside a dimension of {}", value, extent);
    return false;
  }
  *slice = {value < 0 ? value + extent : value, 1, 1, true};
  return true;
}

// Parts of the text between the brackets; nothing for an empty slice.
std::optional<std::vector<std::string_view>> parts_of(std::string_view text, std::string* problem) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    *problem = "a slice stands between [ and ]";
    return std::nullopt;
  }
  text = trimmed(text.substr(1, text.size() - 2));
  if (text.empty()) return std::vector<std::string_view>();
  std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > 1 && parts.back().empty()) parts.pop_back();
  return parts;
}

}  // namespace

std::vector<DimensionSlice> whole_slice(const std::vector<int64_t>& shape) {
  std::vector<DimensionSlice> slices;
  for (const int64_t extent : shape) slices.push_back({0, 1, extent, false});
  return slices;
}

bool parse_slice(std::string_view text, const std::vector<int64_t>& shape,
                 std::vector<DimensionSlice>* slices, std::string* problem) {
  const auto parts = parts_of(text, problem);
  if (!parts.has_value()) return false;
  const auto ellipses = static_cast<size_t>(std::count(parts->begin(), parts->end(), "..."));
  const size_t given = parts->size() - ellipses;
  if (ellipses > 1) {
    *problem = "a slice has at most one ...";
    return false;
  }
  if (given > shape.size()) {
    *problem = fmt::format("the slice has {} parts, the tensor {} dimensions", given, shape.size());
    return false;
  }
  std::vector<DimensionSlice> result = whole_slice(shape);
  size_t dimension = 0;
  for (const std::string_view part : *parts) {
    if (part == "...") {
      dimension += shape.size() - given;
      continue;
    }
    const std::vector<std::string_view> fields = split(part, ':');
    if (fields.size() > 3) {
      *problem = fmt::format("'{}' has more than two colons", part);
      return false;
    }
    const bool good = fields.size() == 1
                          ? parse_index(part, shape[dimension], &result[dimension], problem)
                          : parse_range(fields, shape[dimension], &result[dimension], problem);
    if (!good) return false;
    ++dimension;
  }
  *slices = std::move(result);
  return true;
}

std::string slice_text(const std::vector<DimensionSlice>& slices) {
  std::vector<std::string> parts;
  for (const DimensionSlice& slice : slices) {
    if (slice.dropped) {
      parts.push_back(fmt::to_string(slice.start));
      continue;
    }
    const int64_t end =
        slice.count == 0 ? slice.start : slice.start + (slice.count - 1) * slice.step + 1;
    parts.push_back(slice.step == 1 ? fmt::format("{}:{}", slice.start, end)
                                    : fmt::format("{}:{}:{}", slice.start, end, slice.step));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace shardwright::cli
