// SPDX-License-Identifier: Apache-2.0
//
// Routes and rounds of all ranks of drawn worlds: what one sends another expects, and nothing else.
#include "core/exec/exchange_routes_internal.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "core/exec/exchange_rounds_internal.h"
#include "tests/support/random_source.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kFileBytes = uint64_t{96} << 20;
constexpr uint32_t kFiles = 3;

using Place = std::tuple<uint32_t, uint64_t, uint32_t>;
Place place_of(const WantedBlock& block) {
  return {block.file, block.offset, block.length};
}

std::vector<format::FileInfo> files() {
  std::vector<format::FileInfo> files(kFiles);
  for (format::FileInfo& file : files) file.size_bytes = kFileBytes;
  return files;
}

// Nodes of one to three ranks; blocks that all want, or some.
std::vector<NodeWants> random_world(test::RandomSource& random, int32_t world) {
  std::vector<NodeWants> wants(static_cast<size_t>(world));
  for (int32_t rank = 0; rank < world;) {
    const auto end = std::min<int32_t>(world, rank + static_cast<int32_t>(random.between(1, 3)));
    for (const int32_t node = rank; rank < end; ++rank)
      wants[static_cast<size_t>(rank)].node = node;
  }
  for (uint32_t file = 0; file < kFiles; ++file) {
    uint64_t offset = static_cast<uint64_t>(random.between(0, 9000));
    while (offset < kFileBytes - (2 << 20)) {
      const auto length =
          static_cast<uint32_t>(random.chance(70) ? 1 << 20 : random.between(1, 1 << 20));
      const bool by_all = random.chance(50);
      for (NodeWants& each : wants) {
        if (by_all || random.chance(15)) each.blocks.push_back({offset, file, length});
      }
      offset += length + static_cast<uint64_t>(random.chance(80) ? 0 : random.between(0, 9000));
    }
  }
  return wants;
}

// As homes do it.
std::vector<RouteList> route_by_homes(const std::vector<NodeWants>& wants) {
  const auto world = static_cast<int32_t>(wants.size());
  std::vector<std::vector<RouteList>> answers(wants.size());
  for (int32_t home = 0; home < world; ++home) {
    std::vector<NodeWants> told(wants.size());
    for (size_t rank = 0; rank < wants.size(); ++rank) {
      std::vector<WantedBlock> blocks;
      for (const WantedBlock& block : wants[rank].blocks) {
        if (home_of(block, world) == home) blocks.push_back(block);
      }
      told[rank] = *decode_wants(encode_wants(wants[rank].node, blocks), world);
    }
    const std::vector<RouteList> routes = route_blocks(told);
    for (size_t rank = 0; rank < wants.size(); ++rank) {
      answers[rank].push_back(
          *decode_routes(encode_routes(routes[rank]), told[rank].blocks.size(), world));
    }
  }
  std::vector<RouteList> lists;
  for (size_t rank = 0; rank < wants.size(); ++rank)
    lists.push_back(in_order(wants[rank].blocks, answers[rank], world));
  return lists;
}

// Who wants a block, by node, and who takes it.
struct Seen {
  std::map<int32_t, std::set<int32_t>> by_node;
  std::map<int32_t, Route> of_rank;
  std::map<int32_t, std::vector<int32_t>> targets;
};

std::map<Place, Seen> look(const std::vector<NodeWants>& wants,
                           const std::vector<RouteList>& lists) {
  std::map<Place, Seen> seen;
  for (size_t r = 0; r < wants.size(); ++r) {
    const auto rank = static_cast<int32_t>(r);
    const int32_t* target = lists[r].targets.data();
    for (size_t b = 0; b < wants[r].blocks.size(); ++b) {
      Seen& block = seen[place_of(wants[r].blocks[b])];
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
    const std::vector<NodeWants> wants = random_world(random, world);
    for (const auto& lists : {route_by_homes(wants), route_blocks(wants)}) {
      for (const auto& [place, block] : look(wants, lists)) {
        check_block(block);
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "offset " << std::get<1>(place);
      }
    }
  }
}

TEST(ExchangeRoutes, RanksReadAndSendAboutTheSame) {
  constexpr int32_t kWorld = 40;
  NodeWants all;
  for (uint32_t file = 0; file < kFiles; ++file) {
    for (uint64_t block = 0; block < 320; ++block)
      all.blocks.push_back({block << 20, file, 1 << 20});
  }
  std::vector<NodeWants> wants(kWorld, all);
  for (int32_t rank = 0; rank < kWorld; ++rank) wants[static_cast<size_t>(rank)].node = rank;
  const std::vector<RouteList> lists = route_blocks(wants);
  for (int32_t rank = 0; rank < kWorld; ++rank) {
    const RouteList& list = lists[static_cast<size_t>(rank)];
    const auto reads = std::ranges::count(list.routes, Route::kStored, &Route::source);
    EXPECT_EQ(reads, 24) << rank;
    EXPECT_LE(list.targets.size(), 3 * all.blocks.size()) << rank;
  }
}

TEST(ExchangeRounds, WhatOneRankSendsAnotherExpectsInTheSameRound) {
  test::RandomSource random;
  for (int round = 0; round < 20; ++round) {
    const auto world = static_cast<int32_t>(random.between(2, 24));
    const std::vector<NodeWants> wants = random_world(random, world);
    const std::vector<RouteList> lists = route_by_homes(wants);
    const uint64_t span = uint64_t{1} << random.between(20, 25);
    using Way = std::tuple<int64_t, int32_t, int32_t>;  // round, from, to
    std::map<Way, std::vector<Place>> sent;
    std::map<Way, std::vector<Place>> expected;
    for (int32_t rank = 0; rank < world; ++rank) {
      const auto& blocks = wants[static_cast<size_t>(rank)].blocks;
      const ExchangeRounds made =
          make_rounds(blocks, lists[static_cast<size_t>(rank)], rank, files(), span);
      std::map<uint32_t, int64_t> here;
      for (const ExchangeRound& each : made.rounds) {
        for (const Transfer& out : each.departures) {
          ASSERT_EQ(here.at(out.block), each.number - 1) << "sent before it is here, or late";
          sent[{each.number, rank, out.rank}].push_back(place_of(blocks[out.block]));
        }
        for (const uint32_t block : each.reads) here[block] = each.number;
        for (const Transfer& in : each.arrivals) {
          here[in.block] = each.number;
          expected[{each.number, in.rank, rank}].push_back(place_of(blocks[in.block]));
        }
      }
      for (const auto& [block, number] : here) ASSERT_EQ(made.round_of[block], number);
    }
    ASSERT_EQ(sent, expected);
  }
}

TEST(ExchangeRoutes, RefusesWhatCannotBe) {
  const std::vector<WantedBlock> blocks{{0, 0, 10}, {10, 0, 10}};
  EXPECT_TRUE(decode_wants(encode_wants(1, blocks), 2).ok());
  EXPECT_FALSE(decode_wants(encode_wants(2, blocks), 2).ok()) << "no such node";
  EXPECT_FALSE(decode_wants(encode_wants(0, std::vector(2, blocks[0])), 2).ok()) << "twice";
  auto bytes = encode_wants(0, blocks);
  bytes.pop_back();
  EXPECT_FALSE(decode_wants(bytes, 2).ok()) << "cut";
  EXPECT_FALSE(decode_wants({}, 2).ok());

  const auto decodes = [](const Route& route, std::vector<int32_t> targets) {
    return decode_routes(encode_routes({{route}, std::move(targets)}), 1, 4).ok();
  };
  EXPECT_TRUE(decodes({0, Route::kStored, 0, 1}, {3}));
  EXPECT_TRUE(decodes({0, 2, 1, 0}, {}));
  EXPECT_TRUE(decodes({}, {}));
  EXPECT_FALSE(decodes({0, Route::kStored, 0, 1}, {})) << "no target";
  EXPECT_FALSE(decodes({0, Route::kStored, 0, 1}, {4})) << "no such rank";
  EXPECT_FALSE(decodes({0, Route::kStored, 0, 0}, {1})) << "too many";
  EXPECT_FALSE(decodes({4, Route::kStored, 0, 0}, {})) << "no such taker";
  EXPECT_FALSE(decodes({0, Route::kStored, 1, 0}, {})) << "a step without a source";
  EXPECT_FALSE(decodes({0, 1, 0, 0}, {})) << "a source without a step";
  EXPECT_FALSE(decodes({Route::kNobody, 1, 1, 0}, {})) << "a source without a taker";
  EXPECT_FALSE(decode_routes(encode_routes({}), 1, 4).ok()) << "none";
}

}  // namespace
}  // namespace shardwright::exec::internal
