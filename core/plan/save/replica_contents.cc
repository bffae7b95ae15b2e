// SPDX-License-Identifier: Apache-2.0
//
// Digests of whole tensors stand in descriptions, those of what a rank holds a part of in its part.
#include "core/plan/save/replica_contents_internal.h"

#include <algorithm>
#include <utility>

#include "core/integrity/digest.h"

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
  return integrity::xxh3_128(std::as_bytes(std::span(values)));
}

}  // namespace

RankContents::RankContents(const RankPlans& ranks, ContentsOf which)
    : ranks_(ranks),
      members_(ranks),
      distinct_(which == ContentsOf::kDistinct &&
                std::ranges::all_of(ranks.parts, [](const PartView& part) {
                  return part.tensor_digests.empty();
                })) {}

std::span<const RankMember> RankContents::members_of(std::span<const Member> members) {
  if (!distinct_) return members_.of(members);
  firsts_.clear();
  for (const Member& member : members) {
    firsts_.push_back({ranks_.first_ranks[member.description], member.description, member.entry});
  }
  return firsts_;
}

Digest128 RankContents::content_of_tensor(const RankMember& member) const {
  const Description& description = ranks_.descriptions[member.description];
  if (!description.tensor_digests.empty() && is_set(description.tensor_digests[member.entry]))
    return description.tensor_digests[member.entry];
  const PartView& part = ranks_.part(member.rank);
  const auto found = std::ranges::lower_bound(part.digest_tensors, member.entry);
  if (found == part.digest_tensors.end() || *found != member.entry) return {};
  return part.tensor_digests[static_cast<size_t>(found - part.digest_tensors.begin())];
}

std::span<const HeldContent> RankContents::of_tensor(std::span<const Member> members) {
  held_.clear();
  const Catalog& first = ranks_.descriptions[members[0].description].catalog;
  const bool sharded = first.tensors[members[0].entry].kind == EntryKind::kSharded;
  Digest128 whole{};  // of the boxes of a rank that holds all of it
  for (const RankMember& member : members_of(members)) {
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
    held_.push_back(content);
  }
  const auto before = [](const HeldContent& a, const HeldContent& b) {
    return a.boxes != b.boxes ? a.boxes < b.boxes : a.rank < b.rank;
  };
  if (!std::ranges::is_sorted(held_, before)) std::ranges::sort(held_, before);
  return held_;
}

std::span<const HeldContent> RankContents::of_object(std::span<const Member> members) {
  held_.clear();
  for (const RankMember& member : members_of(members)) {
    const std::vector<Digest128>& digests = ranks_.descriptions[member.description].object_digests;
    if (!digests.empty() && is_set(digests[member.entry]))
      held_.push_back({member.rank, member.entry, digests[member.entry], {}});
  }
  return held_;
}

}  // namespace shardwright::plan::internal
