// SPDX-License-Identifier: Apache-2.0
//
// A load plan that came from elsewhere must fit the state and the catalog.

#include <functional>

#include "core/plan/load/make_load_plan.h"
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
      {"fills 2 of 4", on_reads([](ReadList& reads) { reads.erase(reads.begin()); })},
      {"fills 0 of 4",
       on_reads([](ReadList& reads) { reads.erase(reads.begin(), reads.begin() + 2); })},
      {"fills 3 of 4", on_reads([](ReadList& reads) { reads[0].box = box({0}, {1}); })},
      {"does not follow", on_reads([](ReadList& reads) { std::swap(reads[0], reads[1]); })},
      {"does not follow", on_reads([](ReadList& reads) { reads[1] = reads[0]; })},
      {"into piece 0 of tensor 9", on_reads([](ReadList& reads) { reads[2].entry = 9; })},
      {"into piece 1", on_reads([](ReadList& reads) { reads[0].piece = 1; })},
      {"chunk 99", on_reads([](ReadList& reads) { reads[2].chunk = 99; })},
      {"leaves its chunk", on_reads([](ReadList& reads) { reads[0].box = box({0}, {3}); })},
      {"leaves its chunk", on_reads([](ReadList& reads) { reads[0].box = box({0}, {0}); })},
      {"leaves its chunk", on_reads([](ReadList& reads) { reads[0].box = box({0, 0}, {2, 1}); })},
      {"leaves its chunk", on_reads([](ReadList& reads) { reads[0].box = box({-1}, {2}); })},
      {"'own' is filled from stored tensor 'w'",
       on_reads([](ReadList& reads) { reads[0].entry = 1; })},
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

TEST(CheckLoadPlan, NamesNotesOfShapesThatDoNotFit) {
  std::vector<State> states;
  states.push_back(state_of({whole("w", {4}), whole("x", {4})}));
  const Catalog stored = planned(states).catalog;
  const State wanted = state_of({whole("x", {4}), whole("w", {6})});
  LoadRules rules;
  rules.shape = ShapeRule::kCropAndPad;
  const Result<LoadPlan> good = make_load_plan(wanted, stored, rules, 0);
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  EXPECT_TRUE(check_load_plan(*good, wanted, stored).ok());
  const auto failure_of = [&](const std::function<void(LoadPlan&)>& change) {
    LoadPlan plan = *good;
    change(plan);
    return check_load_plan(plan, wanted, stored);
  };
  const auto unfit = StatusCode::kFailedPrecondition;
  EXPECT_FAILURE(failure_of([](LoadPlan& plan) { plan.shapes.clear(); }), unfit,
                 "'w' is filled from stored tensor 'w'");
  EXPECT_FAILURE(failure_of([](LoadPlan& plan) { plan.shapes[0].entry = 5; }), unfit,
                 "tensor 5 of 2");
  EXPECT_FAILURE(failure_of([](LoadPlan& plan) { plan.shapes[0].tensor = 7; }), unfit,
                 "stored tensor 7");
  EXPECT_FAILURE(failure_of([](LoadPlan& plan) { plan.shapes[0].tensor = 1; }), unfit,
                 "'w' is cropped or padded from stored tensor 'x'");
  EXPECT_FAILURE(failure_of(on_reads([](ReadList& reads) { reads.erase(reads.begin()); })), unfit,
                 "fills 0 of 4");
}

}  // namespace
}  // namespace shardwright::plan::test
