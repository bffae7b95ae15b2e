// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/stage_layers.h"

#include <optional>
#include <set>

#include "core/reshard/declared_order.h"

namespace shardwright::reshard {

std::vector<int64_t> stage_layers_of(const AssignInput& known,
                                     const std::vector<Assigned>& assigned, const JobShape& shape) {
  std::vector<std::set<int64_t>> stages(static_cast<size_t>(shape.pipeline));
  for (const Assigned& each : assigned) {
    const Bucket& bucket = known.buckets[each.bucket];
    const LocalParameter& parameter = known.parameters[each.parameter];
    const int64_t groups =
        bucket.prefix == kOfExperts ? shape.expert * shape.expert_tensor : shape.tensor;
    const auto stage = static_cast<size_t>(bucket.group / groups);
    const std::optional<int64_t> layer =
        layer_of(parameter.name(known.catalog), parameter.parts[0].box);
    if (stage >= stages.size()) return {};
    if (layer.has_value()) stages[stage].insert(*layer);
  }
  std::vector<int64_t> layers;
  int64_t next = 0;
  for (const std::set<int64_t>& stage : stages) {
    for (const int64_t layer : stage) {
      if (layer != next) return {};
      ++next;
    }
    layers.push_back(static_cast<int64_t>(stage.size()));
  }
  return layers;
}

}  // namespace shardwright::reshard
