// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/json_members.h"

#include <vector>

#include <fmt/format.h>

namespace shardwright::reshard {

Status want_object(JsonValueView value, std::string_view what) {
  if (value.exists() && value.type() == JsonType::kObject) return {};
  return value.wrong(fmt::format("{} must be an object", what));
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
