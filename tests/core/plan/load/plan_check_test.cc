// SPDX-License-Identifier: Apache-2.0
//
// A load plan that came from elsewhere must fit the state and the catalog.
#include <functional>

#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

TEST(CheckLoadPlan, NamesWhatDoesNotFit) {
  std::vector<State> states;
  for (int64_t r = 0; r < 2; ++r) {
    states.push_back(state_of({{"w", DType::kFloat32, {4}, {box({2 * r}, {2})}},
                               whole("own", {2}, EntryKind::kRankLocal)},
                              {{"o", "1"}, {"p", "2"}}));
  }
  const Catalog stored = planned(states).catalog;
  Holding narrow = whole("w", {4});
  narrow.dtype = DType::kFloat16;
  const State wanted = state_of({narrow, whole("own", {2})}, {{"o", ""}, {"p", ""}});
  LoadRules rules;
  rules.cast = CastRule::kAllow;
  const Result<LoadPlan> good = make_load_plan(wanted, stored, rules, 0);
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  ASSERT_EQ(good->reads.size(), 3U);
  EXPECT_TRUE(check_load_plan(*good, wanted, stored).ok());
  struct Case {
    std::string_view text;
    std::function<void(LoadPlan&)> change;
  };
  const std::vector<Case> cases = {
      {"fills 2 of 4", [](LoadPlan& plan) { plan.reads.erase(plan.reads.begin()); }},
      {"fills 0 of 4",
       [](LoadPlan& plan) { plan.reads.erase(plan.reads.begin(), plan.reads.begin() + 2); }},
      {"fills 3 of 4", [](LoadPlan& plan) { plan.reads[0].box = box({0}, {1}); }},
      {"does not follow", [](LoadPlan& plan) { std::swap(plan.reads[0], plan.reads[1]); }},
      {"does not follow", [](LoadPlan& plan) { plan.reads[1] = plan.reads[0]; }},
      {"into piece 0 of tensor 9", [](LoadPlan& plan) { plan.reads[2].entry = 9; }},
      {"into piece 1", [](LoadPlan& plan) { plan.reads[0].piece = 1; }},
      {"chunk 99", [](LoadPlan& plan) { plan.reads[2].chunk = 99; }},
      {"leaves its chunk", [](LoadPlan& plan) { plan.reads[0].box = box({0}, {3}); }},
      {"leaves its chunk", [](LoadPlan& plan) { plan.reads[0].box = box({0}, {0}); }},
      {"leaves its chunk", [](LoadPlan& plan) { plan.reads[0].box = box({0, 0}, {2, 1}); }},
      {"leaves its chunk", [](LoadPlan& plan) { plan.reads[0].box = box({-1}, {2}); }},
      {"'own' is filled from stored tensor 'w'", [](LoadPlan& plan) { plan.reads[0].entry = 1; }},
      {"casts tensor 9 of 2", [](LoadPlan& plan) { plan.casts[0].entry = 9; }},
      {"no cast is listed", [](LoadPlan& plan) { plan.casts.clear(); }},
      {"stored tensor 'own'", [](LoadPlan& plan) { plan.rank = 1; }},
      {"stored object 1 into object 0", [](LoadPlan& plan) { plan.objects = {{0, 0}, {0, 1}}; }},
      {"stored object 7", [](LoadPlan& plan) { plan.objects[0].object = 7; }},
      {"object 'o' is filled from stored object 'p'",
       [](LoadPlan& plan) { plan.objects[0].object = 1; }},
      {"object 'p' is neither", [](LoadPlan& plan) { plan.objects.pop_back(); }},
  };
  for (const Case& each : cases) {
    LoadPlan plan = *good;
    each.change(plan);
    EXPECT_FAILURE(check_load_plan(plan, wanted, stored), StatusCode::kFailedPrecondition,
                   each.text);
  }
}

TEST(CheckLoadPlan, LeavesMissingEntriesAlone) {
  std::vector<State> states;
  states.push_back(state_of({whole("w", {4})}));
  const Catalog stored = planned(states).catalog;
  const State wanted = state_of({whole("w", {4}), whole("x", {4})}, {{"o", ""}});
  LoadRules rules;
  rules.missing = MissingRule::kReport;
  Result<LoadPlan> plan = make_load_plan(wanted, stored, rules, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_TRUE(check_load_plan(*plan, wanted, stored).ok());
  plan->missing.clear();
  EXPECT_FAILURE(check_load_plan(*plan, wanted, stored), StatusCode::kFailedPrecondition, "'x'");
}

}  // namespace
}  // namespace shardwright::plan::test
