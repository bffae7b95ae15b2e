// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_job.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/reshard/json_members.h"

namespace shardwright::reshard {
namespace {

constexpr int64_t kMaxGroupSize = int64_t{1} << 20;
constexpr std::string_view kStageLayers = "pipeline_layers";

Status read_size(JsonValueView value, int64_t* size) {
  if (value.type() != JsonType::kInteger || value.integer() < 1 || value.integer() > kMaxGroupSize)
    return value.wrong(
        fmt::format("'{}' must be a number from 1 to {}", value.key(), kMaxGroupSize));
  *size = value.integer();
  return {};
}

Status read_layers(JsonValueView value, std::vector<int64_t>* layers) {
  const auto wrong = [&] {
    return value.wrong(
        fmt::format("'{}' must be a list of the layers of each pipeline stage, of "
                    "which each has 0 to {}",
                    value.key(), kMaxGroupSize));
  };
  if (value.type() != JsonType::kArray || value.size() == 0) return wrong();
  layers->clear();
  for (JsonValueView each = value.first(); each.exists(); each = each.next()) {
    if (each.type() != JsonType::kInteger || each.integer() < 0 || each.integer() > kMaxGroupSize)
      return wrong();
    layers->push_back(each.integer());
  }
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

Status check_layers(const TargetJob& job) {
  const std::vector<int64_t>& layers = job.pipeline_layers;
  const auto wrong = [](std::string text) {
    return invalid_argument(std::move(text)).with_detail("parameter", kStageLayers);
  };
  for (const int64_t each : layers) {
    if (each < 0 || each > kMaxGroupSize)
      return wrong(fmt::format("a pipeline stage with {} layers; it must be a number from 0 to {}",
                               each, kMaxGroupSize));
  }
  if (layers.empty() || static_cast<int64_t>(layers.size()) == job.shape.pipeline) return {};
  return wrong(fmt::format("the layers of {} pipeline stages are said ({}), and pp is {}",
                           layers.size(), fmt::join(layers, ", "), job.shape.pipeline))
      .with_detail("hint", "say a number for each stage, or leave pp out");
}

}  // namespace

Status read_target_job(std::string_view json, TargetJob* job) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json));
  const JsonValueView root = tree.root();
  SHW_RETURN_IF_ERROR(want_object(root, "a job"));
  const std::array<std::pair<std::string_view, int64_t*>, 5> sizes = {{
      {"tensor_model_parallel_size", &job->shape.tensor},
      {"pipeline_model_parallel_size", &job->shape.pipeline},
      {"expert_model_parallel_size", &job->shape.expert},
      {"expert_tensor_parallel_size", &job->shape.expert_tensor},
      {"data_parallel_size", &job->shape.data},
  }};
  const std::array<std::string_view, 7> keys = {sizes[0].first, sizes[1].first, sizes[2].first,
                                                sizes[3].first, sizes[4].first, kStageLayers,
                                                "optimizer"};
  SHW_RETURN_IF_ERROR(root.check_keys("a job", keys));
  for (JsonValueView each = root.first(); each.exists(); each = each.next()) {
    if (each.key() == kStageLayers) SHW_RETURN_IF_ERROR(read_layers(each, &job->pipeline_layers));
    if (each.key() == "optimizer") SHW_RETURN_IF_ERROR(read_optimizer(each, &job->optimizer));
    for (const auto& [key, size] : sizes) {
      if (each.key() == key) SHW_RETURN_IF_ERROR(read_size(each, size));
    }
  }
  return {};
}

Status check_target_job(const TargetJob& job) {
  const std::array<std::pair<std::string_view, int64_t>, 5> sizes = {
      {{"tp", job.shape.tensor},
       {"pp", job.shape.pipeline},
       {"ep", job.shape.expert},
       {"etp", job.shape.expert_tensor},
       {"dp", job.shape.data}}};
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kMaxGroupSize)
      return invalid_argument(fmt::format("{} is {}; it must be a number from 1 to {}", name, size,
                                          kMaxGroupSize))
          .with_detail("parameter", name);
  }
  return check_layers(job);
}

}  // namespace shardwright::reshard
