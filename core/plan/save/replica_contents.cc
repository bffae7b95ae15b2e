// SPDX-License-Identifier: Apache-2.0
//
// Digests of whole tensors stand in descriptions, those of what a rank holds a part of in its part.
#include "core/plan/save/replica_contents_internal.h"

#include <algorithm>
#include <utility>

#include "core/plan/digest.h"
#include "core/plan/save/conflicts_internal.h"

namespace shardwright::plan::internal {
namespace {

bool is_set(const Digest128& digest) {
  return digest != Digest128{};
}

// Of the boxes that a rank holds, in whatever order it listed them.
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
  const auto before = [](const HeldContent& a, const HeldContent& b) {
    return a.boxes != b.boxes ? a.boxes < b.boxes : a.rank < b.rank;
  };
  if (!std::ranges::is_sorted(*held, before)) std::ranges::sort(*held, before);
}

// Those who hold the same as the first.
std::span<const HeldContent> first_alike(std::span<const HeldContent> held) {
  size_t end = 0;
  while (end < held.size() && held[end].boxes == held[0].boxes) ++end;
  return held.first(end);
}

}  // namespace

RankContents::RankContents(const RankPlans& ranks)
    : ranks_(ranks),
      members_(ranks),
      any_of_ranks_(std::ranges::any_of(
          ranks.parts, [](const PartView& part) { return !part.tensor_digests.empty(); })) {}

Digest128 RankContents::content_of_tensor(const RankMember& member) const {
  const Description& description = ranks_.descriptions[member.description];
  if (!description.tensor_digests.empty() && is_set(description.tensor_digests[member.entry]))
    return description.tensor_digests[member.entry];
  const PartView& part = ranks_.part(member.rank);
  const auto found = std::ranges::lower_bound(part.digest_tensors, member.entry);
  if (found == part.digest_tensors.end() || *found != member.entry) return {};
  return part.tensor_digests[static_cast<size_t>(found - part.digest_tensors.begin())];
}

Digest128 RankContents::content_of_object(const RankMember& member) const {
  const Description& description = ranks_.descriptions[member.description];
  return description.object_digests.empty() ? Digest128{}
                                            : description.object_digests[member.entry];
}

void RankContents::collect_tensor(std::span<const Member> members, std::vector<HeldContent>* held) {
  held->clear();
  const Catalog& first = ranks_.descriptions[members[0].description].catalog;
  const bool sharded = first.tensors[members[0].entry].kind == EntryKind::kSharded;
  Digest128 whole{};  // of the boxes of a rank that holds all of it
  for (const RankMember& member : members_.of(members)) {
    HeldContent content{member.rank, member.entry, content_of_tensor(member), {}};
    if (!is_set(content.content)) continue;
    if (sharded) {
      const bool is_whole = ranks_.descriptions[member.description].forms[member.entry] == kWhole;
      if (!is_whole || whole == Digest128{}) {
        std::vector<Box> boxes = ranks_.of(member.rank).boxes_of(member.entry);
        std::erase_if(boxes, box_is_empty);
        if (boxes.empty()) continue;
        content.boxes = digest_of_boxes(std::move(boxes));
        if (is_whole) whole = content.boxes;
      } else {
        content.boxes = whole;
      }
    }
    held->push_back(content);
  }
  sort_by_boxes(held);
}

void RankContents::collect_object(std::span<const Member> members, std::vector<HeldContent>* held) {
  held->clear();
  for (const RankMember& member : members_.of(members)) {
    const HeldContent content{member.rank, member.entry, content_of_object(member), {}};
    if (is_set(content.content)) held->push_back(content);
  }
}

Status check_contents(std::string_view name, std::span<const HeldContent> held) {
  const HeldContent* first = nullptr;
  for (const HeldContent& each : held) {
    if (first == nullptr || first->boxes != each.boxes) {
      first = &each;
    } else if (first->content != each.content) {
      return replicas_differ(name, "content", static_cast<int32_t>(first->rank),
                             static_cast<int32_t>(each.rank));
    }
  }
  return {};
}

void ReplicaSetBuilder::add_tensor(std::span<const HeldContent> held) {
  while (!held.empty()) {
    const std::span<const HeldContent> alike = first_alike(held);
    add_entry(alike, &ReplicaSet::tensors);
    held = held.subspan(alike.size());
  }
}

void ReplicaSetBuilder::add_object(std::span<const HeldContent> held) {
  add_entry(held, &ReplicaSet::objects);
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
