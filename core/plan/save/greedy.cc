// SPDX-License-Identifier: Apache-2.0
//
// Sort once, then give each shard to the holder that has least.
#include "core/plan/save/greedy.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/plan/save/greedy_rule_internal.h"

namespace shardwright::plan {
namespace {

Status check_sets(const GreedyShards& shards) {
  if (shards.rank_count < 1 || shards.rank_count > kMaxWorldSize) {
    return invalid_argument(
        fmt::format("{} ranks are not 1 to {}", shards.rank_count, kMaxWorldSize));
  }
  const size_t sets = shards.set_offsets.empty() ? 0 : shards.set_offsets.size() - 1;
  for (size_t s = 0; s < sets; ++s) {
    const uint64_t begin = shards.set_offsets[s];
    const uint64_t end = shards.set_offsets[s + 1];
    if (end <= begin || end > shards.holders.size())
      return invalid_argument(fmt::format("set {} has holders {} to {}", s, begin, end));
    for (uint64_t h = begin; h < end; ++h) {
      const int32_t rank = shards.holders[h];
      if (rank < 0 || rank >= shards.rank_count || (h > begin && rank <= shards.holders[h - 1]))
        return invalid_argument(
            fmt::format("set {} has rank {}; ranks ascend below {}", s, rank, shards.rank_count));
    }
  }
  for (const uint32_t set : shards.sets) {
    if (set >= sets) return invalid_argument(fmt::format("there is no set {} of {}", set, sets));
  }
  uint64_t total = 0;
  for (const uint64_t weight : shards.weights) {
    if (!checked_add(total, weight, &total))
      return invalid_argument("the weights of all shards pass 2^64");
  }
  return {};
}

}  // namespace

Result<std::vector<int32_t>> choose_greedily(const GreedyShards& shards) {
  const size_t count = shards.sets.size();
  if (shards.weights.size() != count ||
      (!shards.secondary.empty() && shards.secondary.size() != count)) {
    return invalid_argument("the shards have columns of different lengths");
  }
  SHW_RETURN_IF_ERROR(check_sets(shards));
  const auto holders_of = [&shards](uint32_t i) {
    const uint64_t begin = shards.set_offsets[shards.sets[i]];
    return shards.holders.subspan(begin, shards.set_offsets[shards.sets[i] + 1] - begin);
  };
  const auto key_of = [&](uint32_t i) {
    const bool secondary = !shards.secondary.empty() && shards.secondary[i] != 0;
    return internal::greedy_key(secondary, holders_of(i).size(), shards.weights[i]);
  };
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, key_of);
  std::vector<int32_t> owners(count);
  std::vector<uint64_t> loads(static_cast<size_t>(shards.rank_count), 0);
  const auto load_of = [&loads](int32_t rank) { return loads[static_cast<size_t>(rank)]; };
  for (const uint32_t i : order) {
    const std::span<const int32_t> holders = holders_of(i);
    owners[i] = holders[internal::lightest_of(holders, load_of)];
    loads[static_cast<size_t>(owners[i])] += shards.weights[i];
  }
  return owners;
}

}  // namespace shardwright::plan
