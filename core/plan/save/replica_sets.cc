// SPDX-License-Identifier: Apache-2.0
//
// Sets are found by their holders: the groups of the merge are walked in their order, which all
// ranks share, and each puts its entry into the set of the ranks that hold it with a digest.
#include "core/plan/save/replica_sets.h"

#include <algorithm>
#include <map>
#include <utility>

#include <xxhash.h>

#include "core/plan/digest_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan {
namespace {

using internal::Member;

constexpr uint64_t kKeySeed = 0x53485752414E4B31;   // of the hash of key and world
constexpr uint64_t kTermSeed = 0x5348575445524D31;  // of the terms of sets

using Column = std::span<const Digest128> LocalView::*;

// Collects the sets of all ranks.
class SetBuilder {
 public:
  explicit SetBuilder(const LocalViews& locals) : locals_(locals.views), ranks_(locals_.size()) {}

  void add_tensors(internal::TensorGroups* groups) {
    for (size_t g = 0; g < groups->size(); ++g) {
      const std::span<const Member> members = groups->of(g);
      if (members.size() < 2) continue;
      with_digest(members, &LocalView::tensor_digests);
      const CatalogView& catalog = locals_[members[0].rank].catalog;
      if (catalog.tensors[members[0].entry].kind != EntryKind::kSharded) {
        add_entry(compared_, &ReplicaSet::tensors);
      } else {
        add_shares();
      }
    }
  }

  void add_objects(const internal::Groups& groups) {
    for (size_t g = 0; g < groups.size(); ++g) {
      with_digest(groups.of(g), &LocalView::object_digests);
      add_entry(compared_, &ReplicaSet::objects);
    }
  }

  std::vector<ReplicaSets> take() { return std::move(ranks_); }

 private:
  // The members that have a digest, into compared_.
  void with_digest(std::span<const Member> members, Column column) {
    compared_.clear();
    for (const Member& member : members) {
      const std::span<const Digest128> digests = locals_[member.rank].*column;
      if (!digests.empty() && digests[member.entry] != Digest128{}) compared_.push_back(member);
    }
  }

  // Those of compared_ that hold the same boxes belong together.
  void add_shares() {
    std::map<Digest128, std::vector<Member>> by_boxes;
    for (const Member& member : compared_) {
      const CatalogView& catalog = locals_[member.rank].catalog;
      if (catalog.tensors[member.entry].chunk_count == 0) continue;
      by_boxes[internal::digest_of_boxes(catalog, member.entry)].push_back(member);
    }
    for (const auto& [boxes, members] : by_boxes) add_entry(members, &ReplicaSet::tensors);
  }

  void add_entry(std::span<const Member> members, std::vector<uint32_t> ReplicaSet::* entries) {
    if (members.size() < 2) return;
    holders_.clear();
    for (const Member& member : members) holders_.push_back(member.rank);
    const auto [found, is_new] =
        numbers_.try_emplace(holders_, static_cast<uint32_t>(numbers_.size()));
    for (uint32_t position = 0; position < members.size(); ++position) {
      ReplicaSets& sets = ranks_[members[position].rank];
      if (is_new) {
        sets.push_back({found->second, position, static_cast<uint32_t>(members.size()), {}, {}});
      }
      const auto set = std::ranges::find(sets, found->second, &ReplicaSet::number);
      ((*set).*entries).push_back(members[position].entry);
    }
  }

  std::span<const LocalView> locals_;
  std::vector<ReplicaSets> ranks_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // holders -> number of their set
  std::vector<Member> compared_;                       // scratch
  std::vector<uint32_t> holders_;                      // scratch
};

Share share_of(const XXH128_hash_t& hash) {
  return {hash.low64, hash.high64};
}

// Contents of a set's entries on this rank.
Digest128 digest_of_set(const ReplicaSet& set, const ReplicaDigests& digests) {
  std::vector<Digest128> contents;
  contents.reserve(set.tensors.size() + set.objects.size());
  for (const uint32_t tensor : set.tensors) contents.push_back(digests.tensors[tensor]);
  for (const uint32_t object : set.objects) contents.push_back(digests.objects[object]);
  return internal::plan_bytes_digest(std::as_bytes(std::span(contents)));
}

// h(contents, position) in a set of a world.
Share term(const Digest128& contents, const Digest128& world, uint32_t set, uint32_t position) {
  struct {
    Digest128 contents;
    Digest128 world;
    uint32_t set;
    uint32_t position;
  } const hashed{contents, world, set, position};
  static_assert(sizeof(hashed) == 40);
  return share_of(XXH3_128bits_withSeed(&hashed, sizeof(hashed), kTermSeed));
}

}  // namespace

Result<std::vector<ReplicaSets>> replica_sets(const LocalViews& locals) {
  SHW_ASSIGN_OR_RETURN(internal::MergedEntries merged, internal::merge_entries(locals));
  SetBuilder builder(locals);
  builder.add_tensors(&merged.tensors);
  builder.add_objects(merged.objects);
  return builder.take();
}

Digest128 world_key(std::span<const Digest128> keys) {
  return internal::plan_bytes_digest(std::as_bytes(keys));
}

Share key_share(const Digest128& key, const Digest128& world) {
  const std::array<Digest128, 2> hashed{key, world};
  return share_of(XXH3_128bits_withSeed(hashed.data(), sizeof(hashed), kKeySeed));
}

Share rank_share(const Digest128& key, const Digest128& world, const ReplicaSets& sets,
                 const ReplicaDigests& digests) {
  Share sum = key_share(key, world);
  for (const ReplicaSet& set : sets) {
    const Digest128 contents = digest_of_set(set, digests);
    sum += term(contents, world, set.number, set.position);
    const Share next = term(contents, world, set.number, (set.position + 1) % set.size);
    sum += Share{-next.first, -next.second};
  }
  return sum;
}

}  // namespace shardwright::plan
