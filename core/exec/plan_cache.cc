// SPDX-License-Identifier: Apache-2.0
#include "core/exec/plan_cache.h"

#include <algorithm>
#include <utility>

namespace shardwright::exec {
namespace {

uint64_t items_of(const plan::GlobalSavePlan& plan) {
  return plan.catalog.chunk_count() + plan.catalog.objects.size();
}

}  // namespace

PlanCache::World& PlanCache::bring_to_front(const Digest128& key) {
  const auto found = std::ranges::find(worlds_, key, &World::key);
  if (found == worlds_.end()) {
    worlds_.emplace_front().key = key;
  } else {
    std::rotate(worlds_.begin(), found, found + 1);
  }
  return worlds_.front();
}

void PlanCache::forget_what_is_too_much() {
  uint64_t items = 0;
  size_t kept = 0;
  while (kept < worlds_.size() && kept < kWorldsMax) {
    items += worlds_[kept].items;
    if (items > kItemsMax) break;
    ++kept;
  }
  worlds_.resize(kept);
}

std::shared_ptr<const RankMemory> PlanCache::find(const Digest128& key) {
  const MutexLock lock(mutex_);
  for (const World& world : worlds_) {
    const auto found = world.ranks.find(key);
    if (found == world.ranks.end()) continue;
    const std::shared_ptr<const RankMemory> memory = found->second;
    bring_to_front(memory->world);
    return memory;
  }
  return nullptr;
}

void PlanCache::keep(RankMemory memory) {
  auto kept = std::make_shared<const RankMemory>(std::move(memory));
  const MutexLock lock(mutex_);
  World& world = bring_to_front(kept->world);
  std::shared_ptr<const RankMemory>& place = world.ranks[kept->key];
  if (place == nullptr) world.items += kept->list.items.size();
  place = std::move(kept);
  forget_what_is_too_much();
}

std::shared_ptr<const WorldMemory> PlanCache::find(const plan::Checksum& sum) {
  const MutexLock lock(mutex_);
  for (const World& world : worlds_) {
    if (world.plan == nullptr || world.plan->expected != sum) continue;
    const std::shared_ptr<const WorldMemory> memory = world.plan;
    bring_to_front(memory->world);
    return memory;
  }
  return nullptr;
}

void PlanCache::keep(WorldMemory memory) {
  auto kept = std::make_shared<const WorldMemory>(std::move(memory));
  const MutexLock lock(mutex_);
  World& world = bring_to_front(kept->world);
  if (world.plan == nullptr) world.items += items_of(kept->plan);
  world.plan = std::move(kept);
  forget_what_is_too_much();
}

}  // namespace shardwright::exec
