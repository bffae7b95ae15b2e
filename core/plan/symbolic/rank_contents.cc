// SPDX-License-Identifier: Apache-2.0
//
// Digests of whole tensors stand in descriptions, those of what a rank holds a part of in parts.
#include "core/plan/symbolic/rank_contents_internal.h"

#include <algorithm>

namespace shardwright::plan::internal {
namespace {

bool is_set(const Digest128& digest) {
  return digest != Digest128{};
}

}  // namespace

RankContents::RankContents(const RankDescriptions& ranks, const PartIndex& parts)
    : ranks_(ranks),
      parts_(parts),
      any_in_parts_(std::ranges::any_of(
          ranks.parts, [](const SymbolicPart& part) { return !part.digest_tensors.empty(); })) {}

const std::vector<uint32_t>& RankContents::ranks_of(uint32_t description) {
  if (ranks_of_.empty()) {
    ranks_of_.resize(ranks_.descriptions.size());
    for (size_t r = 0; r < ranks_.description_of_rank.size(); ++r)
      ranks_of_[ranks_.description_of_rank[r]].push_back(static_cast<uint32_t>(r));
  }
  return ranks_of_[description];
}

Digest128 RankContents::content_in_part(const GroupMember& member, int32_t rank) const {
  const SymbolicPart* part = ranks_.part_of(rank);
  if (part == nullptr) return {};
  const auto found = std::ranges::lower_bound(part->digest_tensors, member.entry);
  if (found == part->digest_tensors.end() || *found != member.entry) return {};
  return part->tensor_digests[static_cast<size_t>(found - part->digest_tensors.begin())];
}

std::vector<Box> RankContents::boxes_of(const GroupMember& member, int32_t rank) const {
  const SymbolicDescription& description = ranks_.descriptions[member.description];
  std::vector<Box> boxes;
  if (description.forms[member.entry] == kBoxes) {
    const PartBoxesView::Boxes own = parts_.boxes(rank, member.entry);
    for (size_t b = 0; b < own.count; ++b) boxes.push_back(box_of(own[b]));
  } else if (description.forms[member.entry] != kNothing) {
    const std::span<const int64_t> shape = description.catalog.shape(member.entry);
    boxes.push_back(box_of_axes(description.axes_of(member.entry), shape, rank));
  }
  std::erase_if(boxes, box_is_empty);
  return boxes;
}

void RankContents::collect(const GroupMember& member, bool sharded,
                           std::vector<HeldContent>* held) {
  const SymbolicDescription& description = ranks_.descriptions[member.description];
  const bool whole = description.forms[member.entry] == kWhole;
  if (whole ? description.tensor_digests.empty() : !any_in_parts_) return;
  std::vector<Box> boxes;  // of the rank at hand; a whole tensor's are those of all ranks
  Digest128 boxes_digest{};
  if (whole && sharded) {
    if (!is_set(description.tensor_digests[member.entry])) return;
    boxes = boxes_of(member, 0);
    boxes_digest = digest_of_boxes(boxes);
  }
  for (const uint32_t r : ranks_of(member.description)) {
    const auto rank = static_cast<int32_t>(r);
    HeldContent content{r, member.entry, {}, {}};
    content.content =
        whole ? description.tensor_digests[member.entry] : content_in_part(member, rank);
    if (!is_set(content.content)) continue;
    if (sharded && !whole) {
      boxes = boxes_of(member, rank);
      boxes_digest = digest_of_boxes(boxes);
    }
    if (sharded && boxes.empty()) continue;
    content.boxes = boxes_digest;
    held->push_back(content);
  }
}

void RankContents::collect_tensor(std::span<const GroupMember> members,
                                  std::vector<HeldContent>* held) {
  held->clear();
  const Catalog& first = ranks_.descriptions[members[0].description].catalog;
  const bool sharded = first.tensors[members[0].entry].kind == EntryKind::kSharded;
  for (const GroupMember& member : members) collect(member, sharded, held);
  sort_by_boxes(held);
}

void RankContents::collect_object(std::span<const GroupMember> members,
                                  std::vector<HeldContent>* held) {
  held->clear();
  for (const GroupMember& member : members) {
    const std::vector<Digest128>& digests = ranks_.descriptions[member.description].object_digests;
    if (digests.empty() || !is_set(digests[member.entry])) continue;
    for (const uint32_t rank : ranks_of(member.description))
      held->push_back({rank, member.entry, digests[member.entry], {}});
  }
  sort_by_boxes(held);
}

}  // namespace shardwright::plan::internal
