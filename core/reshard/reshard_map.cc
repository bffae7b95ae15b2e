// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/reshard_map.h"

#include <string_view>
#include <utility>

#include "core/reshard/json_members.h"
#include "core/state/mapping_json.h"

namespace shardwright::reshard {
namespace {

constexpr std::string_view kPlaceKeys[] = {"bucket", "begin", "parts"};
constexpr std::string_view kPartKeys[] = {"tensor", "offsets", "sizes"};
constexpr std::string_view kMapKeys[] = {"buckets", "mapping", "bucket_size", "grouped_experts"};

Result<SaidPlace> read_place(JsonValueView value) {
  SHW_RETURN_IF_ERROR(want_object(value, "what lies in a bucket"));
  SHW_RETURN_IF_ERROR(value.check_keys("what lies in a bucket", kPlaceKeys));
  SaidPlace place;
  SHW_ASSIGN_OR_RETURN(place.bucket, read_text(value, "bucket"));
  const JsonValueView begin = value.member("begin");
  if (!begin.exists() || begin.type() != JsonType::kInteger || begin.integer() < 0)
    return value.wrong("'begin' must be the number of an element");
  place.begin = begin.integer();
  const JsonValueView parts = value.member("parts");
  if (!parts.exists() || parts.type() != JsonType::kArray || parts.size() == 0)
    return value.wrong("'parts' must be a list of boxes");
  for (JsonValueView part = parts.first(); part.exists(); part = part.next()) {
    SHW_RETURN_IF_ERROR(want_object(part, "a part"));
    SHW_RETURN_IF_ERROR(part.check_keys("a part", kPartKeys));
    SHW_ASSIGN_OR_RETURN(std::string tensor, read_text(part, "tensor"));
    SHW_ASSIGN_OR_RETURN(Dims offsets, read_numbers(part, "offsets"));
    SHW_ASSIGN_OR_RETURN(Dims sizes, read_numbers(part, "sizes"));
    place.parts.emplace_back(std::move(tensor), Box{std::move(offsets), std::move(sizes)});
  }
  return place;
}

Status read_places(JsonValueView list, std::vector<SaidPlace>* places) {
  if (!list.exists()) return {};
  if (list.type() != JsonType::kArray) return list.wrong("'buckets' must be a list");
  for (JsonValueView each = list.first(); each.exists(); each = each.next()) {
    SHW_ASSIGN_OR_RETURN(SaidPlace place, read_place(each));
    places->push_back(std::move(place));
  }
  return {};
}

Status read_bucket_size(JsonValueView value, std::optional<int64_t>* size) {
  if (!value.exists()) return {};
  *size = kOneBucket;
  if (value.type() == JsonType::kNull) return {};
  if (value.type() != JsonType::kInteger || value.integer() < 1)
    return value.wrong("'bucket_size' must be a number of elements, or null for one bucket");
  *size = value.integer();
  return {};
}

}  // namespace

Result<ReshardMap> read_map(std::string_view json) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json));
  const JsonValueView root = tree.root();
  SHW_RETURN_IF_ERROR(want_object(root, "a map"));
  SHW_RETURN_IF_ERROR(root.check_keys("a map", kMapKeys));
  ReshardMap map;
  map.text = json;
  SHW_RETURN_IF_ERROR(read_places(root.member("buckets"), &map.places));
  SHW_RETURN_IF_ERROR(read_bucket_size(root.member("bucket_size"), &map.bucket_size));
  if (const JsonValueView grouped = root.member("grouped_experts"); grouped.exists()) {
    if (grouped.type() != JsonType::kBoolean)
      return grouped.wrong("'grouped_experts' must be true or false");
    map.has_grouped_experts = grouped.integer() != 0;
  }
  if (const JsonValueView mapping = root.member("mapping"); mapping.exists()) {
    SHW_ASSIGN_OR_RETURN(map.mapping, read_mapping(mapping, {}));
  }
  return map;
}

}  // namespace shardwright::reshard
