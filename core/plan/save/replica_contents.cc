// SPDX-License-Identifier: Apache-2.0
//
// Comparing replicas, and the sets that they make.
#include "core/plan/save/replica_contents_internal.h"

#include <algorithm>
#include <utility>

#include "core/plan/digest.h"
#include "core/plan/save/conflicts_internal.h"

namespace shardwright::plan::internal {

Digest128 digest_of_boxes(std::vector<Box> boxes) {
  std::ranges::sort(boxes);
  std::vector<int64_t> values;
  for (const Box& box : boxes) {
    values.insert(values.end(), box.offsets.begin(), box.offsets.end());
    values.insert(values.end(), box.sizes.begin(), box.sizes.end());
  }
  return content_digest(std::as_bytes(std::span(values)));
}

void sort_by_boxes(std::vector<HeldContent>* held) {
  std::ranges::sort(*held, [](const HeldContent& a, const HeldContent& b) {
    return a.boxes != b.boxes ? a.boxes < b.boxes : a.rank < b.rank;
  });
}

std::span<const HeldContent> first_alike(std::span<const HeldContent> sorted) {
  size_t end = 0;
  while (end < sorted.size() && sorted[end].boxes == sorted[0].boxes) ++end;
  return sorted.first(end);
}

Status check_contents(std::string_view name, std::span<const HeldContent> sorted) {
  const HeldContent* first = nullptr;
  for (const HeldContent& each : sorted) {
    if (first == nullptr || first->boxes != each.boxes) {
      first = &each;
    } else if (first->content != each.content) {
      return replicas_differ(name, "content", static_cast<int32_t>(first->rank),
                             static_cast<int32_t>(each.rank));
    }
  }
  return {};
}

void ReplicaSetBuilder::add_tensor(std::span<const HeldContent> sorted) {
  while (!sorted.empty()) {
    const std::span<const HeldContent> alike = first_alike(sorted);
    add_entry(alike, &ReplicaSet::tensors);
    sorted = sorted.subspan(alike.size());
  }
}

void ReplicaSetBuilder::add_object(std::span<const HeldContent> sorted) {
  add_entry(sorted, &ReplicaSet::objects);
}

void ReplicaSetBuilder::add_entry(std::span<const HeldContent> alike,
                                  std::vector<uint32_t> ReplicaSet::* entries) {
  if (alike.size() < 2) return;
  holders_.clear();
  for (const HeldContent& each : alike) holders_.push_back(each.rank);
  const auto [found, is_new] =
      numbers_.try_emplace(holders_, static_cast<uint32_t>(numbers_.size()));
  for (uint32_t position = 0; position < alike.size(); ++position) {
    ReplicaSets& sets = ranks_[alike[position].rank];
    if (is_new)
      sets.push_back({found->second, position, static_cast<uint32_t>(alike.size()), {}, {}});
    const auto set = std::ranges::find(sets, found->second, &ReplicaSet::number);
    ((*set).*entries).push_back(alike[position].entry);
  }
}

}  // namespace shardwright::plan::internal
