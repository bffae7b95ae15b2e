// SPDX-License-Identifier: Apache-2.0
//
// Checksums, and the sets: the groups of the merge are walked in their order, which all ranks
// share.
#include "core/plan/save/replica_sets.h"

#include <algorithm>
#include <map>

#include <xxhash.h>

#include "core/integrity/digest.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/replica_contents_internal.h"

namespace shardwright::plan {
namespace {

constexpr uint64_t kKeySeed = 0x53485752414E4B31;   // of the hash of key and world
constexpr uint64_t kTermSeed = 0x5348575445524D31;  // of the terms of sets

Checksum checksum_of(const XXH128_hash_t& hash) {
  return {hash.low64, hash.high64};
}

// Contents of a set's entries on this rank.
Digest128 digest_of_set(const ReplicaSet& set, const ReplicaDigests& digests) {
  std::vector<Digest128> contents;
  contents.reserve(set.tensors.size() + set.objects.size());
  for (const uint32_t tensor : set.tensors) contents.push_back(digests.tensors[tensor]);
  for (const uint32_t object : set.objects) contents.push_back(digests.objects[object]);
  return integrity::xxh3_128(std::as_bytes(std::span(contents)));
}

// h(contents, position) in a set of a world.
Checksum term(const Digest128& contents, const Digest128& world, uint32_t set, uint32_t position) {
  struct {
    Digest128 contents;
    Digest128 world;
    uint32_t set;
    uint32_t position;
  } const hashed{contents, world, set, position};
  static_assert(sizeof(hashed) == 40);
  return checksum_of(XXH3_128bits_withSeed(&hashed, sizeof(hashed), kTermSeed));
}

// The sets of all ranks.
class SetBuilder {
 public:
  explicit SetBuilder(size_t rank_count) : ranks_(rank_count) {}

  // Those who hold the same make a set. Entries come in the order of the merge.
  void add(std::span<const internal::HeldContent> held,
           std::vector<uint32_t> ReplicaSet::* entries) {
    while (!held.empty()) {
      const auto end = std::ranges::find_if(
          held, [&](const internal::HeldContent& each) { return each.boxes != held[0].boxes; });
      const auto alike = held.first(static_cast<size_t>(end - held.begin()));
      if (alike.size() > 1) add_alike(alike, entries);
      held = held.subspan(alike.size());
    }
  }
  std::vector<ReplicaSets> take() { return std::move(ranks_); }

 private:
  void add_alike(std::span<const internal::HeldContent> alike,
                 std::vector<uint32_t> ReplicaSet::* entries) {
    holders_.clear();
    for (const internal::HeldContent& each : alike) holders_.push_back(each.rank);
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

  std::vector<ReplicaSets> ranks_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // holders -> number of their set
  std::vector<uint32_t> holders_;                      // scratch
};

}  // namespace

Result<std::vector<ReplicaSets>> replica_sets(const RankPlans& ranks) {
  SHW_ASSIGN_OR_RETURN(const internal::MergedEntries merged, internal::merge_entries(ranks));
  SetBuilder builder(ranks.rank_count());
  internal::RankContents contents(ranks, internal::ContentsOf::kAllRanks);
  for (size_t g = 0; g < merged.tensors.size(); ++g)
    builder.add(contents.of_tensor(merged.tensors.of(g)), &ReplicaSet::tensors);
  for (size_t g = 0; g < merged.objects.size(); ++g)
    builder.add(contents.of_object(merged.objects.of(g)), &ReplicaSet::objects);
  return builder.take();
}

Digest128 world_key(std::span<const Digest128> keys) {
  return integrity::xxh3_128(std::as_bytes(keys));
}

Checksum key_checksum(const Digest128& key, const Digest128& world) {
  const std::array<Digest128, 2> hashed{key, world};
  return checksum_of(XXH3_128bits_withSeed(hashed.data(), sizeof(hashed), kKeySeed));
}

Checksum rank_checksum(const Digest128& key, const Digest128& world, const ReplicaSets& sets,
                       const ReplicaDigests& digests) {
  Checksum sum = key_checksum(key, world);
  for (const ReplicaSet& set : sets) {
    const Digest128 contents = digest_of_set(set, digests);
    sum += term(contents, world, set.number, set.position);
    const Checksum next = term(contents, world, set.number, (set.position + 1) % set.size);
    sum += Checksum{-next.first, -next.second};
  }
  return sum;
}

}  // namespace shardwright::plan
