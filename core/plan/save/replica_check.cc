// SPDX-License-Identifier: Apache-2.0
//
// Replicas are stored once, so they must be equal: content digests and object sizes of one name
// agree on all holders.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

Status replicas_differ(std::string_view name, std::string_view property, const Member& first,
                       const Member& other) {
  return invalid_argument(
             fmt::format(
                 "'{}' is replicated, but its {} differs between rank {} and rank {}; declare it "
                 "rank_local (kind pattern) or save with verify_replicas=off, which keeps one of "
                 "them",
                 escape_text(name), property, first.rank, other.rank))
      .with_detail("tensor", name)
      .with_detail("rank", std::to_string(first.rank))
      .with_detail("rank", std::to_string(other.rank))
      .with_detail("hint", "declare it rank_local (kind pattern) or verify_replicas=off");
}

bool is_set(const Digest128& digest) {
  return digest != Digest128{};
}

// Digest of a member, all-zero when it was not taken. column: LocalSavePlan::tensor_digests or
// object_digests.
Digest128 digest_of(std::span<const LocalSavePlan> locals, const Member& member,
                    std::vector<Digest128> LocalSavePlan::* column) {
  const std::vector<Digest128>& digests = locals[member.rank].*column;
  return digests.empty() ? Digest128{} : digests[member.entry];
}

Status check_digests(std::span<const LocalSavePlan> locals, std::span<const Member> members,
                     std::string_view name, std::vector<Digest128> LocalSavePlan::* column) {
  const Member* first = nullptr;
  for (const Member& member : members) {
    const Digest128 digest = digest_of(locals, member, column);
    if (!is_set(digest)) continue;
    if (first == nullptr) {
      first = &member;
    } else if (digest != digest_of(locals, *first, column)) {
      return replicas_differ(name, "content", *first, member);
    }
  }
  return {};
}

Status check_object(std::span<const LocalSavePlan> locals, std::span<const Member> members) {
  const Catalog& catalog = locals[members[0].rank].catalog;
  const ObjectRecord& first = catalog.objects[members[0].entry];
  const std::string_view name = catalog.texts.at(first.name);
  for (const Member& member : members) {
    const Catalog& other_catalog = locals[member.rank].catalog;
    const ObjectRecord& other = other_catalog.objects[member.entry];
    if (other.size_bytes != first.size_bytes)
      return replicas_differ(name, "size", members[0], member);
    if (other_catalog.texts.at(other.content_type) != catalog.texts.at(first.content_type)) {
      return replicas_differ(name, "content type", members[0], member);
    }
  }
  return check_digests(locals, members, name, &LocalSavePlan::object_digests);
}

}  // namespace

Status check_replicas(std::span<const LocalSavePlan> locals, const MergedEntries& merged,
                      const SaveRules& rules) {
  if (rules.verify_replicas == VerifyReplicas::kOff) return {};
  const bool tensors_have_digests =
      std::any_of(locals.begin(), locals.end(),
                  [](const LocalSavePlan& local) { return !local.tensor_digests.empty(); });
  for (size_t g = 0; tensors_have_digests && g < merged.tensors.size(); ++g) {
    const std::span<const Member> members = merged.tensors.of(g);
    const Catalog& catalog = locals[members[0].rank].catalog;
    if (members.size() < 2) continue;
    SHW_RETURN_IF_ERROR(check_digests(locals, members, catalog.tensor_name(members[0].entry),
                                      &LocalSavePlan::tensor_digests));
  }
  for (size_t g = 0; g < merged.objects.size(); ++g) {
    const std::span<const Member> members = merged.objects.of(g);
    if (members.size() > 1) SHW_RETURN_IF_ERROR(check_object(locals, members));
  }
  return {};
}

}  // namespace shardwright::plan::internal
