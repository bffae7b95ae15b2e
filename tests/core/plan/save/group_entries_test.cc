// SPDX-License-Identifier: Apache-2.0
//
// Ranks that contradict each other are refused, naming both.
#include <functional>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/options_text.h"
#include "core/plan/save/global_plan.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

std::vector<State> two(const std::vector<Holding>& first, const std::vector<Holding>& second,
                       const std::vector<Bytes>& first_objects = {},
                       const std::vector<Bytes>& second_objects = {}) {
  std::vector<State> states;
  states.push_back(state_of(first, first_objects));
  states.push_back(state_of(second, second_objects));
  return states;
}

TEST(Merge, NamesRanksAndValuesOfAConflict) {
  const Holding base{"w", DType::kFloat32, {4, 2}, {box({0, 0}, {2, 2})}};
  struct Case {
    std::function<void(Holding&)> change;
    std::string_view property;
    std::string_view expected;
    std::string_view found;
  };
  const std::vector<Case> cases = {
      {[](Holding& h) { h.dtype = DType::kBfloat16; }, "dtype", "float32", "bfloat16"},
      {[](Holding& h) { h.shape = {5, 2}; }, "shape", "[4, 2]", "[5, 2]"},
      {[](Holding& h) { h.shape = {4, 2, 1}, h.boxes = {}; }, "shape", "[4, 2]", "[4, 2, 1]"},
      {[](Holding& h) { h.kind = EntryKind::kRankLocal, h.boxes = {whole_box(h.shape)}; }, "kind",
       "sharded", "rank_local"},
      {[](Holding& h) { h.kind = EntryKind::kReplicated, h.boxes = {whole_box(h.shape)}; }, "kind",
       "sharded", "replicated"},
  };
  for (const Case& each : cases) {
    Holding other = base;
    each.change(other);
    const Status status = plan_save(two({base}, {whole("x", {1}), other})).status();
    EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "'w'", each.property, each.expected,
                   each.found, "rank 0", "rank 1");
    EXPECT_EQ(status.detail("tensor"), "w");
    EXPECT_EQ(status.detail("expected"), each.expected);
    EXPECT_EQ(status.detail("found"), each.found);
  }
}

TEST(Merge, RefusesPathsThatDiffer) {
  std::vector<State> states;
  for (const char* path : {"[\"a\",\"b\"]", "[\"a.b\"]"}) {
    TensorEntry entry = entry_of(whole("a.b", {2}));
    entry.path = path;
    State state;
    ASSERT_TRUE(state.add_tensors({entry}).ok());
    states.push_back(std::move(state));
  }
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "'a.b'", "path",
                 "[\"a\",\"b\"]");
}

TEST(Merge, RefusesANameThatIsATensorHereAndAnObjectThere) {
  EXPECT_FAILURE(plan_save(two({whole("x", {2})}, {}, {}, {{"x", "1"}})).status(),
                 StatusCode::kInvalidArgument, "'x'", "tensor on rank 0", "object on rank 1");
}

TEST(Merge, RefusesObjectsWhoseKindDiffers) {
  EXPECT_FAILURE(plan_save(two({}, {}, {{"o", "1"}}, {{"o", "1", EntryKind::kRankLocal}})).status(),
                 StatusCode::kInvalidArgument, "'o'", "kind", "replicated", "rank_local");
}

TEST(Merge, KeepsRankLocalEntriesApartAndLetsThemDiffer) {
  const GlobalSavePlan plan = planned(
      two({whole("w", {3}, EntryKind::kRankLocal)}, {whole("w", {5}, EntryKind::kRankLocal)},
          {{"rng", "one", EntryKind::kRankLocal}}, {{"rng", "three", EntryKind::kRankLocal}}));
  ASSERT_EQ(plan.catalog.tensors.size(), 2U);
  EXPECT_EQ(plan.catalog.tensors[1].rank, 1);
  EXPECT_EQ(plan.catalog.shape(1)[0], 5);
  ASSERT_EQ(plan.catalog.objects.size(), 2U);
  EXPECT_EQ(plan.catalog.objects[1].size_bytes, 5U);
  EXPECT_EQ(plan.catalog.objects[1].place, 1U);
}

TEST(Merge, TakesNamesThatOnlySomeRanksHaveInAnyOrder) {
  const GlobalSavePlan plan = planned(
      two({whole("a", {1}), whole("b", {2})}, {whole("c", {3}), whole("b", {2}), whole("d", {4})}));
  std::vector<std::string> names;
  for (size_t t = 0; t < plan.catalog.tensors.size(); ++t)
    names.emplace_back(plan.catalog.tensor_name(t));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(plan.catalog.chunk_count(), 4U);
}

TEST(Merge, RefusesPlansThatAreNotThoseOfAllRanks) {
  const std::vector<State> states = two({whole("w", {2})}, {whole("w", {2})});
  std::vector<LocalPlan> locals = local_plans(states);
  std::vector<LocalPlan> swapped{locals[1], locals[0]};
  EXPECT_FAILURE(plan_locals(swapped, {}).status(), StatusCode::kInvalidArgument,
                 "plan 0 of 2 is that of rank 1");
  std::vector<LocalPlan> doubled{locals[0], locals[0]};
  EXPECT_FAILURE(plan_locals(doubled, {}).status(), StatusCode::kInvalidArgument,
                 "rank 0 a second time");
  EXPECT_FAILURE(plan_locals(std::span(locals).first(1), {}).status(), StatusCode::kInvalidArgument,
                 "plans for 2 ranks, but there are plans of 1");
  locals[1].description.tensor_digests.resize(3);
  locals[1].part.description_digest = *description_digest(locals[1].description);
  EXPECT_FAILURE(plan_locals(locals, {}).status(), StatusCode::kDataLoss, "rank 1", "3 tensor");
}

TEST(Merge, NamesTheOptionThatDiffers) {
  const State state = state_of({whole("w", {2})});
  SaveRules other;
  other.verify_replicas = VerifyReplicas::kOff;
  std::vector<LocalPlan> locals;
  locals.push_back(*make_local_plan(state, {}, {0, 2}, {}));
  locals.push_back(*make_local_plan(state, other, {1, 2}, {}));
  const Status status = plan_locals(locals, {}).status();
  EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "verify_replicas", "rank 0", "auto",
                 "rank 1", "off");
  EXPECT_EQ(status.detail("parameter"), "verify_replicas");
  Description& second = locals[1].description;
  second.options_text = locals[0].description.options_text + "overwrite=refuse\n";
  second.options_digest = options_text_digest(second.options_text);
  locals[1].part.description_digest = *description_digest(second);
  EXPECT_FAILURE(plan_locals(locals, {}).status(), StatusCode::kInvalidArgument, "'overwrite'");
}

}  // namespace
}  // namespace shardwright::plan::test
