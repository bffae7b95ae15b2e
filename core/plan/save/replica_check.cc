// SPDX-License-Identifier: Apache-2.0
//
// Replicas are stored once, so they must be equal: content digests and object sizes of one name
// agree on all holders, of a sharded tensor on all that hold the same boxes.
#include <algorithm>

#include "core/plan/digest_internal.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

Status members_differ(std::string_view name, std::string_view property, const Member& first,
                      const Member& other) {
  return replicas_differ(name, property, static_cast<int32_t>(first.rank),
                         static_cast<int32_t>(other.rank));
}

bool is_set(const Digest128& digest) {
  return digest != Digest128{};
}

// Digest of a member, all-zero when it was not taken. column: LocalView::tensor_digests or
// object_digests.
Digest128 digest_of(std::span<const LocalView> locals, const Member& member,
                    std::span<const Digest128> LocalView::* column) {
  const std::span<const Digest128> digests = locals[member.rank].*column;
  return digests.empty() ? Digest128{} : digests[member.entry];
}

Status check_digests(std::span<const LocalView> locals, std::span<const Member> members,
                     std::string_view name, std::span<const Digest128> LocalView::* column) {
  const Member* first = nullptr;
  for (const Member& member : members) {
    const Digest128 digest = digest_of(locals, member, column);
    if (!is_set(digest)) continue;
    if (first == nullptr) {
      first = &member;
    } else if (digest != digest_of(locals, *first, column)) {
      return members_differ(name, "content", *first, member);
    }
  }
  return {};
}

// What a member of a sharded group holds, and the digest of it.
struct Share {
  Digest128 boxes;
  const Member* member = nullptr;
};

// Ranks that hold the same boxes of a sharded tensor hold the same values in them.
Status check_shares(std::span<const LocalView> locals, std::span<const Member> members,
                    std::string_view name) {
  std::vector<Share> shares;
  for (const Member& member : members) {
    if (!is_set(digest_of(locals, member, &LocalView::tensor_digests))) continue;
    const CatalogView& catalog = locals[member.rank].catalog;
    if (catalog.tensors[member.entry].chunk_count == 0) continue;
    shares.push_back({digest_of_boxes(catalog, member.entry), &member});
  }
  std::ranges::stable_sort(shares, {}, &Share::boxes);
  for (size_t i = 1; i < shares.size(); ++i) {
    const Share& first = shares[i - 1];
    const Share& other = shares[i];
    if (first.boxes != other.boxes) continue;
    if (digest_of(locals, *first.member, &LocalView::tensor_digests) !=
        digest_of(locals, *other.member, &LocalView::tensor_digests)) {
      return members_differ(name, "content", *first.member, *other.member);
    }
  }
  return {};
}

Status check_object(std::span<const LocalView> locals, std::span<const Member> members) {
  const CatalogView& catalog = locals[members[0].rank].catalog;
  const ObjectRecord& first = catalog.objects[members[0].entry];
  const std::string_view name = catalog.texts.at(first.name);
  for (const Member& member : members) {
    const CatalogView& other_catalog = locals[member.rank].catalog;
    const ObjectRecord& other = other_catalog.objects[member.entry];
    if (other.size_bytes != first.size_bytes)
      return members_differ(name, "size", members[0], member);
    if (other_catalog.texts.at(other.content_type) != catalog.texts.at(first.content_type)) {
      return members_differ(name, "content type", members[0], member);
    }
  }
  return check_digests(locals, members, name, &LocalView::object_digests);
}

}  // namespace

Digest128 digest_of_boxes(const CatalogView& catalog, size_t tensor) {
  const TensorRecord& record = catalog.tensors[tensor];
  std::vector<Box> boxes;
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c)
    boxes.push_back(chunk_box_of(catalog, c));
  std::ranges::sort(boxes);
  std::vector<int64_t> values;
  for (const Box& box : boxes) {
    values.insert(values.end(), box.offsets.begin(), box.offsets.end());
    values.insert(values.end(), box.sizes.begin(), box.sizes.end());
  }
  return plan_bytes_digest(std::as_bytes(std::span(values)));
}

Status check_replicas(std::span<const LocalView> locals, MergedEntries* merged,
                      VerifyReplicas rule) {
  if (rule == VerifyReplicas::kOff) return {};
  const bool tensors_have_digests =
      std::any_of(locals.begin(), locals.end(),
                  [](const LocalView& local) { return !local.tensor_digests.empty(); });
  for (size_t g = 0; tensors_have_digests && g < merged->tensors.size(); ++g) {
    const std::span<const Member> members = merged->tensors.of(g);
    const CatalogView& catalog = locals[members[0].rank].catalog;
    if (members.size() < 2) continue;
    const std::string_view name = catalog.tensor_name(members[0].entry);
    const bool sharded = catalog.tensors[members[0].entry].kind == EntryKind::kSharded;
    SHW_RETURN_IF_ERROR(sharded ? check_shares(locals, members, name)
                                : check_digests(locals, members, name, &LocalView::tensor_digests));
  }
  for (size_t g = 0; g < merged->objects.size(); ++g) {
    const std::span<const Member> members = merged->objects.of(g);
    if (members.size() > 1) SHW_RETURN_IF_ERROR(check_object(locals, members));
  }
  return {};
}

}  // namespace shardwright::plan::internal
