// SPDX-License-Identifier: Apache-2.0
//
// Routes and rounds of all ranks of drawn worlds: what one sends another expects, and nothing else.
#include "core/plan/load/exchange_routes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "core/plan/load/exchange_rounds.h"
#include "core/plan/wire/wire.h"
#include "tests/support/random_source.h"

namespace shardwright::plan {
namespace {

constexpr uint64_t kPayloadBytes = uint64_t{288} << 20;

// Nodes of one to three ranks; blocks that all want, or some.
std::vector<WantList> random_world(test::RandomSource& random, int32_t world) {
  std::vector<WantList> wants(static_cast<size_t>(world));
  for (int32_t rank = 0; rank < world; ++rank) {
    wants[static_cast<size_t>(rank)].rank = rank;
    wants[static_cast<size_t>(rank)].world_size = world;
  }
  for (int32_t rank = 0; rank < world;) {
    const auto end = std::min<int32_t>(world, rank + static_cast<int32_t>(random.between(1, 3)));
    for (const int32_t node = rank; rank < end; ++rank)
      wants[static_cast<size_t>(rank)].node = node;
  }
  uint64_t position = static_cast<uint64_t>(random.between(0, 9000));
  while (position < kPayloadBytes - (2 << 20)) {
    const auto length =
        static_cast<uint64_t>(random.chance(70) ? 1 << 20 : random.between(1, 1 << 20));
    const bool by_all = random.chance(50);
    for (WantList& each : wants) {
      if (by_all || random.chance(15)) each.blocks.push_back({position, length});
    }
    position += length + static_cast<uint64_t>(random.chance(80) ? 0 : random.between(0, 9000));
  }
  return wants;
}

template <typename Plan>
Plan travelled(const Plan& plan) {
  return *decode<Plan>(*encode(plan));
}

// As homes do it.
std::vector<ExchangePlan> route_by_homes(const std::vector<WantList>& wants) {
  const auto world = static_cast<int32_t>(wants.size());
  std::vector<std::vector<ExchangePlan>> answers(wants.size());
  for (int32_t home = 0; home < world; ++home) {
    std::vector<WantList> told;
    for (const WantList& each : wants) {
      WantList part = each;
      std::erase_if(part.blocks,
                    [&](const StoredBlock& block) { return home_of(block, world) != home; });
      told.push_back(travelled(part));
    }
    const std::vector<ExchangePlan> routes = route_blocks(told);
    for (size_t rank = 0; rank < wants.size(); ++rank)
      answers[rank].push_back(travelled(routes[rank]));
  }
  std::vector<ExchangePlan> plans;
  for (size_t rank = 0; rank < wants.size(); ++rank) {
    plans.push_back(*join_answers(wants[rank].blocks, answers[rank], static_cast<int32_t>(rank)));
  }
  return plans;
}

// Who wants a block, by node, and who takes it.
struct Seen {
  std::map<int32_t, std::set<int32_t>> by_node;
  std::map<int32_t, Route> of_rank;
  std::map<int32_t, std::vector<int32_t>> targets;
};

std::map<StoredBlock, Seen> look(const std::vector<WantList>& wants,
                                 const std::vector<ExchangePlan>& lists) {
  std::map<StoredBlock, Seen> seen;
  for (size_t r = 0; r < wants.size(); ++r) {
    const auto rank = static_cast<int32_t>(r);
    const int32_t* target = lists[r].targets.data();
    for (size_t b = 0; b < wants[r].blocks.size(); ++b) {
      Seen& block = seen[wants[r].blocks[b]];
      const Route& route = lists[r].routes[b];
      block.by_node[wants[r].node].insert(rank);
      block.of_rank[rank] = route;
      block.targets[rank].assign(target, target + route.targets);
      target += route.targets;
    }
  }
  return seen;
}

void check_block(const Seen& block) {
  std::map<int32_t, Route> takers;
  for (const auto& [rank, route] : block.of_rank) {
    ASSERT_EQ(route.is_exchanged(), block.by_node.size() > 1);
    if (route.taker == rank) takers[rank] = route;
    ASSERT_TRUE(route.taker == rank || block.targets.at(rank).empty());
  }
  if (block.by_node.size() < 2) return;
  ASSERT_EQ(takers.size(), block.by_node.size());
  for (const auto& [node, ranks] : block.by_node) {
    for (const int32_t rank : ranks) {
      ASSERT_TRUE(ranks.contains(block.of_rank.at(rank).taker));
      ASSERT_EQ(block.of_rank.at(rank).taker, block.of_rank.at(*ranks.begin()).taker);
      ASSERT_EQ(block.of_rank.at(rank).step, block.of_rank.at(*ranks.begin()).step);
    }
  }
  std::map<int32_t, int32_t> source_of;
  for (const auto& [rank, route] : takers) {
    ASSERT_LE(block.targets.at(rank).size(), kMostTargets);
    for (const int32_t target : block.targets.at(rank)) {
      ASSERT_TRUE(source_of.emplace(target, rank).second) << "sent twice";
      ASSERT_EQ(takers.at(target).source, rank);
      ASSERT_EQ(takers.at(target).step, route.step + 1);
    }
  }
  ASSERT_EQ(source_of.size() + 1, takers.size());
  ASSERT_EQ(std::ranges::count_if(
                takers, [](const auto& each) { return each.second.source == Route::kStored; }),
            1);
}

TEST(ExchangeRoutes, EveryNodeGetsWhatSeveralWantFromOneReader) {
  test::RandomSource random;
  for (int round = 0; round < 30; ++round) {
    const auto world = static_cast<int32_t>(random.between(1, 24));
    const std::vector<WantList> wants = random_world(random, world);
    for (const auto& lists : {route_by_homes(wants), route_blocks(wants)}) {
      for (const auto& [place, block] : look(wants, lists)) {
        check_block(block);
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "offset " << place.position;
      }
    }
  }
}

TEST(ExchangeRoutes, RanksReadAndSendAboutTheSame) {
  constexpr int32_t kWorld = 40;
  WantList all;
  for (uint64_t block = 0; block < 960; ++block) all.blocks.push_back({block << 20, 1 << 20});
  std::vector<WantList> wants(kWorld, all);
  for (int32_t rank = 0; rank < kWorld; ++rank) wants[static_cast<size_t>(rank)].node = rank;
  const std::vector<ExchangePlan> lists = route_blocks(wants);
  for (int32_t rank = 0; rank < kWorld; ++rank) {
    const ExchangePlan& list = lists[static_cast<size_t>(rank)];
    const auto reads = std::ranges::count(list.routes, Route::kStored, &Route::source);
    EXPECT_EQ(reads, 24) << rank;
    EXPECT_LE(list.targets.size() * 2, 3 * all.blocks.size()) << rank;
  }
}

TEST(ExchangeRounds, WhatOneRankSendsAnotherExpectsInTheSameRound) {
  test::RandomSource random;
  for (int round = 0; round < 20; ++round) {
    const auto world = static_cast<int32_t>(random.between(2, 24));
    const std::vector<WantList> wants = random_world(random, world);
    const std::vector<ExchangePlan> lists = route_by_homes(wants);
    const uint64_t span = uint64_t{1} << random.between(20, 25);
    using Way = std::tuple<int64_t, int32_t, int32_t>;  // round, from, to
    std::map<Way, std::vector<StoredBlock>> sent;
    std::map<Way, std::vector<StoredBlock>> expected;
    for (int32_t rank = 0; rank < world; ++rank) {
      const auto& blocks = wants[static_cast<size_t>(rank)].blocks;
      const ExchangeRounds made = make_rounds(blocks, lists[static_cast<size_t>(rank)], span);
      std::map<uint32_t, int64_t> here;
      for (const ExchangeRound& each : made.rounds) {
        for (const Transfer& out : each.departures) {
          ASSERT_EQ(here.at(out.block), each.number - 1) << "sent before it is here, or late";
          sent[{each.number, rank, out.rank}].push_back(blocks[out.block]);
        }
        for (const uint32_t block : each.reads) here[block] = each.number;
        for (const Transfer& in : each.arrivals) {
          here[in.block] = each.number;
          expected[{each.number, in.rank, rank}].push_back(blocks[in.block]);
        }
      }
      for (const auto& [block, number] : here) ASSERT_EQ(made.round_of[block], number);
    }
    ASSERT_EQ(sent, expected);
  }
}

TEST(ExchangePlans, KnowEveryRoundInWhichARankHasWork) {
  test::RandomSource random;
  std::vector<WantList> wants = random_world(random, 9);
  for (WantList& each : wants) each.round_bytes = 3 << 20;
  wants[4].round_bytes = 2 << 20;
  const Result<std::vector<ExchangePlan>> plans = make_exchange_plans(wants);
  ASSERT_TRUE(plans.ok());
  std::set<uint64_t> rounds;
  for (size_t rank = 0; rank < wants.size(); ++rank) {
    const ExchangePlan plan = travelled((*plans)[rank]);
    EXPECT_LE(plan.span_bytes, 2U << 20) << "of the least budget";
    EXPECT_EQ(plan.rounds, plans->front().rounds);
    for (const auto& round : make_rounds(wants[rank].blocks, plan, plan.span_bytes).rounds)
      rounds.insert(static_cast<uint64_t>(round.number));
  }
  EXPECT_TRUE(std::ranges::equal(rounds, plans->front().rounds));
}

TEST(ExchangePlans, AreOfAllRanksAndOneGeneration) {
  test::RandomSource random;
  const std::vector<WantList> sound = random_world(random, 3);
  const auto refused = [&](auto&& change) {
    std::vector<WantList> wants = sound;
    change(wants);
    const auto plans = make_exchange_plans(wants);
    return plans.status().code() == StatusCode::kInvalidArgument &&
           !plans.status().detail("rank").empty();
  };
  EXPECT_TRUE(refused([](auto& wants) { std::swap(wants[0], wants[1]); }));
  EXPECT_TRUE(refused([](auto& wants) { wants.pop_back(); }));
  EXPECT_TRUE(refused([](auto& wants) { wants[2].generation = std::string(32, '0'); }));
}

TEST(ExchangeRoutes, HomesAnswerForEachBlock) {
  const std::vector<StoredBlock> blocks{{0, 10}};
  std::vector<ExchangePlan> answers(3);
  for (ExchangePlan& answer : answers) answer.world_size = 3;
  EXPECT_EQ(join_answers(blocks, answers, 0).status().code(), StatusCode::kDataLoss) << "none";
  answers[static_cast<size_t>(home_of(blocks[0], 3))].routes.emplace_back();
  EXPECT_TRUE(join_answers(blocks, answers, 0).ok());
  EXPECT_EQ(join_answers(blocks, answers, 1).status().code(), StatusCode::kDataLoss) << "another's";
  for (ExchangePlan& answer : answers) answer.routes.resize(2);
  EXPECT_EQ(join_answers(blocks, answers, 0).status().code(), StatusCode::kDataLoss) << "too many";
}

}  // namespace
}  // namespace shardwright::plan
