// SPDX-License-Identifier: Apache-2.0
//
// Random worlds, planned and compared element by element. SHW_SEED=<number> is the first
// world, SHW_WORLDS=<count> how many there are. A world that fails is made smaller before it is
// printed.
#include <cstdlib>
#include <functional>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/catalog_boxes.h"
#include "tests/core/plan/world.h"
#include "tests/property/planning_oracle.h"
#include "tests/property/planning_world.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

using shardwright::test::ChoiceList;
using shardwright::test::Choices;

constexpr int kShrinkTries = 20000;

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

using Buffers = std::vector<std::vector<std::byte>>;

// Local plans as the bytes that travel, so that the wire is part of every world.
Result<Buffers> local_buffers(const std::vector<State>& states, const SaveRules& rules) {
  Buffers buffers;
  for (size_t r = 0; r < states.size(); ++r) {
    const RankPosition position{static_cast<int32_t>(r), static_cast<int32_t>(states.size())};
    SHW_ASSIGN_OR_RETURN(const LocalPlan local, make_local_plan(states[r], rules, position, {}));
    SHW_ASSIGN_OR_RETURN(auto bytes, encode(local));
    buffers.push_back(std::move(bytes));
  }
  return buffers;
}

Result<GlobalSavePlan> plan_by_wire(const std::vector<State>& states, const SaveRules& rules) {
  SHW_ASSIGN_OR_RETURN(const Buffers buffers, local_buffers(states, rules));
  std::vector<LocalPlan> locals;
  for (const std::vector<std::byte>& buffer : buffers) {
    SHW_ASSIGN_OR_RETURN(LocalPlan local, decode<LocalPlan>(buffer));
    locals.push_back(std::move(local));
  }
  SHW_ASSIGN_OR_RETURN(GlobalSavePlan plan, plan_locals(locals, rules));
  return plan;
}

// The same world without files, merged as the presets do.
struct Merge {
  GlobalSavePlan merged;
  std::vector<LocalPlan> plans;  // of the ranks
  std::vector<Numbers> kept;     // by rank
};

Result<Merge> merge_by_wire(const std::vector<State>& states, const MergeRules& rules) {
  SHW_ASSIGN_OR_RETURN(const Buffers buffers, local_buffers(states, {}));
  const std::vector<std::span<const std::byte>> plans(buffers.begin(), buffers.end());
  SHW_ASSIGN_OR_RETURN(const PlanParts parts, merge_plans(plans, rules));
  Merge merge;
  SHW_ASSIGN_OR_RETURN(merge.merged, decode<GlobalSavePlan>(parts.part(0)));
  for (size_t r = 0; r < plans.size(); ++r) {
    SHW_ASSIGN_OR_RETURN(LocalPlan plan, decode<LocalPlan>(plans[r]));
    merge.plans.push_back(std::move(plan));
    const std::span<const uint32_t> kept = parts.numbers(1 + r);
    merge.kept.emplace_back(kept.begin(), kept.end());
  }
  return merge;
}

Result<LoadPlan> load_by_wire(const State& state, const CatalogIndex& index, const LoadRules& rules,
                              int32_t rank) {
  SHW_ASSIGN_OR_RETURN(const LoadPlan plan, make_load_plan(state, index, rules, rank));
  SHW_ASSIGN_OR_RETURN(const auto bytes, encode(plan));
  return decode<LoadPlan>(bytes);
}

SaveRules draw_save_rules(Choices& choices) {
  SaveRules rules;
  if (choices.chance(40)) rules.owner = OwnerRule::kLowestRank;
  return rules;
}

MergeRules draw_merge_rules(Choices& choices) {
  static const std::vector<Preset> kPresets = {Preset::kNative, Preset::kHyperparallel,
                                               Preset::kTorch, Preset::kMegatron};
  static const std::vector<OwnerRule> kOwners = {OwnerRule::kBalanced, OwnerRule::kLowestRank,
                                                 OwnerRule::kExact, OwnerRule::kAll};
  static const std::vector<CoverRule> kCovers = {CoverRule::kFull, CoverRule::kDisjoint,
                                                 CoverRule::kOff};
  MergeRules rules;
  rules.preset = choices.pick(kPresets);
  rules.owner = choices.pick(kOwners);
  rules.cover = choices.pick(kCovers);
  return rules;
}

LoadRules draw_load_rules(Choices& choices) {
  LoadRules rules;
  if (choices.chance(30)) rules.missing = MissingRule::kReport;
  if (choices.chance(30)) rules.cast = CastRule::kAllow;
  if (choices.chance(30)) rules.shape = ShapeRule::kCropAndPad;
  return rules;
}

std::string check_rank(const World& stored, const GlobalSavePlan& plan, const CatalogIndex& index,
                       const World& wanted, const std::vector<State>& states, int32_t rank,
                       const LoadRules& rules) {
  const State& state = states[static_cast<size_t>(rank)];
  const Result<LoadPlan> load = load_by_wire(state, index, rules, rank);
  if (!load.ok()) return fmt::format("rank {}: {}", rank, load.status().to_string());
  const Status fits = check_load_plan(*load, state, plan.catalog);
  if (!fits.ok()) return fmt::format("rank {}: {}", rank, fits.to_string());
  const std::string wrong = check_load(stored, plan.catalog, wanted, rank, *load);
  return wrong.empty() ? "" : fmt::format("rank {}: {}", rank, wrong);
}

// What one kind of plan of a world must be: refused when the oracle says so, else right, and right
// to load from.
class PlanCheck {
 public:
  PlanCheck(const World& world, const World& wanted, const LoadRules& rules)
      : world_(world),
        wanted_(wanted),
        rules_(rules),
        states_(states_of(world)),
        readers_(states_of(wanted)),
        refusal_(reason_to_refuse(world)) {}

  const std::vector<State>& states() const { return states_; }
  bool is_refused() const { return !refusal_.empty(); }

  std::string run(const Result<GlobalSavePlan>& plan, OwnerRule owner) const {
    if (plan.ok() != refusal_.empty())
      return plan.ok() ? "a plan was made although " + refusal_ : plan.status().to_string();
    if (!plan.ok()) {
      const bool right = plan.status().code() == StatusCode::kInvalidArgument;
      return right ? "" : plan.status().to_string();
    }
    std::string wrong = check_save(world_, owner, *plan);
    const Status sound = check_catalog(plan->catalog);
    if (!sound.ok()) wrong = sound.to_string();
    const CatalogIndex index(plan->catalog);
    for (int32_t r = 0; r < world_.ranks && wrong.empty(); ++r)
      wrong = check_rank(world_, *plan, index, world_, states_, r, {});
    for (int32_t r = 0; r < wanted_.ranks && wrong.empty(); ++r)
      wrong = check_rank(world_, *plan, index, wanted_, readers_, r, rules_);
    return wrong;
  }

 private:
  const World& world_;
  const World& wanted_;
  const LoadRules& rules_;
  const std::vector<State> states_;
  const std::vector<State> readers_;
  const std::string refusal_;
};

// What is wrong with the parts of a merge, or why it should have failed.
std::string check_merge(const PlanCheck& check, const World& world, const Result<Merge>& merge,
                        const MergeRules& rules) {
  if (merge.ok()) {
    std::string wrong = check_kept(world, rules.owner, merge->merged, merge->plans, merge->kept);
    if (!wrong.empty()) return wrong;
  }
  // torch takes boxes that begin alike for copies, whatever their sizes, so it may take what is
  // wrong; so does who does not ask for a full cover.
  const bool by_begin = rules.preset == Preset::kTorch &&
                        (rules.owner == OwnerRule::kExact || rules.owner == OwnerRule::kLowestRank);
  if (check.is_refused() && (by_begin || rules.cover != CoverRule::kFull)) return "";
  if (!merge.ok()) return check.run(merge.status(), rules.owner);
  return check.run(merge->merged, rules.owner);
}

// Draws a world, saves and merges it, loads it as it was and in another way. What is wrong, or
// nothing.
std::string check_world(Choices& choices, std::string* description) {
  World world = draw_world(choices);
  const SaveRules save_rules = draw_save_rules(choices);
  const MergeRules merge_rules = draw_merge_rules(choices);
  if (choices.chance(15)) damage(choices, &world);
  const LoadRules load_rules = draw_load_rules(choices);
  const World wanted = draw_wanted(choices, world, load_rules);
  if (description != nullptr)
    *description = "saved by " + text_of(world) + "loaded by " + text_of(wanted);
  const PlanCheck check(world, wanted, load_rules);
  std::string wrong = check.run(plan_by_wire(check.states(), save_rules), save_rules.owner);
  if (!wrong.empty()) return wrong;
  wrong = check_merge(check, world, merge_by_wire(check.states(), merge_rules), merge_rules);
  if (wrong.empty()) return wrong;
  return fmt::format("merge, preset {}, owner {}, cover {}: {}",
                     static_cast<int>(merge_rules.preset), static_cast<int>(merge_rules.owner),
                     static_cast<int>(merge_rules.cover), wrong);
}

// The smallest world that fails, as text.
std::string smallest(const ChoiceList& failing) {
  const ChoiceList small = shardwright::test::shrink(
      failing,
      [](const ChoiceList& list) {
        Choices choices(list);
        return !check_world(choices, nullptr).empty();
      },
      kShrinkTries);
  Choices choices(small);
  std::string description;
  const std::string wrong = check_world(choices, &description);
  return description + wrong;
}

TEST(PlanningWorlds, ArePlannedAsTheOracleSays) {
  const uint64_t start = number_of("SHW_SEED", std::random_device{}());
  const uint64_t count =
      number_of("SHW_WORLDS", static_cast<uint64_t>(shardwright::test::rounds(10000)));
  uint64_t failures = 0;
  for (uint64_t i = 0; i < count && failures < 3; ++i) {
    Choices choices(start + i);
    if (check_world(choices, nullptr).empty()) continue;
    ++failures;
    ADD_FAILURE() << "repeat with SHW_WORLDS=1 SHW_SEED=" << start + i << "\n"
                  << smallest(choices.drawn());
  }
  RecordProperty("worlds", std::to_string(count));
  printf("%llu worlds from %llu on\n", static_cast<unsigned long long>(count),
         static_cast<unsigned long long>(start));
}

// The oracle and the shrinker must be able to say no.
TEST(PlanningWorlds, OfAWrongPlanAreFoundAndMadeSmall) {
  uint64_t found = 0;
  for (uint64_t start = 1; start < 200 && found < 5; ++start) {
    const auto fails = [](Choices& choices) {
      const World world = draw_world(choices);
      if (world.tensors.empty() || world.tensors[0].kind != EntryKind::kSharded) return false;
      const std::vector<State> states = states_of(world);
      Result<GlobalSavePlan> plan = plan_by_wire(states, {});
      if (!plan.ok() || plan->catalog.chunk_count() < 2) return false;
      plan->catalog = with_boxes(plan->catalog);
      std::swap(plan->catalog.boxes[0].offset0, plan->catalog.boxes[1].offset0);
      return !check_save(world, OwnerRule::kBalanced, *plan).empty();
    };
    Choices choices(start);
    if (!fails(choices)) continue;
    ++found;
    const ChoiceList small = shardwright::test::shrink(
        choices.drawn(),
        [&](const ChoiceList& list) {
          Choices again(list);
          return fails(again);
        },
        kShrinkTries);
    EXPECT_LE(small.size(), choices.drawn().size());
    Choices again(small);
    const World world = draw_world(again);
    EXPECT_LE(world.tensors.size(), 1U) << text_of(world);
    EXPECT_TRUE(world.objects.empty()) << text_of(world);
  }
  EXPECT_EQ(found, 5U);
}

// As the oracle of merged plans must be able to say no, that of what ranks keep must.
TEST(PlanningWorlds, OfWrongKeptNumbersAreFound) {
  const World world = [] {
    World made;
    made.ranks = 2;
    made.reversed = {false, false};
    made.tensors.push_back({"w",
                            DType::kFloat32,
                            {4},
                            EntryKind::kSharded,
                            {true, true},
                            {{box({0}, {2})}, {box({2}, {2})}}});
    made.objects.push_back({"o", EntryKind::kReplicated, {true, true}, "x"});
    return made;
  }();
  const Result<Merge> merge = merge_by_wire(states_of(world), {});
  ASSERT_TRUE(merge.ok()) << merge.status().to_string();
  const auto wrong = [&](const std::function<void(Merge&)>& damage) {
    Merge damaged = *merge;
    damage(damaged);
    return check_kept(world, OwnerRule::kBalanced, damaged.merged, damaged.plans, damaged.kept);
  };
  EXPECT_EQ(wrong([](Merge&) {}), "");
  EXPECT_NE(wrong([](Merge& m) { m.kept.pop_back(); }), "");
  EXPECT_NE(wrong([](Merge& m) { m.kept[1].pop_back(); }), "");
  EXPECT_NE(wrong([](Merge& m) { m.kept[1].push_back(kNotKept); }), "");
  EXPECT_NE(wrong([](Merge& m) { m.kept[1][0] = 0; }), "");
  EXPECT_NE(wrong([](Merge& m) { m.kept[1][0] = kNotKept; }), "");
  EXPECT_NE(wrong([](Merge& m) { std::swap(m.kept[0], m.kept[1]); }), "");
  EXPECT_NE(wrong([](Merge& m) {
              m.merged.catalog = with_boxes(m.merged.catalog);
              m.merged.catalog.boxes[0].place = 1;
            }),
            "");
}

}  // namespace
}  // namespace shardwright::plan::test
