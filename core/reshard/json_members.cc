// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/json_members.h"

#include <vector>

#include <fmt/format.h>

namespace shardwright::reshard {

Status want_object(JsonValueView value, std::string_view what) {
  if (value.exists() && value.type() == JsonType::kObject) return {};
  return value.wrong(fmt::format("{} must be an object", what));
}

Status only_members(JsonValueView object, std::span<const std::string_view> known) {
  for (JsonValueView each = object.first(); each.exists(); each = each.next()) {
    bool is_known = false;
    for (const std::string_view key : known) is_known = is_known || each.key() == key;
    if (!is_known)
      return each.wrong_key(
          fmt::format("'{}' is not known here; known: {}", each.key(), fmt::join(known, ", ")));
  }
  return {};
}

Result<std::string> read_text(JsonValueView object, std::string_view key) {
  const JsonValueView text = object.member(key);
  if (!text.exists() || text.type() != JsonType::kText)
    return object.wrong(fmt::format("'{}' must be a text", key));
  return std::string(text.text());
}

Result<Dims> read_numbers(JsonValueView object, std::string_view key) {
  const JsonValueView list = object.member(key);
  if (!list.exists() || list.type() != JsonType::kArray)
    return object.wrong(fmt::format("'{}' must be a list of numbers", key));
  std::vector<int64_t> numbers;
  for (JsonValueView each = list.first(); each.exists(); each = each.next()) {
    if (each.type() != JsonType::kInteger || each.integer() < 0)
      return each.wrong(fmt::format("'{}' must be a list of numbers from 0 on", key));
    numbers.push_back(each.integer());
  }
  return Dims(numbers);
}

}  // namespace shardwright::reshard
