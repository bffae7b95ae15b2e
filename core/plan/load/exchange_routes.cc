// SPDX-License-Identifier: Apache-2.0
//
// One merge of the lists of all ranks; a decision for each run of blocks that the same ranks want.
#include "core/plan/load/exchange_routes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/plan/load/exchange_rounds.h"

namespace shardwright::plan {
namespace {

uint64_t run_of(const StoredBlock& block) {
  return block.position / kRunBytes;
}

// Spreads the runs over the ranks (a finaliser of 64 bits).
uint64_t mix(const StoredBlock& block) {
  uint64_t value = run_of(block) * 0x9E3779B97F4A7C15U + 1;
  value = (value ^ value >> 31) * 0xBF58476D1CE4E5B9U;
  return value ^ value >> 29;
}

// The lists of all ranks as one: each block with who wants it.
class WantsMerge {
 public:
  explicit WantsMerge(std::span<const WantList> wants) : wants_(wants), next_(wants.size(), 0) {
    for (size_t rank = 0; rank < wants.size(); ++rank) push(rank);
  }

  // False at the end. ranks ascend.
  bool next(StoredBlock* block, std::vector<int32_t>* ranks) {
    ranks->clear();
    if (heap_.empty()) return false;
    *block = head(heap_.front());
    while (!heap_.empty() && head(heap_.front()) == *block) {
      std::ranges::pop_heap(heap_, Later{*this});
      const size_t rank = heap_.back();
      heap_.pop_back();
      ranks->push_back(static_cast<int32_t>(rank));
      ++next_[rank];
      push(rank);
    }
    std::ranges::sort(*ranks);
    return true;
  }

 private:
  struct Later {
    const WantsMerge& merge;
    bool operator()(size_t a, size_t b) const { return merge.head(b) < merge.head(a); }
  };
  const StoredBlock& head(size_t rank) const { return wants_[rank].blocks[next_[rank]]; }
  void push(size_t rank) {
    if (next_[rank] == wants_[rank].blocks.size()) return;
    heap_.push_back(rank);
    std::ranges::push_heap(heap_, Later{*this});
  }

  const std::span<const WantList> wants_;
  std::vector<size_t> next_;
  std::vector<size_t> heap_;
};

class RouteMaker {
 public:
  explicit RouteMaker(std::span<const WantList> wants)
      : wants_(wants), plans_(wants.size()), read_(wants.size(), 0), taken_(wants.size(), 0) {
    for (size_t rank = 0; rank < wants.size(); ++rank) {
      plans_[rank].rank = static_cast<int32_t>(rank);
      plans_[rank].world_size = static_cast<int32_t>(wants.size());
      plans_[rank].generation = wants[rank].generation;
      plans_[rank].routes.reserve(wants[rank].blocks.size());
    }
  }

  void add(const StoredBlock& block, const std::vector<int32_t>& ranks) {
    const bool goes_on = has_last_ && run_of(block) == run_of(last_) && ranks == ranks_;
    if (!goes_on) decide(block, ranks);
    last_ = block;
    has_last_ = true;
    for (const int32_t rank : ranks) plans_[static_cast<size_t>(rank)].routes.emplace_back();
    if (takers_.size() < 2) return;
    for (size_t i = 0; i < ranks.size(); ++i) give_route(ranks[i], numbers_[i]);
    read_[static_cast<size_t>(takers_.front())] += block.length;
    for (const int32_t taker : takers_) taken_[static_cast<size_t>(taker)] += block.length;
  }

  std::vector<ExchangePlan> finish() { return std::move(plans_); }

 private:
  int32_t node_of(int32_t rank) const { return wants_[static_cast<size_t>(rank)].node; }

  // One taker per node; the first of them reads.
  void decide(const StoredBlock& block, const std::vector<int32_t>& ranks) {
    ranks_ = ranks;
    by_node_ = ranks;
    std::ranges::stable_sort(by_node_, {}, [this](int32_t rank) { return node_of(rank); });
    const uint64_t turn = mix(block) >> 32;
    takers_.clear();
    for (size_t begin = 0; begin < by_node_.size();) {
      size_t end = begin;
      while (end < by_node_.size() && node_of(by_node_[end]) == node_of(by_node_[begin])) ++end;
      const auto mates = std::span(by_node_).subspan(begin, end - begin);
      takers_.push_back(mates[least(mates, taken_, turn)]);
      begin = end;
    }
    const size_t reader = least(takers_, read_, turn);
    std::ranges::rotate(takers_, takers_.begin() + static_cast<ptrdiff_t>(reader));
    std::map<int32_t, size_t> number_of_node;
    for (size_t number = 0; number < takers_.size(); ++number)
      number_of_node[node_of(takers_[number])] = number;
    numbers_.clear();
    for (const int32_t rank : ranks) numbers_.push_back(number_of_node[node_of(rank)]);
  }

  // Of equal ones the first from the turn on, so that homes do not all choose the same.
  static size_t least(std::span<const int32_t> ranks, const std::vector<uint64_t>& bytes,
                      uint64_t turn) {
    size_t found = turn % ranks.size();
    for (size_t i = 1; i < ranks.size(); ++i) {
      const size_t at = (turn + i) % ranks.size();
      if (bytes[static_cast<size_t>(ranks[at])] < bytes[static_cast<size_t>(ranks[found])])
        found = at;
    }
    return found;
  }

  // The takers make a tree: that of number n sends to those of number n * kMostTargets + 1 and on.
  void give_route(int32_t rank, size_t number) {
    ExchangePlan& plan = plans_[static_cast<size_t>(rank)];
    Route& route = plan.routes.back();
    route.taker = takers_[number];
    if (rank == route.taker) {
      const TargetNumbers targets = targets_of(number, takers_.size());
      for (size_t i = targets.begin; i < targets.end; ++i) plan.targets.push_back(takers_[i]);
      route.targets = static_cast<uint32_t>(targets.end - targets.begin);
    }
    if (number > 0) route.source = takers_[(number - 1) / kMostTargets];
    for (; number > 0; number = (number - 1) / kMostTargets) ++route.step;
  }

  const std::span<const WantList> wants_;
  std::vector<ExchangePlan> plans_;
  std::vector<uint64_t> read_;
  std::vector<uint64_t> taken_;
  // The last decision.
  bool has_last_ = false;
  StoredBlock last_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> by_node_;
  std::vector<int32_t> takers_;
  std::vector<size_t> numbers_;  // of ranks_, that of the taker of their node
};

Status wrong_wants(size_t rank, std::string_view why) {
  return invalid_argument(fmt::format("what rank {} wants {}", rank, why))
      .with_detail("rank", fmt::to_string(rank));
}

Status check_wants(std::span<const WantList> wants) {
  for (size_t rank = 0; rank < wants.size(); ++rank) {
    const WantList& each = wants[rank];
    if (std::cmp_not_equal(each.rank, rank))
      return wrong_wants(rank, fmt::format("is that of rank {}", each.rank));
    if (std::cmp_not_equal(each.world_size, wants.size()))
      return wrong_wants(rank,
                         fmt::format("is of {} ranks, here are {}", each.world_size, wants.size()));
    if (each.generation != wants[0].generation)
      return wrong_wants(rank, "is of another generation than that of rank 0");
  }
  return {};
}

// Those of all ranks. Whether each of them fits its rank.
bool find_rounds(std::span<const WantList> wants, std::span<const ExchangePlan> plans,
                 uint64_t span_bytes, std::set<uint64_t>* rounds) {
  bool fits = true;
  rounds->clear();
  for (size_t rank = 0; rank < wants.size(); ++rank) {
    const WantList& each = wants[rank];
    for (const ExchangeRound& round : make_rounds(each.blocks, plans[rank], span_bytes).rounds) {
      rounds->insert(static_cast<uint64_t>(round.number));
      fits =
          fits && (each.round_bytes == 0 || largest_part(round, each.blocks) <= each.round_bytes);
    }
  }
  return fits;
}

}  // namespace

TargetNumbers targets_of(size_t number, size_t takers) {
  const size_t begin = std::min(number * kMostTargets + 1, takers);
  return {begin, std::min(begin + kMostTargets, takers)};
}

int32_t home_of(const StoredBlock& block, int32_t world_size) {
  return static_cast<int32_t>(mix(block) % static_cast<uint64_t>(world_size));
}

std::vector<ExchangePlan> route_blocks(std::span<const WantList> wants) {
  WantsMerge merge(wants);
  RouteMaker maker(wants);
  StoredBlock block;
  std::vector<int32_t> ranks;
  while (merge.next(&block, &ranks)) maker.add(block, ranks);
  return maker.finish();
}

Result<ExchangePlan> join_answers(std::span<const StoredBlock> blocks,
                                  std::span<const ExchangePlan> by_home, int32_t rank) {
  const auto unsound = [](size_t home) {
    return data_loss(fmt::format("rank {} has not said how each block comes", home));
  };
  ExchangePlan plan;
  plan.rank = rank;
  plan.world_size = static_cast<int32_t>(by_home.size());
  plan.routes.reserve(blocks.size());
  std::vector<size_t> next(by_home.size(), 0);
  std::vector<size_t> next_target(by_home.size(), 0);
  for (const StoredBlock& block : blocks) {
    const auto home = static_cast<size_t>(home_of(block, plan.world_size));
    const ExchangePlan& answer = by_home[home];
    if (answer.rank != rank || answer.world_size != plan.world_size ||
        next[home] == answer.routes.size() ||
        answer.routes[next[home]].targets > answer.targets.size() - next_target[home])
      return unsound(home);
    const Route& route = plan.routes.emplace_back(answer.routes[next[home]++]);
    const auto targets = answer.targets.begin() + static_cast<ptrdiff_t>(next_target[home]);
    plan.targets.insert(plan.targets.end(), targets, targets + route.targets);
    next_target[home] += route.targets;
  }
  for (size_t home = 0; home < by_home.size(); ++home) {
    if (next[home] != by_home[home].routes.size()) return unsound(home);
  }
  return plan;
}

Result<std::vector<ExchangePlan>> make_exchange_plans(std::span<const WantList> wants) {
  SHW_RETURN_IF_ERROR(check_wants(wants));
  std::vector<ExchangePlan> plans = route_blocks(wants);
  uint64_t span = kMostSpanBytes;
  for (const WantList& each : wants) {
    if (each.round_bytes > 0) span = std::min(span, each.round_bytes);
  }
  span = std::max(span, kLeastSpanBytes);
  std::set<uint64_t> rounds;
  while (!find_rounds(wants, plans, span, &rounds) && span > kLeastSpanBytes)
    span = std::max(span / 2, kLeastSpanBytes);
  for (ExchangePlan& plan : plans) {
    plan.span_bytes = span;
    plan.rounds.assign(rounds.begin(), rounds.end());
  }
  return plans;
}

}  // namespace shardwright::plan
