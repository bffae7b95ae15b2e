// SPDX-License-Identifier: Apache-2.0
//
// Plans are the same bytes wherever and however often they are made. The digests of all plans of
// fixed worlds are kept in plan_digests.txt; the builds of both compilers, optimised and with
// sanitizers, must give these, so they give the same. A change of what plans say changes them:
// the failure then prints the text to keep.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/integrity/digest.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/world.h"
#include "tests/property/planning_world.h"

namespace shardwright::plan::test {
namespace {

using shardwright::test::Choices;
using Buffer = std::vector<std::byte>;

constexpr uint64_t kWorlds = 1000;

constexpr std::pair<Preset, const char*> kPresets[] = {{Preset::kNative, "native"},
                                                       {Preset::kHyperparallel, "hyperparallel"},
                                                       {Preset::kTorch, "torch"},
                                                       {Preset::kMegatron, "megatron"}};
constexpr std::pair<OwnerRule, const char*> kOwners[] = {{OwnerRule::kBalanced, "balanced"},
                                                         {OwnerRule::kLowestRank, "lowest_rank"},
                                                         {OwnerRule::kExact, "exact"},
                                                         {OwnerRule::kAll, "all"}};

// A digest of everything that was added under a name, failures included.
class Digests {
 public:
  void add(const std::string& name, std::span<const std::byte> bytes) {
    const Digest128 digest = integrity::xxh3_128(bytes);
    const std::string link = to_hex(chains_[name]) + to_hex(digest);
    chains_[name] = integrity::xxh3_128(std::as_bytes(std::span(link)));
  }
  void add(const std::string& name, const Status& failure) {
    const std::string text = failure.to_string();
    add(name, std::as_bytes(std::span(text)));
  }
  std::string text() const {
    std::string text;
    for (const auto& [name, digest] : chains_) text += fmt::format("{} {}\n", to_hex(digest), name);
    return text;
  }

 private:
  std::map<std::string, Digest128> chains_;
};

std::vector<Buffer> local_buffers(const std::vector<State>& states, Digests* digests) {
  std::vector<Buffer> buffers;
  for (const LocalPlan& local : local_plans(states)) {
    buffers.push_back(*encode(local));
    digests->add("local", buffers.back());
  }
  return buffers;
}

void add_saves(const std::vector<State>& states, Digests* digests) {
  for (const auto& [owner, name] : std::span(kOwners).first(2)) {
    SaveRules rules;
    rules.owner = owner;
    const std::string key = fmt::format("save {}", name);
    const Result<PlannedSave> plan = plan_save(states, rules);
    if (!plan.ok()) {
      digests->add(key, plan.status());
      continue;
    }
    digests->add(key, *encode(*plan));
    WriteList list;
    list.world_size = static_cast<int32_t>(plan->lists.size());
    list.generation = plan->generation;
    list.plan_digest = plan->plan_digest;
    for (const RankList& each : plan->lists) {
      list.items = each.items;
      digests->add(key, *encode(list));
      ++list.rank;
    }
  }
}

// All parts that the ranks would get.
void add_merges(const std::vector<Buffer>& buffers, Digests* digests) {
  const std::vector<std::span<const std::byte>> plans(buffers.begin(), buffers.end());
  for (const auto& [preset, preset_name] : kPresets) {
    for (const auto& [owner, owner_name] : kOwners) {
      MergeRules rules;
      rules.preset = preset;
      rules.owner = owner;
      const std::string key = fmt::format("merge {} {}", preset_name, owner_name);
      const Result<PlanParts> parts = merge_plans(plans, rules);
      if (!parts.ok()) {
        digests->add(key, parts.status());
        continue;
      }
      for (size_t part = 0; part <= buffers.size(); ++part) digests->add(key, parts->part(part));
    }
  }
}

void add_loads(const std::vector<State>& stored, const World& wanted, const LoadRules& rules,
               Digests* digests) {
  const Result<PlannedSave> plan = plan_save(stored);
  if (!plan.ok()) return;
  const CatalogIndex index(plan->catalog);
  const std::vector<State> readers = states_of(wanted);
  for (size_t r = 0; r < readers.size(); ++r) {
    const Result<LoadPlan> load = make_load_plan(readers[r], index, rules, static_cast<int32_t>(r));
    if (load.ok()) {
      digests->add("load", *encode(*load));
    } else {
      digests->add("load", load.status());
    }
  }
}

std::string digests_of_worlds() {
  Digests digests;
  for (uint64_t start = 1; start <= kWorlds; ++start) {
    Choices choices(start);
    World world = draw_world(choices);
    if (choices.chance(15)) damage(choices, &world);
    LoadRules rules;
    if (choices.chance(30)) rules.cast = CastRule::kAllow;
    if (choices.chance(30)) rules.shape = ShapeRule::kCropAndPad;
    const World wanted = draw_wanted(choices, world, rules);
    const std::vector<State> states = states_of(world);
    add_merges(local_buffers(states, &digests), &digests);
    add_saves(states, &digests);
    add_loads(states, wanted, rules, &digests);
  }
  return digests.text();
}

std::string kept_digests() {
  const char* source = std::getenv("SHW_SOURCE_DIR");
  const std::string folder = source == nullptr ? "." : source;
  std::ifstream file(folder + "/tests/property/plan_digests.txt");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PlanBytes, AreThoseOfEveryCompiler) {
  printf("compiled by %s\n", __VERSION__);
  EXPECT_EQ(digests_of_worlds(), kept_digests());
}

// Entries that were added one by one, or by a bulk add after one that failed.
State added_one_by_one(const std::vector<Holding>& holdings, const std::vector<Bytes>& objects) {
  State state;
  for (const Holding& each : holdings) {
    EXPECT_TRUE(state.add_tensors({entry_of(each)}).ok());
    EXPECT_FALSE(state.add_tensors({entry_of(each), entry_of(each)}).ok());
  }
  for (const Bytes& each : objects) {
    std::vector<ObjectEntry> one;
    one.push_back(entry_of(each));
    EXPECT_TRUE(state.add_objects(std::move(one)).ok());
  }
  return state;
}

TEST(PlanBytes, DoNotDependOnHowAStateWasFilled) {
  for (uint64_t start = 1; start <= 200; ++start) {
    Choices choices(start);
    World world = draw_world(choices);
    for (size_t r = 0; r < static_cast<size_t>(world.ranks); ++r) {
      std::vector<Holding> holdings;
      for (const TensorWorld& each : world.tensors) {
        if (each.listed[r])
          holdings.push_back({each.name, each.dtype, each.shape, each.boxes[r], each.kind});
      }
      std::vector<Bytes> objects;
      for (const ObjectWorld& each : world.objects) {
        if (each.listed[r]) objects.push_back({each.name, each.bytes, each.kind});
      }
      std::vector<State> pair;
      pair.push_back(state_of(holdings, objects));
      pair.push_back(added_one_by_one(holdings, objects));
      const auto first = make_local_plan(pair[0], {}, {0, 1}, {});
      const auto second = make_local_plan(pair[1], {}, {0, 1}, {});
      ASSERT_EQ(*encode(*first), *encode(*second)) << text_of(world);
    }
  }
}

// Chunks and who writes them, by name.
std::set<std::string> stored_by(const GlobalSavePlan& plan) {
  std::set<std::string> stored;
  const Catalog& catalog = plan.catalog;
  for (size_t c = 0; c < catalog.chunk_count(); ++c) {
    const TensorRecord& tensor = catalog.tensors[catalog.tensor_of(c)];
    stored.insert(fmt::format("{}@{} {} number {} by {}", catalog.tensor_name(catalog.tensor_of(c)),
                              tensor.rank, box_text(catalog.chunk_box(c)), c - tensor.chunk_begin,
                              catalog.place_of(c)));
  }
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    stored.insert(fmt::format("object {}@{} by {}", catalog.object_name(i), catalog.objects[i].rank,
                              catalog.objects[i].place));
  }
  return stored;
}

// Who writes what, and the numbers of chunks, are the same when ranks list equal entries in another
// order.
TEST(PlanBytes, SayTheSameInWhateverOrderEntriesAreListed) {
  for (uint64_t start = 1; start <= 500; ++start) {
    Choices choices(start);
    World world = draw_world(choices);
    SaveRules rules;
    rules.owner = OwnerRule::kLowestRank;
    world.reversed.assign(world.reversed.size(), false);
    const std::set<std::string> forwards = stored_by(planned(states_of(world), rules));
    for (size_t r = 0; r < world.reversed.size(); ++r) world.reversed[r] = choices.chance(50);
    EXPECT_EQ(stored_by(planned(states_of(world), rules)), forwards) << text_of(world);
    world.reversed.assign(world.reversed.size(), true);
    EXPECT_EQ(stored_by(planned(states_of(world), rules)), forwards) << text_of(world);
  }
}

}  // namespace
}  // namespace shardwright::plan::test
