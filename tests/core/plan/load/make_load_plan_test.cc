// SPDX-License-Identifier: Apache-2.0
//
// What a load does and refuses: missing, unexpected, casts, shapes, kinds.
#include "core/plan/load/make_load_plan.h"

#include <algorithm>

#include "tests/core/plan/catalog_boxes.h"
#include "tests/core/plan/read_list.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

// Stored on two ranks: sharded "w", replicated "scale", rank_local "rng", object "step" and
// rank_local object "loader".
Catalog stored() {
  std::vector<State> states;
  for (int64_t r = 0; r < 2; ++r) {
    states.push_back(state_of({{"model.w", DType::kFloat32, {4, 2}, {box({2 * r, 0}, {2, 2})}},
                               whole("model.scale", {3}),
                               whole("rng", {2}, EntryKind::kRankLocal)},
                              {{"step", "7"}, {"loader", "x", EntryKind::kRankLocal}}));
  }
  return planned(states).catalog;
}

Result<LoadPlan> plan_load(const State& state, const LoadRules& rules = {}, int32_t rank = 0) {
  return make_load_plan(state, stored(), rules, rank);
}

State everything() {
  return state_of({whole("model.w", {4, 2}), whole("model.scale", {3}),
                   whole("rng", {2}, EntryKind::kRankLocal)},
                  {{"step", ""}, {"loader", ""}});
}

TEST(LoadPlan, ReadsAChunkPerOwnerInChunkOrder) {
  const Result<LoadPlan> plan = plan_load(everything(), {}, 1);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->rank, 1);
  EXPECT_EQ(plan->loaded,
            (std::vector<std::string>{"model.w", "model.scale", "rng", "step", "loader"}));
  EXPECT_TRUE(plan->missing.empty());
  EXPECT_TRUE(plan->unexpected.empty());
  ASSERT_EQ(plan->reads.size(), 4U);
  EXPECT_EQ(plan->reads[0].box, box({0, 0}, {2, 2}));
  EXPECT_EQ(plan->reads[1].box, box({2, 0}, {2, 2}));
  for (size_t i = 1; i < plan->reads.size(); ++i)
    EXPECT_LT(plan->reads[i - 1].chunk, plan->reads[i].chunk);
  ASSERT_EQ(plan->objects.size(), 2U);
  EXPECT_EQ(stored().objects[plan->objects[1].object].rank, 1);
}

TEST(LoadPlan, NamesTheNearestNamesOfAMissingTensor) {
  const Status status = plan_load(state_of({whole("model.W", {4, 2})})).status();
  EXPECT_FAILURE(status, StatusCode::kNotFound, "'model.W'", "'model.w'");
  EXPECT_EQ(status.detail("tensor"), "model.W");
  EXPECT_FAILURE(plan_load(state_of({}, {{"stop", ""}})).status(), StatusCode::kNotFound,
                 "object 'stop'", "'step'");
}

TEST(LoadPlan, SaysWhenANameIsOfTheOtherType) {
  EXPECT_FAILURE(plan_load(state_of({whole("step", {1})})).status(), StatusCode::kNotFound,
                 "byte object");
  EXPECT_FAILURE(plan_load(state_of({}, {{"model.w", ""}})).status(), StatusCode::kNotFound,
                 "that of a tensor");
}

TEST(LoadPlan, ReportsMissingNamesWhenAskedTo) {
  LoadRules rules;
  rules.missing = MissingRule::kReport;
  const Result<LoadPlan> plan = plan_load(state_of({whole("nothing", {1})}, {{"none", ""}}), rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->missing, (std::vector<std::string>{"nothing", "none"}));
  EXPECT_TRUE(plan->loaded.empty());
  EXPECT_TRUE(plan->reads.empty());
}

TEST(LoadPlan, ReportsOrRefusesUnexpectedNames) {
  const State state = state_of({whole("model.w", {4, 2})}, {{"step", ""}});
  LoadRules rules;
  const Result<LoadPlan> plan = plan_load(state, rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->unexpected, (std::vector<std::string>{"model.scale", "rng", "loader"}));
  rules.unexpected = UnexpectedRule::kError;
  EXPECT_FAILURE(plan_load(state, rules).status(), StatusCode::kInvalidArgument, "3 stored names",
                 "'model.scale'", "'rng'");
}

TEST(LoadPlan, RefusesAnotherShapeWithBothValues) {
  const Status status = plan_load(state_of({whole("model.w", {2, 4})})).status();
  EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "[4, 2]", "[2, 4]");
  EXPECT_EQ(status.detail("expected"), "[2, 4]");
  EXPECT_EQ(status.detail("found"), "[4, 2]");
}

TEST(LoadPlan, CastsOnlyWhenAllowedAndSaysSo) {
  Holding wanted = whole("model.w", {4, 2});
  wanted.dtype = DType::kBfloat16;
  EXPECT_FAILURE(plan_load(state_of({wanted})).status(), StatusCode::kInvalidArgument, "float32",
                 "bfloat16", "cast");
  LoadRules rules;
  rules.cast = CastRule::kAllow;
  const Result<LoadPlan> plan = plan_load(state_of({wanted}), rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  ASSERT_EQ(plan->casts.size(), 1U);
  EXPECT_EQ(plan->casts[0].stored, DType::kFloat32);
  EXPECT_EQ(plan->casts[0].wanted, DType::kBfloat16);
}

TEST(LoadPlan, TheFirstStrictPatternDecides) {
  Holding wanted = whole("model.w", {4, 2});
  wanted.dtype = DType::kFloat64;
  LoadRules rules;
  rules.strict = {{"extra*", MissingRule::kReport, UnexpectedRule::kReport, CastRule::kError},
                  {"model.*", MissingRule::kError, UnexpectedRule::kError, CastRule::kAllow},
                  {"*", MissingRule::kError, UnexpectedRule::kReport, CastRule::kError}};
  EXPECT_FAILURE(plan_load(state_of({wanted, whole("extra.x", {1})}), rules).status(),
                 StatusCode::kInvalidArgument, "1 stored name", "'model.scale'");
  const Result<LoadPlan> plan =
      plan_load(state_of({wanted, whole("extra.x", {1}), whole("model.scale", {3})}), rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->casts.size(), 1U);
  EXPECT_EQ(plan->missing, (std::vector<std::string>{"extra.x"}));
  EXPECT_FAILURE(plan_load(state_of({whole("model.x", {1})}), rules).status(),
                 StatusCode::kNotFound, "model.x");
}

TEST(LoadPlan, RankLocalEntriesBelongToTheirRank) {
  const State own = state_of({whole("rng", {2}, EntryKind::kRankLocal)});
  const State plain = state_of({whole("rng", {2})});
  for (int32_t rank = 0; rank < 2; ++rank) {
    for (const State* state : {&own, &plain}) {
      const Result<LoadPlan> plan = plan_load(*state, {}, rank);
      ASSERT_TRUE(plan.ok()) << plan.status().to_string();
      const Catalog catalog = stored();
      EXPECT_EQ(catalog.tensors[catalog.tensor_of(plan->reads[0].chunk)].rank, rank);
    }
  }
  EXPECT_FAILURE(plan_load(own, {}, 2).status(), StatusCode::kNotFound, "rank 2",
                 "rank_local of 2 ranks: 0, 1");
  EXPECT_FAILURE(plan_load(plain, {}, 2).status(), StatusCode::kNotFound, "rank_local");
  // A rank_local want does not take the shared entry.
  EXPECT_FAILURE(plan_load(state_of({whole("model.scale", {3}, EntryKind::kRankLocal)})).status(),
                 StatusCode::kNotFound, "model.scale");
}

TEST(LoadPlan, ReadsPartsAndNothingForEmptyPieces) {
  const State state =
      state_of({{"model.w", DType::kFloat32, {4, 2}, {box({1, 1}, {2, 1}), box({0, 0}, {0, 2})}}});
  const Result<LoadPlan> plan = plan_load(state);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  ASSERT_EQ(plan->reads.size(), 2U);
  EXPECT_EQ(plan->reads[0].box, box({1, 1}, {1, 1}));
  EXPECT_EQ(plan->reads[1].box, box({2, 1}, {1, 1}));
}

TEST(LoadPlan, NoticesStoredChunksThatDoNotFill) {
  Catalog catalog = with_boxes(stored());
  catalog.boxes[0].size0 = 1;  // a hole that prove_all_covers would have found
  EXPECT_FAILURE(make_load_plan(everything(), catalog, {}, 0).status(), StatusCode::kDataLoss,
                 "model.w", "[0:4, 0:2]", "exactly once", "no file holds box [1:2, 0:2]");
}

TEST(LoadPlan, RefusesSubByteReadsThatCutAByte) {
  Catalog catalog;
  CatalogBuilder::Tensor tensor;
  tensor.name = "q";
  tensor.dtype = DType::kInt4;
  tensor.kind = EntryKind::kSharded;
  const Dims shape{8};
  tensor.shape = shape;
  ASSERT_TRUE(CatalogBuilder(&catalog)
                  .add_tensor(tensor, std::vector<CatalogBuilder::Chunk>{{box({0}, {3}), 0},
                                                                         {box({3}, {5}), 0}})
                  .ok());
  const State all = state_of({{"q", DType::kInt4, {8}, {box({0}, {8})}}});
  EXPECT_FAILURE(make_load_plan(all, catalog, {}, 0).status(), StatusCode::kUnimplemented, "'q'",
                 "int4", "[0:3]");
  const State inside = state_of({{"q", DType::kInt4, {8}, {box({4}, {2})}}});
  EXPECT_TRUE(make_load_plan(inside, catalog, {}, 0).ok());
}

TEST(LoadPlan, RefusesRanksThatCannotBe) {
  EXPECT_FAILURE(plan_load(everything(), {}, -1).status(), StatusCode::kInvalidArgument, "-1");
}

TEST(LoadPlan, IsTheSameForAllPresets) {
  const Result<LoadPlan> native = plan_load(everything());
  for (const Preset preset : {Preset::kHyperparallel, Preset::kTorch, Preset::kMegatron}) {
    LoadRules rules;
    rules.preset = preset;
    const Result<LoadPlan> plan = plan_load(everything(), rules);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    ASSERT_EQ(plan->reads.size(), native->reads.size());
    for (size_t i = 0; i < plan->reads.size(); ++i)
      EXPECT_EQ(plan->reads.key(i), native->reads.key(i));
  }
}

// Two ranks store all of "r" each (copies), rows of "s" twice in another order, and "t" once.
Catalog with_copies() {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  const auto add = [&](std::string_view name, const Dims& shape, const std::vector<Box>& boxes) {
    std::vector<CatalogBuilder::Chunk> chunks;
    for (const Box& each : boxes) {
      const auto count = static_cast<uint32_t>(chunks.size());
      chunks.push_back({each, count % 2});
    }
    CatalogBuilder::Tensor tensor;
    tensor.name = name;
    tensor.dtype = DType::kFloat32;
    tensor.kind = EntryKind::kSharded;
    tensor.shape = shape;
    EXPECT_TRUE(builder.add_tensor(tensor, chunks).ok());
  };
  add("r", {3, 2}, {whole_box(Dims{3, 2}), whole_box(Dims{3, 2})});
  std::vector<Box> rows;
  for (int64_t i = 0; i < 24; ++i) rows.push_back(box({5 * i % 12, 0}, {1, 2}));
  add("s", {12, 2}, rows);
  const std::vector<Box> odd = {box({0, 0}, {2, 4}), box({2, 0}, {2, 1}), box({2, 1}, {2, 3})};
  std::vector<Box> often;
  for (size_t i = 0; i < 12; ++i) often.push_back(odd[i % 3]);
  add("u", {4, 4}, often);
  return catalog;
}

TEST(LoadPlan, ReadsEachElementFromTheFirstOfEqualChunks) {
  const Catalog catalog = with_copies();
  EXPECT_FAILURE(prove_all_covers(catalog), StatusCode::kInvalidArgument, "overlaps");
  ASSERT_TRUE(prove_all_covers(catalog, Copies::kAllowed).ok());
  const State state = state_of({whole("u", {4, 4}), whole("r", {3, 2}), whole("s", {12, 2})});
  const Result<LoadPlan> plan = make_load_plan(state, catalog, {}, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  ASSERT_EQ(plan->reads.size(), 1U + 12U + 3U);
  EXPECT_EQ(plan->reads.key(0).chunk, 0U);
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(plan->reads.key(1 + i).chunk, 2 + i);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(plan->reads.key(13 + i).chunk, 26 + i);
  EXPECT_TRUE(check_load_plan(*plan, state, catalog).ok());
  // As many elements, but one row twice and another never.
  LoadPlan twice = *plan;
  on_reads([](ReadList& reads) {
    reads[2].chunk = 2 + 12;
    reads[2].box = reads[1].box;
    std::swap(reads[2], reads[12]);
    std::sort(reads.begin(), reads.end(),
              [](const ReadItem& a, const ReadItem& b) { return a.chunk < b.chunk; });
  })(twice);
  EXPECT_FAILURE(check_load_plan(twice, state, catalog), StatusCode::kFailedPrecondition, "'s'",
                 "twice");
}

Catalog two_by_32() {
  std::vector<State> states;
  for (int64_t r = 0; r < 2; ++r)
    states.push_back(state_of({{"w", DType::kFloat32, {2, 32}, {box({0, 16 * r}, {2, 16})}}}));
  return planned(states).catalog;
}

struct Crop {
  int64_t columns;
  Box piece;
  std::vector<Box> reads;
};

TEST(LoadPlan, CropsAndPadsAtTheOrigin) {
  const Catalog catalog = two_by_32();
  LoadRules rules;
  rules.shape = ShapeRule::kCropAndPad;
  const std::vector<Crop> cases = {
      {36, box({0, 0}, {2, 18}), {box({0, 0}, {2, 16}), box({0, 16}, {2, 2})}},
      {36, box({0, 18}, {2, 18}), {box({0, 18}, {2, 14})}},
      {28, box({0, 0}, {2, 14}), {box({0, 0}, {2, 14})}},
      {28, box({0, 14}, {2, 14}), {box({0, 14}, {2, 2}), box({0, 16}, {2, 12})}},
      {80, box({0, 40}, {2, 40}), {}},
      {80, box({0, 32}, {2, 0}), {}},
  };
  for (const Crop& each : cases) {
    const State state = state_of({{"w", DType::kFloat32, {2, each.columns}, {each.piece}}});
    EXPECT_FAILURE(make_load_plan(state, catalog, {}, 0).status(), StatusCode::kInvalidArgument,
                   "crop_and_pad");
    const Result<LoadPlan> plan = make_load_plan(state, catalog, rules, 0);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    ASSERT_EQ(plan->shapes.size(), 1U);
    EXPECT_EQ(plan->shapes[0].tensor, 0U);
    std::vector<Box> found;
    for (const ReadItem& read : reads_of(*plan)) found.push_back(read.box);
    EXPECT_EQ(found, each.reads) << box_text(each.piece);
    EXPECT_TRUE(check_load_plan(*plan, state, catalog).ok())
        << check_load_plan(*plan, state, catalog).to_string();
  }
}

TEST(LoadPlan, CropsOnlyWhatAPatternNamesAndOnlyEqualDimensions) {
  const Catalog catalog = two_by_32();
  LoadRules rules;
  rules.strict = {{"w", MissingRule::kError, UnexpectedRule::kReport, CastRule::kError,
                   ShapeRule::kCropAndPad}};
  EXPECT_TRUE(make_load_plan(state_of({whole("w", {3, 30})}), catalog, rules, 0).ok());
  rules.strict[0].glob = "x";
  EXPECT_FALSE(make_load_plan(state_of({whole("w", {3, 30})}), catalog, rules, 0).ok());
  rules.shape = ShapeRule::kCropAndPad;
  EXPECT_FAILURE(make_load_plan(state_of({whole("w", {2, 32, 1})}), catalog, rules, 0).status(),
                 StatusCode::kInvalidArgument, "[2, 32]", "[2, 32, 1]");
}

TEST(LoadPlan, RefusesToCropElementsBelowAByte) {
  std::vector<State> states;
  states.push_back(state_of({{"q", DType::kInt4, {4, 4}, {box({0, 0}, {4, 4})}}}));
  const Catalog catalog = planned(states).catalog;
  LoadRules rules;
  rules.shape = ShapeRule::kCropAndPad;
  const State wanted = state_of({{"q", DType::kInt4, {2, 4}, {box({0, 0}, {2, 4})}}});
  EXPECT_FAILURE(make_load_plan(wanted, catalog, rules, 0).status(), StatusCode::kUnimplemented,
                 "'q'", "int4");
}

}  // namespace
}  // namespace shardwright::plan::test
