// SPDX-License-Identifier: Apache-2.0
//
// PlanCache: what a runtime remembers of the plans of its last saves. A plan is a pure function of
// what all ranks describe, so it is found by content and can never be stale; a failed save leaves
// entries that are as right as before.
//
// The key of a rank is the digest of its local plan without content digests; the key of a world is
// the digest of the keys of its ranks in rank order. A rank that was planned in a world sends 16
// bytes at its next save: a checksum that depends on its key, the world and the contents of its
// replicas (replica_sets.h). The coordinator knows what the checksums of all ranks add up to when
// each of them describes what it did in that world and the replicas are equal; then the plan of the
// world is used again. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <unordered_map>

#include "core/concurrency/mutex.h"
#include "core/plan/save/replica_sets.h"
#include "core/plan/save_plan.h"

namespace shardwright::exec {

// What a rank keeps of a world that it was planned in.
struct RankMemory {
  Digest128 key{};
  Digest128 world{};
  plan::WriteList list;  // its generation means nothing
  plan::ReplicaSets sets;
};

// What the coordinator keeps of a world.
struct WorldMemory {
  Digest128 world{};
  plan::Checksum expected;    // sum of the checksums of all ranks
  plan::GlobalSavePlan plan;  // its generation means nothing
};

class PlanCache {
 public:
  static constexpr size_t kWorldsMax = 8;
  // Items of all plans and lists that are kept, about 1 GiB; older worlds go first.
  static constexpr uint64_t kItemsMax = uint64_t{1} << 24;

  // What the rank with this key keeps of the last world it was in, or null.
  std::shared_ptr<const RankMemory> find(const Digest128& key) SHW_EXCLUDES(mutex_);
  void keep(RankMemory memory) SHW_EXCLUDES(mutex_);
  // The world whose checksums add up to this, or null.
  std::shared_ptr<const WorldMemory> find(const plan::Checksum& sum) SHW_EXCLUDES(mutex_);
  void keep(WorldMemory memory) SHW_EXCLUDES(mutex_);

 private:
  struct HashOfDigest {
    size_t operator()(const Digest128& digest) const {
      size_t hash = 0;
      std::memcpy(&hash, digest.data(), sizeof(hash));
      return hash;
    }
  };
  // Memories are co-owned with the saves that found them.
  struct World {
    Digest128 key{};
    uint64_t items = 0;
    std::shared_ptr<const WorldMemory> plan;
    std::unordered_map<Digest128, std::shared_ptr<const RankMemory>, HashOfDigest> ranks;
  };

  // The world in front of all others; made when it is not there.
  World& bring_to_front(const Digest128& key) SHW_REQUIRES(mutex_);
  void forget_what_is_too_much() SHW_REQUIRES(mutex_);

  Mutex mutex_;
  std::deque<World> worlds_ SHW_GUARDED_BY(mutex_);  // the last used first
};

}  // namespace shardwright::exec
