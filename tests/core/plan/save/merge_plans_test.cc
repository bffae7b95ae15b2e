// SPDX-License-Identifier: Apache-2.0
//
// Merging of descriptions: the choices and numbers of the three originals, as tables.
#include <numeric>

#include <gtest/gtest.h>

#include "core/plan/describe/entry_columns.h"
#include "core/plan/save/global_plan.h"
#include "tests/core/plan/described.h"

namespace shardwright::plan::test {
namespace {

using Names = std::vector<std::string>;

constexpr Preset kPresets[] = {Preset(0), Preset(1), Preset(2), Preset(3)};
const MergeRules kHyperparallelExact = rules_of(Preset::kHyperparallel, OwnerRule::kExact);
const MergeRules kHyperparallelLowest = rules_of(Preset::kHyperparallel, OwnerRule::kLowestRank);
const MergeRules kTorchExact = rules_of(Preset::kTorch, OwnerRule::kExact);
const MergeRules kTorchLowest = rules_of(Preset::kTorch, OwnerRule::kLowestRank);
const MergeRules kMegatronExact = rules_of(Preset::kMegatron, OwnerRule::kExact);

// Four ranks on a mesh (2, 2): a is split by the first axis, b by both, the rest is replicated.
Ranks mesh_world() {
  Ranks ranks;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t i = r / 2;
    const int64_t j = r % 2;
    ranks.push_back({shard("a", {8, 4}, {4 * i, 0}, {4, 4}),
                     shard("b", {8, 4}, {4 * i, 2 * j}, {4, 2}), tensor("c", {3, 3}),
                     object("step"), tensor("s0", {})});
  }
  return ranks;
}

std::vector<Names> texts_of(const Ranks& ranks, const MergeRules& rules) {
  const std::vector<PlanBytes> plans = described(ranks);
  const Result<PlanParts> parts = merged(plans, rules);
  EXPECT_TRUE(parts.ok()) << parts.status().to_string();
  std::vector<Names> texts;
  for (size_t r = 0; parts.ok() && r < ranks.size(); ++r)
    texts.push_back(kept_texts(plans[r], parts->numbers(1 + r)));
  return texts;
}

// hyperparallel-planner 14.3, V1.
TEST(MergePlans, StandardChoosesSinglesFirstAndThenAsListed) {
  EXPECT_EQ(texts_of(mesh_world(), kHyperparallelExact),
            (std::vector<Names>{{"a[0:4, 0:4]=0", "b[0:4, 0:2]=0"},
                                {"b[0:4, 2:4]=1", "c[0:3, 0:3]=0"},
                                {"a[4:8, 0:4]=1", "b[4:8, 0:2]=2", "step"},
                                {"b[4:8, 2:4]=3", "s0[]=0"}}));
  EXPECT_EQ(
      texts_of(mesh_world(), kHyperparallelLowest),
      (std::vector<Names>{{"a[0:4, 0:4]=0", "b[0:4, 0:2]=0", "c[0:3, 0:3]=0", "step", "s0[]=0"},
                          {"b[0:4, 2:4]=1"},
                          {"a[4:8, 0:4]=1", "b[4:8, 0:2]=2"},
                          {"b[4:8, 2:4]=3"}}));
}

TEST(MergePlans, AllHoldersWriteWhenNothingIsRemoved) {
  MergeRules rules = rules_of(Preset::kHyperparallel, OwnerRule::kAll, CoverRule::kFull);
  const std::vector<PlanBytes> plans = described(mesh_world());
  const Result<PlanParts> parts = merged(plans, rules);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  const GlobalSavePlan plan = merged_plan(*parts);
  std::vector<std::string> boxes;
  for (size_t c = 0; c < plan.catalog.chunk_count(); ++c) {
    if (plan.catalog.tensor_name(plan.catalog.tensor_of(c)) == "a")
      boxes.push_back(box_text(plan.catalog.chunk_box(c)));
  }
  EXPECT_EQ(boxes, (Names{"[0:4, 0:4]", "[0:4, 0:4]", "[4:8, 0:4]", "[4:8, 0:4]"}));
  EXPECT_EQ(plan.catalog.objects.size(), 1U);
  for (size_t r = 0; r < 4; ++r) {
    const std::span<const uint32_t> kept = parts->numbers(1 + r);
    EXPECT_EQ(kept_names(plans[r], kept), (Names{"a", "b", "c", "step", "s0"}));
    EXPECT_EQ(kept_texts(plans[r], kept)[2], fmt::format("c[0:3, 0:3]={}", r));
  }
}

// V2 and V3.
TEST(MergePlans, StandardWeighsObjectsAndEmptyBoxesAsOne) {
  Ranks replicas(4);
  for (std::vector<Listed>& rank : replicas) {
    for (int i = 0; i < 6; ++i) rank.push_back(tensor(fmt::format("t{}", i), {4, 4}));
    rank.push_back(object("step"));
    rank.push_back(object("lr"));
  }
  EXPECT_EQ(kept_by_rank(replicas, kHyperparallelExact),
            (Kept{{"t0", "t4"}, {"t1", "t5"}, {"t2", "step"}, {"t3", "lr"}}));
  const Listed big = tensor("big", {100});
  const Listed u = tensor("u", {5});
  const Listed x = tensor("x", {0});
  const Listed y = tensor("y", {10});
  const Listed z = object("z");
  const Ranks uneven = {{big, x, y, z}, {u, x, y, z}, {x, y, z}};
  EXPECT_EQ(kept_by_rank(uneven, kHyperparallelExact), (Kept{{"big"}, {"u", "z"}, {"x", "y"}}));
  EXPECT_EQ(kept_by_rank(uneven, kHyperparallelLowest), (Kept{{"big", "x", "y", "z"}, {"u"}, {}}));
}

// The rank that keeps the only entry, which these ranks of a world hold.
size_t keeper(size_t world, const std::vector<size_t>& holders, const MergeRules& rules) {
  Ranks ranks(world);
  for (const size_t holder : holders) ranks[holder].push_back(tensor("r", {4}));
  const Kept kept = kept_by_rank(ranks, rules);
  for (size_t r = 0; r < kept.size(); ++r) {
    if (!kept[r].empty()) return r;
  }
  return world;
}

// V4 of HyperParallel as decided for us; the last row of torch's table with its own ties.
TEST(MergePlans, TiesGoToTheLowestRankOrToTheFirstOfAPythonSet) {
  EXPECT_EQ(keeper(16, {7, 15}, kHyperparallelExact), 7U);
  EXPECT_EQ(keeper(16, {3, 7, 11, 15}, kHyperparallelExact), 3U);
  EXPECT_EQ(keeper(9, {1, 8}, kTorchExact), 8U);
  EXPECT_EQ(keeper(16, {3, 7, 11, 15}, kTorchExact), 11U);
  EXPECT_EQ(keeper(33, {31, 32}, kTorchExact), 32U);
  EXPECT_EQ(keeper(9, {1, 8}, kTorchLowest), 1U);
}

// V5.
TEST(MergePlans, RefusesBoxesAndDTypesThatDifferNamingBothRanks) {
  const Ranks sizes = {{shard("w", {4, 4}, {0, 0}, {4, 4})}, {shard("w", {4, 4}, {0, 0}, {4, 2})}};
  EXPECT_FAILURE(merged(described(sizes), kHyperparallelExact).status(),
                 StatusCode::kInvalidArgument, "'w'", "rank 0", "rank 1", "[0:4, 0:2]");
  Listed half = tensor("w", {4});
  half.dtype = DType::kBfloat16;
  const Ranks dtypes = {{tensor("w", {4})}, {half}};
  EXPECT_FAILURE(merged(described(dtypes), kHyperparallelExact).status(),
                 StatusCode::kInvalidArgument, "float32 on rank 0", "bfloat16 on rank 1");
  const Ranks types = {{tensor("w", {4})}, {object("w")}};
  EXPECT_FAILURE(merged(described(types), kTorchExact).status(), StatusCode::kInvalidArgument,
                 "tensor on rank 0", "object on rank 1");
  const Ranks twice = {{{"w", {4}, {box({0}, {4}), box({0}, {4})}}}};
  EXPECT_FAILURE(merged(described(twice), kHyperparallelExact).status(),
                 StatusCode::kInvalidArgument, "twice");
}

// torch-dcp 4.5.
TEST(MergePlans, DefaultChoosesAsListedByBytesOfTheWholeTensor) {
  const std::vector<Listed> same = {tensor("a", {8}), tensor("b", {4}), tensor("c", {16}),
                                    tensor("d", {2}), tensor("e", {}),  object("o")};
  const Ranks ranks(4, same);
  EXPECT_EQ(kept_by_rank(ranks, kTorchExact), (Kept{{"a"}, {"b"}, {"c"}, {"d", "e", "o"}}));
  EXPECT_EQ(kept_by_rank(ranks, kTorchLowest), (Kept{{"a", "b", "c", "d", "e", "o"}, {}, {}, {}}));
  Ranks shards;
  for (int64_t r = 0; r < 4; ++r)
    shards.push_back({shard("s", {100}, {25 * r}, {25}), tensor("x", {10}), tensor("y", {10})});
  EXPECT_EQ(kept_by_rank(shards, kTorchExact), (Kept{{"s"}, {"s", "x"}, {"s", "y"}, {"s"}}));
  std::rotate(shards[0].begin(), shards[0].begin() + 1, shards[0].end());
  EXPECT_EQ(kept_by_rank(shards, kTorchExact), (Kept{{"x", "s"}, {"s", "y"}, {"s"}, {"s"}}));
}

// torch-dcp 4.2 and 4.4: empty shards share an index, and an item that one rank lists twice stays.
TEST(MergePlans, DefaultKnowsBoxesByTheirOffsets) {
  const Listed x = shard("x", {4}, {0}, {4});
  Listed doubled = x;
  doubled.boxes.push_back(x.boxes[0]);
  EXPECT_EQ(kept_by_rank({{doubled}, {x}}, kTorchExact), (Kept{{"x", "x"}, {}}));
  Ranks ranks;
  for (int64_t r = 0; r < 4; ++r)
    ranks.push_back({shard("w", {2}, {std::min<int64_t>(r, 2)}, {r < 2 ? 1 : 0})});
  const std::vector<Names> kept = texts_of(ranks, kTorchExact);
  EXPECT_EQ(kept, (std::vector<Names>{{"w[0:1]=0"}, {"w[1:2]=1"}, {"w[2:2]=2"}, {}}));
}

// Boxes that begin alike are one: what is stored is what its owner lists.
TEST(MergePlans, DefaultStoresTheBoxOfItsOwner) {
  const Ranks ranks = {{tensor("heavy", {100}), shard("w", {4, 2}, {0, 0}, {0, 2})},
                       {shard("w", {4, 2}, {0, 0}, {4, 1}), shard("w2", {4, 2}, {0, 0}, {4, 2})},
                       {shard("w", {4, 2}, {0, 1}, {4, 1})}};
  const Result<PlanParts> parts =
      merged(described(ranks), rules_of(Preset::kTorch, OwnerRule::kExact, CoverRule::kFull));
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  const Catalog catalog = merged_plan(*parts).catalog;
  ASSERT_EQ(catalog.tensor_name(1), "w");
  const TensorRecord& w = catalog.tensors[1];
  ASSERT_EQ(w.chunk_count, 2U);
  EXPECT_EQ(catalog.chunk_box(w.chunk_begin), box({0, 0}, {4, 1}));
  EXPECT_EQ(catalog.chunk_box(w.chunk_begin + 1), box({0, 1}, {4, 1}));
  EXPECT_EQ(catalog.place_of(w.chunk_begin), 1U);
}

TEST(MergePlans, EntriesComeInTheOrderOfTheFirstKeptItem) {
  const Ranks ranks = {{tensor("x", {1}), object("o"), tensor("y", {1})},
                       {tensor("y", {1}), tensor("x", {1}), object("p")}};
  const Result<PlanParts> parts = merged(described(ranks), kTorchExact);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  const GlobalSavePlan plan = merged_plan(*parts);
  const EntryColumns columns(plan);
  const EntryArrays arrays = columns.arrays();
  Names names;
  for (size_t i = 0; i < arrays.count; ++i) names.emplace_back(arrays.names.at(i));
  EXPECT_EQ(names, (Names{"x", "o", "y", "p"}));
}

// "a[0:4]@1" per box of the merged plan, with the rank that writes it, tensor by tensor.
Names merged_boxes(const GlobalSavePlan& plan) {
  Names texts;
  for (size_t t = 0; t < plan.catalog.tensors.size(); ++t) {
    const TensorRecord& tensor = plan.catalog.tensors[t];
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      EXPECT_EQ(plan.catalog.tensor_of(c), t);
      texts.push_back(fmt::format("{}{}@{}", plan.catalog.tensor_name(t),
                                  box_text(plan.catalog.chunk_box(c)), plan.catalog.place_of(c)));
    }
  }
  return texts;
}

TEST(MergePlans, BoxesFollowTheirTensorsInTheOrderOfTheHost) {
  Listed b0 = shard("b", {6}, {0}, {1});
  b0.boxes.push_back(box({1}, {2}));
  Listed d0 = shard("d", {2, 2, 2}, {0, 0, 0}, {1, 1, 1});
  d0.boxes.push_back(box({0, 0, 1}, {1, 1, 1}));
  d0.boxes.push_back(box({0, 1, 0}, {1, 1, 2}));
  Listed c1 = shard("c", {4, 4}, {2, 0}, {2, 1});
  c1.boxes.push_back(box({2, 1}, {2, 3}));
  const std::vector<Listed> first = {shard("a", {5}, {0}, {2}), b0,
                                     shard("c", {4, 4}, {0, 0}, {2, 4}), d0};
  const std::vector<Listed> second = {shard("a", {5}, {2}, {3}), shard("b", {6}, {3}, {3}), c1,
                                      shard("d", {2, 2, 2}, {1, 0, 0}, {1, 2, 2})};
  const Names a = {"a[0:2]@0", "a[2:5]@1"};
  const Names b = {"b[0:1]@0", "b[1:3]@0", "b[3:6]@1"};
  const Names c = {"c[0:2, 0:4]@0", "c[2:4, 0:1]@1", "c[2:4, 1:4]@1"};
  const Names d = {"d[0:1, 0:1, 0:1]@0", "d[0:1, 0:1, 1:2]@0", "d[0:1, 1:2, 0:2]@0",
                   "d[1:2, 0:2, 0:2]@1"};
  struct Case {
    std::vector<uint64_t> order;  // of the first rank: a, b, b, c, d, d, d are its boxes
    std::vector<Names> tensors;
  };
  for (const Case& each :
       {Case{{}, {a, b, c, d}}, Case{{4, 5, 6, 3, 1, 2, 0}, {d, c, b, a}},
        Case{{0, 3, 1, 2, 4, 5, 6}, {a, c, b, d}}, Case{{1, 2, 4, 5, 6, 0, 3}, {b, d, a, c}}}) {
    const std::vector<PlanBytes> plans = {described(first, {0, 2}, each.order),
                                          described(second, {1, 2})};
    const Result<PlanParts> parts = merged(plans, kTorchExact);
    ASSERT_TRUE(parts.ok()) << parts.status().to_string();
    Names expected;
    for (const Names& texts : each.tensors)
      expected.insert(expected.end(), texts.begin(), texts.end());
    EXPECT_EQ(merged_boxes(merged_plan(*parts)), expected);
  }
}

// megatron 9.1.
TEST(MergePlans, MegatronGivesTheRarestAndLargestFirst) {
  const auto bytes = [](std::string name, int64_t count) {
    Listed listed = tensor(std::move(name), {count});
    listed.dtype = DType::kInt8;
    return listed;
  };
  const std::vector<Listed> three = {bytes("a", 4), bytes("b", 4), bytes("c", 4)};
  EXPECT_EQ(kept_by_rank({three, three}, kMegatronExact), (Kept{{"a", "c"}, {"b"}}));
  const Listed a = bytes("a", 10);
  const Listed b = bytes("b", 5);
  const Listed c = bytes("c", 1);
  const Listed d = bytes("d", 10);
  EXPECT_EQ(kept_by_rank({{a, d}, {a, b, d}, {a, b, c, d}}, kMegatronExact),
            (Kept{{"a"}, {"b"}, {"c", "d"}}));
  const std::vector<Listed> empty = {bytes("a", 0), bytes("b", 0), bytes("c", 5), bytes("d", 5)};
  EXPECT_EQ(kept_by_rank({empty, empty}, kMegatronExact), (Kept{{"c"}, {"d"}}));
  Listed cross = bytes("b", 8);
  cross.secondary = true;
  EXPECT_EQ(kept_by_rank({{bytes("a", 8), cross, bytes("c", 100)}, {bytes("a", 8), cross}},
                         kMegatronExact),
            (Kept{{"c"}, {"a", "b"}}));
}

// A line cut into parts of these sizes, one per rank; a part without elements begins where its
// neighbour does.
Ranks line(const std::vector<int64_t>& sizes) {
  const int64_t whole = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  Ranks ranks;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    ranks.push_back({shard("k", {whole}, {begin}, {size})});
    begin += size;
  }
  return ranks;
}

// The original of megatron keeps 5 of 10 elements of the first and none of the second; torch's
// leaves a hole, and refuses the save.
TEST(MergePlans, AnEmptyBoxNeverStandsForItsNeighbour) {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<size_t>>> kLines = {
      {{5, 0, 5}, {0, 2}}, {{0, 5}, {1}}, {{0, 0, 3, 0}, {2}}, {{4, 0}, {0}}};
  for (const auto& [sizes, writers] : kLines) {
    for (const MergeRules& rules : {kTorchExact, kTorchLowest, kMegatronExact, kHyperparallelExact,
                                    rules_of(Preset::kMegatron, OwnerRule::kBalanced),
                                    rules_of(Preset::kMegatron, OwnerRule::kLowestRank)}) {
      MergeRules full = rules;
      full.cover = CoverRule::kFull;
      const Result<PlanParts> parts = merged(described(line(sizes)), full);
      ASSERT_TRUE(parts.ok()) << parts.status().to_string();
      int64_t elements = 0;
      const Catalog stored = merged_plan(*parts).catalog;
      for (uint64_t c = 0; c < stored.chunk_count(); ++c)
        elements += box_element_count(stored.chunk_box(c));
      EXPECT_EQ(elements, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
      const Kept kept = kept_by_rank(line(sizes), rules);
      for (const size_t writer : writers) EXPECT_EQ(kept[writer], Names{"k"});
    }
  }
}

// An item that its rank lists twice stays twice, also where the first of the two is empty.
TEST(MergePlans, AnEmptyBoxThatIsPassedOnTakesItsTwinAlong) {
  const Listed both = {"w", {4}, {box({0}, {0}), box({0}, {4})}};
  const Ranks ranks = {{shard("w", {4}, {0}, {0})}, {both}};
  EXPECT_EQ(kept_by_rank(ranks, kTorchLowest), (Kept{{}, {"w", "w"}}));
  EXPECT_EQ(kept_by_rank(ranks, kTorchExact), (Kept{{}, {"w", "w"}}));
}

// Torch's choice where it leaves no hole is ours.
TEST(MergePlans, AnEmptyBoxChangesNoChoiceBetweenOthers) {
  Ranks ranks = {{shard("k", {4}, {0}, {4})}, {shard("k", {4}, {0}, {4})}, {}};
  const Kept without = kept_by_rank(ranks, kTorchExact);
  ranks[2].push_back(shard("k", {4}, {0}, {0}));
  EXPECT_EQ(kept_by_rank(ranks, kTorchExact), without);
}

// The reference set of megatron 9.1 on eight ranks.
TEST(MergePlans, MegatronSpreadsTheReferenceSet) {
  Ranks ranks;
  for (int64_t r = 0; r < 8; ++r) {
    ranks.push_back({shard("keyB", {160}, {20 * r}, {20}),
                     shard("TP_repl1", {10}, {5 * (r % 2)}, {5}),
                     shard("TP_repl2", {10}, {5 * (r % 2)}, {5}), tensor("keyC", {100}),
                     tensor("keyE", {100}), tensor("keyD", {1000})});
  }
  EXPECT_EQ(kept_by_rank(ranks, kMegatronExact), (Kept{{"keyB", "TP_repl1"},
                                                       {"keyB", "TP_repl1"},
                                                       {"keyB", "TP_repl2"},
                                                       {"keyB", "TP_repl2"},
                                                       {"keyB", "keyD"},
                                                       {"keyB", "keyC"},
                                                       {"keyB", "keyE"},
                                                       {"keyB"}}));
}

// The same set within the data-parallel groups of both halves. The second one holds no main replica
// of what is not split: a save leaves that to the others, a load takes it last.
TEST(MergePlans, MegatronSpreadsTheReferenceSetInGroups) {
  const auto group = [](int64_t half, bool whole, bool secondary) {
    Ranks ranks;
    for (int64_t r = 0; r < 4; ++r) {
      ranks.push_back({shard("keyB", {160}, {20 * (2 * r + half)}, {20}),
                       shard("TP_repl1", {20}, {10 * half}, {10}),
                       shard("TP_repl2", {20}, {10 * half}, {10})});
      for (const auto& [name, count] : {std::pair("keyC", 100), {"keyE", 100}, {"keyD", 1000}}) {
        if (!whole) continue;
        ranks.back().push_back(tensor(name, {count}));
        ranks.back().back().secondary = secondary;
      }
    }
    return ranks;
  };
  EXPECT_EQ(
      kept_by_rank(group(0, true, false), kMegatronExact),
      (Kept{
          {"keyB", "keyD"}, {"keyB", "keyC"}, {"keyB", "keyE"}, {"keyB", "TP_repl1", "TP_repl2"}}));
  EXPECT_EQ(kept_by_rank(group(1, false, false), kMegatronExact),
            (Kept{{"keyB", "TP_repl1"}, {"keyB", "TP_repl2"}, {"keyB"}, {"keyB"}}));
  EXPECT_EQ(
      kept_by_rank(group(1, true, true), kMegatronExact),
      (Kept{
          {"keyB", "TP_repl1", "keyE"}, {"keyB", "TP_repl2"}, {"keyB", "keyD"}, {"keyB", "keyC"}}));
}

TEST(MergePlans, CoverRulesRefuseOverlapsAndHolesNamingBoxes) {
  const Ranks hole = {{shard("w", {8}, {0}, {3})}, {shard("w", {8}, {4}, {4})}};
  const auto plan = [](const Ranks& ranks, CoverRule cover) {
    MergeRules rules = rules_of(Preset::kHyperparallel, OwnerRule::kExact, cover);
    return merged(described(ranks), rules).status();
  };
  EXPECT_FAILURE(plan(hole, CoverRule::kFull), StatusCode::kInvalidArgument, "[3:4]");
  EXPECT_TRUE(plan(hole, CoverRule::kDisjoint).ok());
  const Ranks overlap = {{shard("w", {8}, {0}, {5})}, {shard("w", {8}, {4}, {3})}};
  for (const CoverRule rule : {CoverRule::kFull, CoverRule::kDisjoint}) {
    EXPECT_FAILURE(plan(overlap, rule), StatusCode::kInvalidArgument, "rank 0", "rank 1");
  }
  EXPECT_TRUE(plan(overlap, CoverRule::kOff).ok());
}

// What docs/planning.md warns of, and who refuses it.
TEST(MergePlans, OwnersKeepTheKeyOfThePresetAndNumberAsItDoes) {
  const Ranks alike = {{shard("w", {8}, {0}, {4})}, {shard("w", {8}, {0}, {8})}};
  EXPECT_EQ(texts_of(alike, kTorchLowest), (std::vector<Names>{{"w[0:4]=0"}, {}}));
  for (const CoverRule cover : {CoverRule::kFull, CoverRule::kDisjoint}) {
    const MergeRules rules = rules_of(Preset::kTorch, OwnerRule::kLowestRank, cover);
    EXPECT_EQ(merged(described(alike), rules).ok(), cover == CoverRule::kDisjoint);
  }
  for (const OwnerRule owner : {OwnerRule::kBalanced, OwnerRule::kAll}) {
    EXPECT_FAILURE(merged(described(alike), rules_of(Preset::kTorch, owner)).status(),
                   StatusCode::kInvalidArgument, "[0:4]", "[0:8]");
  }
  const Ranks halves = {{shard("w", {8}, {4}, {4})}, {shard("w", {8}, {0}, {4})}};
  const std::vector<Names> as_kept = {{"w[4:8]=0"}, {"w[0:4]=1"}};
  const std::vector<Names> row_major = {{"w[4:8]=1"}, {"w[0:4]=0"}};
  for (const Preset preset : kPresets) {
    const auto& numbers = static_cast<int>(preset) % 3 == 0 ? row_major : as_kept;
    EXPECT_EQ(texts_of(halves, rules_of(preset, OwnerRule::kExact)), numbers);
    EXPECT_EQ(texts_of(halves, rules_of(preset, OwnerRule::kLowestRank)), numbers);
    EXPECT_EQ(texts_of(halves, rules_of(preset, OwnerRule::kBalanced)), row_major);
    EXPECT_EQ(texts_of(halves, rules_of(preset, OwnerRule::kAll)), as_kept);
  }
}

TEST(MergePlans, OrdersOfTheHostAndAttributesSurvive) {
  Listed a = tensor("a", {4});
  a.attribute = "first";
  Listed b = tensor("b", {4});
  b.attribute = std::string("\0\xff", 2);
  std::vector<PlanBytes> plans = {described({a, object("o"), b}, {0, 2}, {2, 1, 0}),
                                  described({b}, {1, 2})};
  const Result<PlanParts> parts = merged(plans, kTorchLowest);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_EQ(kept_names(plans[0], parts->numbers(1)), (Names{"b", "o", "a"}));
  EXPECT_EQ(kept_names(plans[1], parts->numbers(2)), Names{});
  const GlobalSavePlan plan = merged_plan(*parts);
  const ListingView listing = view_of(plan.listing);
  EXPECT_EQ(plan.catalog.tensor_name(0), "b");
  EXPECT_EQ(listing.attribute(0), b.attribute);
  EXPECT_EQ(listing.attribute(1), "first");
  EXPECT_EQ(listing.attribute(2), "");
}

Listed sized(std::string name, uint64_t bytes) {
  Listed listed = object(std::move(name));
  listed.bytes = bytes;
  return listed;
}

TEST(MergePlans, SizesOfZeroAreUnknownAndAgreeWithAll) {
  const Ranks ranks = {{sized("o", 0)}, {sized("o", 5)}, {sized("o", 0)}, {sized("o", 5)}};
  for (const MergeRules& rules :
       {kHyperparallelLowest, kHyperparallelExact, kTorchExact, kMegatronExact}) {
    const Result<PlanParts> parts = merged(described(ranks), rules);
    ASSERT_TRUE(parts.ok()) << parts.status().to_string();
    EXPECT_EQ(merged_plan(*parts).catalog.objects[0].size_bytes, 5U);
  }
  const Ranks differ = {{sized("o", 0)}, {sized("o", 5)}, {sized("o", 6)}};
  EXPECT_FAILURE(merged(described(differ), kHyperparallelLowest).status(),
                 StatusCode::kInvalidArgument, "'o'", "size", "rank 1", "rank 2");
  const Result<PlanParts> unknown = merged(described({{sized("o", 0)}}), kHyperparallelLowest);
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(merged_plan(*unknown).catalog.objects[0].size_bytes, 0U);
}

// The weight of an object whose size the first rank does not know.
TEST(MergePlans, KnownSizesAreBalanced) {
  const std::vector<Listed> known = {sized("a", 30), sized("b", 20), sized("c", 10)};
  const std::vector<Listed> unknown = {sized("a", 0), sized("b", 0), sized("c", 0)};
  const MergeRules rules = rules_of(Preset::kHyperparallel, OwnerRule::kBalanced);
  EXPECT_EQ(kept_by_rank({unknown, known}, rules), (Kept{{"a"}, {"b", "c"}}));
}

// Files of other formats may hold larger objects than ours.
TEST(MergePlans, ObjectsMayBeLargerThanThoseOfNativeSaves) {
  constexpr uint64_t kBytes = uint64_t{65} << 20;
  constexpr uint64_t kMost = uint64_t{1} << 40;
  for (const uint64_t bytes : {kBytes, kMost}) {
    const Result<PlanParts> parts = merged(described({{sized("o", bytes)}}), kHyperparallelLowest);
    ASSERT_TRUE(parts.ok()) << parts.status().to_string();
    EXPECT_EQ(merged_plan(*parts).catalog.objects[0].size_bytes, bytes);
  }
  const Arrays arrays({sized("o", kMost + 1)});
  EXPECT_FAILURE(describe_local(arrays.arrays(), {}).status(), StatusCode::kResourceExhausted,
                 "'o'", "1099511627777", "1099511627776");
  Result<LocalPlan> plan = decode<LocalPlan>(described({sized("o", kBytes)}, {0, 1}));
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_FAILURE(plan_locals(std::span(&*plan, 1), {}).status(), StatusCode::kResourceExhausted,
                 "'o'", "rank 0", "68157440");
  plan->description.catalog.objects[0].size_bytes = kMost + 1;
  plan->part.description_digest = *description_digest(plan->description);
  EXPECT_FAILURE(decode<LocalPlan>(*encode(*plan)).status(), StatusCode::kDataLoss, "object 0");
}

TEST(MergePlans, PlansOfUnknownWorldsTakeTheirPlaceForTheirRank) {
  Listed rng = tensor("rng", {2});
  rng.kind = EntryKind::kRankLocal;
  const PlanBytes unknown = described({rng, tensor("w", {4})}, {3, 0});
  const Result<PlanParts> parts = merged({unknown, unknown}, kHyperparallelLowest);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_EQ(kept_names(unknown, parts->numbers(1)), (Names{"rng", "w"}));
  EXPECT_EQ(kept_names(unknown, parts->numbers(2)), Names{"rng"});
  const GlobalSavePlan plan = merged_plan(*parts);
  EXPECT_EQ(plan.catalog.tensors[0].rank, 0);
  EXPECT_EQ(plan.catalog.tensors[2].rank, 1);
}

// The plan buffers of states, as a save makes them.
std::vector<PlanBytes> plans_of(const std::vector<State>& states) {
  std::vector<PlanBytes> plans;
  for (const LocalPlan& local : local_plans(states)) {
    Result<PlanBytes> bytes = encode(local);
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    plans.push_back(bytes.ok() ? *std::move(bytes) : PlanBytes());
  }
  return plans;
}

// A number for each box that the entries of the plan list, whatever decides and numbers.
TEST(MergePlans, EveryListedBoxHasANumber) {
  std::vector<Bytes> objects;
  for (int i = 0; i < 10; ++i) objects.push_back({fmt::format("o{}", i), "x"});
  std::vector<State> states;
  states.push_back(state_of({whole("w", {4}), whole("none", {0})}, objects));
  states.push_back(state_of({whole("w", {4})}));
  const std::vector<PlanBytes> plans = plans_of(states);
  for (const Preset preset : kPresets) {
    for (const OwnerRule owner :
         {OwnerRule::kBalanced, OwnerRule::kLowestRank, OwnerRule::kExact, OwnerRule::kAll}) {
      const Result<PlanParts> parts = merged(plans, rules_of(preset, owner));
      ASSERT_TRUE(parts.ok()) << parts.status().to_string();
      ASSERT_EQ(parts->size(), 1 + plans.size());
      for (size_t r = 0; r < plans.size(); ++r) {
        const EntryColumns columns(*decode<LocalPlan>(plans[r]));
        EXPECT_EQ(parts->numbers(1 + r).size(), columns.arrays().box_ranges.back());
      }
      EXPECT_GE(kept_texts(plans[0], parts->numbers(1)).size(), objects.size());
    }
  }
}

// What a rank holds, with one path that all its entries share.
PlanBytes with_shared_path(const std::vector<Listed>& entries, size_t path_bytes) {
  DescribeRules rules;
  Result<LocalPlan> plan = describe_local(Arrays(entries).arrays(), rules);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  Catalog& catalog = plan->description.catalog;
  const TextId path = catalog.texts.append(std::string(path_bytes, 'p'));
  for (TensorRecord& each : catalog.tensors) each.path = path;
  plan->part.description_digest = *description_digest(plan->description);
  return *encode(*plan);
}

// A buffer of 1 MiB must not become 150 MiB, twice.
TEST(MergePlans, RefusesTextsThatAllEntriesShare) {
  std::vector<Listed> entries;
  for (int i = 0; i < 150; ++i) entries.push_back(tensor(fmt::format("t{}", i), {1}));
  const PlanBytes bytes = with_shared_path(entries, 1 << 20);
  const Status status = merged({bytes}, kHyperparallelLowest).status();
  EXPECT_FAILURE(status, StatusCode::kDataLoss, "rank 0", "more than 4 times the");
  entries.resize(4);
  const PlanBytes few = with_shared_path(entries, 1000);
  EXPECT_TRUE(merged({few}, kHyperparallelLowest).ok());
}

TEST(MergePlans, TypesThatObjectsShareAreStoredOncePerRank) {
  std::vector<PlanBytes> plans;
  std::vector<Listed> entries;
  for (int i = 0; i < 200; ++i) entries.push_back(object(fmt::format("o{}", i)));
  for (int32_t rank = 0; rank < 2; ++rank) {
    DescribeRules rules;
    rules.rank = rank;
    rules.world_size = 2;
    Result<LocalPlan> plan = describe_local(Arrays(entries).arrays(), rules);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    Catalog& catalog = plan->description.catalog;
    const TextId type = catalog.texts.append(std::string(1000, rank == 0 ? 'a' : 'b'));
    for (ObjectRecord& each : catalog.objects) each.content_type = type;
    plan->part.description_digest = *description_digest(plan->description);
    plans.push_back(*encode(*plan));
  }
  MergeRules rules = kHyperparallelExact;
  rules.verify_replicas = VerifyReplicas::kOff;
  const Result<PlanParts> parts = merged(plans, rules);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_LT(parts->part(0).size(), plans[0].size() + 4000);
  const Catalog catalog = merged_plan(*parts).catalog;
  for (const ObjectRecord& each : catalog.objects)
    EXPECT_EQ(catalog.texts.at(each.content_type)[0], each.place == 0 ? 'a' : 'b');
}

TEST(MergePlans, BytesAreEqualWhateverMemoryPlansLieIn) {
  const std::vector<PlanBytes> plans = described(mesh_world());
  const Result<PlanParts> first = merged(plans, kHyperparallelExact);
  ASSERT_TRUE(first.ok());
  // Every buffer at an odd address: columns have to be copied.
  std::vector<PlanBytes> shifted;
  std::vector<std::span<const std::byte>> views;
  for (const PlanBytes& plan : plans) {
    shifted.emplace_back(1, std::byte{0});
    shifted.back().insert(shifted.back().end(), plan.begin(), plan.end());
  }
  for (const PlanBytes& plan : shifted) views.push_back(std::span(plan).subspan(1));
  const Result<PlanParts> second = merge_plans(views, kHyperparallelExact);
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  ASSERT_EQ(first->size(), second->size());
  for (size_t i = 0; i < first->size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(first->part(i), second->part(i))) << i;
  }
}

}  // namespace
}  // namespace shardwright::plan::test
