// SPDX-License-Identifier: Apache-2.0
//
// Checksums, and the sets: the groups of the merge are walked in their order, which all ranks
// share.
#include "core/plan/save/replica_sets.h"

#include <xxhash.h>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/digest.h"
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
  return content_digest(std::as_bytes(std::span(contents)));
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

}  // namespace

Result<std::vector<ReplicaSets>> replica_sets(const RankPlans& ranks) {
  SHW_ASSIGN_OR_RETURN(const internal::MergedEntries merged, internal::merge_entries(ranks));
  internal::ReplicaSetBuilder builder(ranks.rank_count());
  internal::RankContents contents(ranks);
  std::vector<internal::HeldContent> held;
  for (size_t g = 0; g < merged.tensors.size(); ++g) {
    contents.collect_tensor(merged.tensors.of(g), &held);
    builder.add_tensor(held);
  }
  for (size_t g = 0; g < merged.objects.size(); ++g) {
    contents.collect_object(merged.objects.of(g), &held);
    builder.add_object(held);
  }
  return builder.take();
}

Digest128 world_key(std::span<const Digest128> keys) {
  return content_digest(std::as_bytes(keys));
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
