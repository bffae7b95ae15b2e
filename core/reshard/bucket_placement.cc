// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/bucket_placement.h"

#include <algorithm>

namespace shardwright::reshard {

void BucketPlacement::add(const Bucket& bucket, std::vector<int64_t> bounds,
                          int64_t data_parallel) {
  const int64_t share = bucket.padded / data_parallel;
  for (int64_t at = share; share > 0 && at < bucket.elements; at += share) bounds.push_back(at);
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  chunks_[bucket.name()] = {std::move(bounds), bucket.group};
}

std::vector<exec::FilePlacement::Part> BucketPlacement::parts(const plan::Catalog& view,
                                                              size_t tensor) const {
  const std::string_view name = view.tensor_name(tensor);
  const auto found = chunks_.find(name.substr(0, name.rfind('.')));
  if (found == chunks_.end()) return grid_.parts(view, tensor);
  const auto& [bounds, file] = found->second;
  std::vector<Part> parts;
  for (size_t i = 1; i < bounds.size(); ++i)
    parts.push_back({{{bounds[i - 1]}, {bounds[i] - bounds[i - 1]}}, file});
  return parts;
}

}  // namespace shardwright::reshard
