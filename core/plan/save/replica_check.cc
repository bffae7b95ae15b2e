// SPDX-License-Identifier: Apache-2.0
//
// Replicas are stored once, so they must be equal: content digests and object sizes of one name
// agree on all holders, of a sharded tensor on all that hold the same boxes.
#include <algorithm>

#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/replica_contents_internal.h"

namespace shardwright::plan::internal {
namespace {

// Replicas of the members that have a digest, without boxes. column: LocalView::tensor_digests or
// object_digests.
void collect(std::span<const LocalView> locals, std::span<const Member> members,
             std::span<const Digest128> LocalView::* column, std::vector<HeldContent>* held) {
  held->clear();
  for (const Member& member : members) {
    const std::span<const Digest128> digests = locals[member.rank].*column;
    if (!digests.empty() && digests[member.entry] != Digest128{})
      held->push_back({member.rank, member.entry, digests[member.entry], {}});
  }
}

std::vector<Box> boxes_of(const CatalogView& catalog, size_t tensor) {
  const TensorRecord& record = catalog.tensors[tensor];
  std::vector<Box> boxes;
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c)
    boxes.push_back(chunk_box_of(catalog, c));
  return boxes;
}

Status members_differ(std::string_view name, std::string_view property, const Member& first,
                      const Member& other) {
  return replicas_differ(name, property, static_cast<int32_t>(first.rank),
                         static_cast<int32_t>(other.rank));
}

// Sizes of 0 are unknown in descriptions: then the known ones must agree.
Status check_object(std::span<const LocalView> locals, std::span<const Member> members,
                    const MergePolicy& policy) {
  const auto record = [&](const Member& member) -> const ObjectRecord& {
    return locals[member.rank].catalog.objects[member.entry];
  };
  const auto type = [&](const Member& member) {
    return locals[member.rank].catalog.texts.at(record(member).content_type);
  };
  const std::string_view name = locals[members[0].rank].catalog.object_name(members[0].entry);
  const Member* sized = nullptr;
  for (const Member& member : members) {
    if (!policy.described || record(member).size_bytes != 0) {
      if (sized == nullptr) sized = &member;
      if (record(member).size_bytes != record(*sized).size_bytes)
        return members_differ(name, "size", *sized, member);
    }
    if (type(member) != type(members[0]))
      return members_differ(name, "content type", members[0], member);
  }
  std::vector<HeldContent> held;
  collect_object_contents(locals, members, &held);
  return check_contents(name, held);
}

}  // namespace

void collect_tensor_contents(std::span<const LocalView> locals, std::span<const Member> members,
                             std::vector<HeldContent>* held) {
  collect(locals, members, &LocalView::tensor_digests, held);
  const CatalogView& first = locals[members[0].rank].catalog;
  if (first.tensors[members[0].entry].kind != EntryKind::kSharded) return;
  std::erase_if(*held, [&](const HeldContent& each) {
    return locals[each.rank].catalog.tensors[each.entry].chunk_count == 0;
  });
  for (HeldContent& each : *held)
    each.boxes = digest_of_boxes(boxes_of(locals[each.rank].catalog, each.entry));
  sort_by_boxes(held);
}

void collect_object_contents(std::span<const LocalView> locals, std::span<const Member> members,
                             std::vector<HeldContent>* held) {
  collect(locals, members, &LocalView::object_digests, held);
}

Status check_replicas(std::span<const LocalView> locals, MergedEntries* merged, VerifyReplicas rule,
                      const MergePolicy& policy) {
  if (rule == VerifyReplicas::kOff) return {};
  const bool tensors_have_digests =
      std::any_of(locals.begin(), locals.end(),
                  [](const LocalView& local) { return !local.tensor_digests.empty(); });
  std::vector<HeldContent> held;
  for (size_t g = 0; tensors_have_digests && g < merged->tensors.size(); ++g) {
    const std::span<const Member> members = merged->tensors.of(g);
    const CatalogView& catalog = locals[members[0].rank].catalog;
    if (members.size() < 2) continue;
    collect_tensor_contents(locals, members, &held);
    SHW_RETURN_IF_ERROR(check_contents(catalog.tensor_name(members[0].entry), held));
  }
  for (size_t g = 0; g < merged->objects.size(); ++g) {
    const std::span<const Member> members = merged->objects.of(g);
    if (members.size() > 1) SHW_RETURN_IF_ERROR(check_object(locals, members, policy));
  }
  return {};
}

}  // namespace shardwright::plan::internal
