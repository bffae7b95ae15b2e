// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_job.h"

#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_tree.h"

namespace shardwright::reshard {
namespace {

constexpr int64_t kMaxGroupSize = int64_t{1} << 20;

Status want_object(JsonValueView value, std::string_view what) {
  if (value.exists() && value.type() == JsonType::kObject) return {};
  return value.wrong(fmt::format("{} must be an object", what));
}

Status read_size(JsonValueView value, int64_t* size) {
  if (value.type() != JsonType::kInteger || value.integer() < 1 || value.integer() > kMaxGroupSize)
    return value.wrong(
        fmt::format("'{}' must be a number from 1 to {}", value.key(), kMaxGroupSize));
  *size = value.integer();
  return {};
}

Status read_optimizer(JsonValueView value, OptimizerLayout* layout) {
  const std::string_view text = value.type() == JsonType::kText ? value.text() : "";
  if (text == "fully_reshardable") {
    *layout = OptimizerLayout::kFullyReshardable;
  } else if (text == "dp_reshardable") {
    *layout = OptimizerLayout::kDpReshardable;
  } else {
    return value.wrong("'optimizer' must be 'fully_reshardable' or 'dp_reshardable'");
  }
  return {};
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

Result<SaidPlace> read_place(JsonValueView value) {
  SHW_RETURN_IF_ERROR(want_object(value, "what lies in a bucket"));
  SHW_RETURN_IF_ERROR(
      only_members(value, std::array<std::string_view, 3>{"bucket", "begin", "parts"}));
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
    SHW_RETURN_IF_ERROR(
        only_members(part, std::array<std::string_view, 3>{"tensor", "offsets", "sizes"}));
    SHW_ASSIGN_OR_RETURN(std::string tensor, read_text(part, "tensor"));
    SHW_ASSIGN_OR_RETURN(Dims offsets, read_numbers(part, "offsets"));
    SHW_ASSIGN_OR_RETURN(Dims sizes, read_numbers(part, "sizes"));
    place.parts.emplace_back(std::move(tensor), Box{std::move(offsets), std::move(sizes)});
  }
  return place;
}

}  // namespace

Status read_target_job(std::string_view json, TargetJob* job) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json));
  const JsonValueView root = tree.root();
  SHW_RETURN_IF_ERROR(want_object(root, "a job"));
  const std::array<std::pair<std::string_view, int64_t*>, 4> sizes = {{
      {"tensor_model_parallel_size", &job->shape.tensor},
      {"pipeline_model_parallel_size", &job->shape.pipeline},
      {"expert_model_parallel_size", &job->shape.expert},
      {"data_parallel_size", &job->shape.data},
  }};
  SHW_RETURN_IF_ERROR(only_members(
      root, std::array<std::string_view, 5>{sizes[0].first, sizes[1].first, sizes[2].first,
                                            sizes[3].first, "optimizer"}));
  for (JsonValueView each = root.first(); each.exists(); each = each.next()) {
    if (each.key() == "optimizer") SHW_RETURN_IF_ERROR(read_optimizer(each, &job->optimizer));
    for (const auto& [key, size] : sizes) {
      if (each.key() == key) SHW_RETURN_IF_ERROR(read_size(each, size));
    }
  }
  return {};
}

Status check_target_job(const TargetJob& job) {
  const std::array<std::pair<std::string_view, int64_t>, 4> sizes = {{{"tp", job.shape.tensor},
                                                                      {"pp", job.shape.pipeline},
                                                                      {"ep", job.shape.expert},
                                                                      {"dp", job.shape.data}}};
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kMaxGroupSize)
      return invalid_argument(fmt::format("{} is {}; it must be a number from 1 to {}", name, size,
                                          kMaxGroupSize))
          .with_detail("parameter", name);
  }
  return {};
}

Result<std::vector<SaidPlace>> read_map(std::string_view json) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json));
  SHW_RETURN_IF_ERROR(want_object(tree.root(), "a map"));
  SHW_RETURN_IF_ERROR(only_members(tree.root(), std::array<std::string_view, 1>{"buckets"}));
  const JsonValueView list = tree.root().member("buckets");
  std::vector<SaidPlace> places;
  if (!list.exists()) return places;
  if (list.type() != JsonType::kArray) return list.wrong("'buckets' must be a list");
  for (JsonValueView each = list.first(); each.exists(); each = each.next()) {
    SHW_ASSIGN_OR_RETURN(SaidPlace place, read_place(each));
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace shardwright::reshard
