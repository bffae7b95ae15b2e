// SPDX-License-Identifier: Apache-2.0
//
// Whole save planning against a dense oracle: one owner mark per element.
#include "core/plan/save/global_plan.h"

#include <algorithm>
#include <set>

#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "tests/core/plan/described.h"
#include "tests/core/plan/random_world.h"
#include "tests/core/plan/read_list.h"

namespace shardwright::plan::test {
namespace {

// Calls visit(flat index) for every element of the box in a tensor of this shape.
template <typename Visit>
void for_each_element(std::span<const int64_t> shape, const Box& from, const Visit& visit) {
  if (box_is_empty(from)) return;
  Dims at = from.offsets;
  while (true) {
    int64_t index = 0;
    for (size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
    visit(static_cast<size_t>(index));
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == from.offsets[d - 1] + from.sizes[d - 1]) {
      at[d - 1] = from.offsets[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

size_t element_count(std::span<const int64_t> shape) {
  return static_cast<size_t>(box_element_count(whole_box(shape)));
}

// Each element of each tensor (of each rank for rank_local ones) lies in exactly one stored chunk.
void expect_covered(const PlannedSave& plan, const std::vector<WorldTensor>& tensors,
                    int32_t ranks) {
  for (const WorldTensor& tensor : tensors) {
    for (int32_t owner = 0; owner < ranks; ++owner) {
      const int32_t key = tensor.kind == EntryKind::kRankLocal ? owner : -1;
      const int64_t found = CatalogIndex(plan.catalog).find_tensor(tensor.name, key);
      ASSERT_GE(found, 0) << tensor.name;
      const TensorRecord& record = plan.catalog.tensors[static_cast<size_t>(found)];
      EXPECT_EQ(record.rank, key);
      std::vector<int> marks(element_count(tensor.shape), 0);
      for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
        for_each_element(tensor.shape, plan.catalog.chunk_box(c), [&](size_t i) { ++marks[i]; });
      }
      EXPECT_TRUE(std::all_of(marks.begin(), marks.end(), [](int mark) { return mark == 1; }))
          << tensor.name;
      if (key < 0) break;
    }
  }
}

// The write lists say the same as the catalog: each chunk is written once, by a rank that holds its
// box, at its place.
void expect_lists_agree(const PlannedSave& plan, const std::vector<State>& states) {
  std::vector<size_t> next(states.size(), 0);  // item of each rank's list
  ASSERT_EQ(plan.lists.size(), states.size());
  for (size_t c = 0; c < plan.catalog.chunk_count(); ++c) {
    const uint32_t rank = plan.catalog.place_of(c);
    ASSERT_LT(rank, plan.lists.size());
    const std::vector<WriteItem>& items = plan.lists[rank].items;
    ASSERT_LT(next[rank], items.size());
    const WriteItem& item = items[next[rank]++];
    ASSERT_NE(item.piece, kObjectPiece);
    const TensorRef entry = states[rank].tensors()[item.entry];
    EXPECT_EQ(entry.name, plan.catalog.tensor_name(plan.catalog.tensor_of(c)));
    EXPECT_EQ(entry.pieces[item.piece].box, plan.catalog.chunk_box(c));
    EXPECT_EQ(item.size_bytes, plan.catalog.chunk_bytes(c));
  }
  for (size_t i = 0; i < plan.catalog.objects.size(); ++i) {
    const uint32_t rank = plan.catalog.objects[i].place;
    ASSERT_LT(next[rank], plan.lists[rank].items.size());
    const WriteItem& item = plan.lists[rank].items[next[rank]++];
    ASSERT_EQ(item.piece, kObjectPiece);
    EXPECT_EQ(states[rank].objects()[item.entry].name, plan.catalog.object_name(i));
  }
  for (size_t r = 0; r < states.size(); ++r) EXPECT_EQ(next[r], plan.lists[r].items.size());
}

// Every wanted element is read from exactly one place: the chunk that stores it.
void expect_filled(const LoadPlan& plan, const State& state, const Catalog& stored) {
  EXPECT_TRUE(check_load_plan(plan, state, stored).ok())
      << check_load_plan(plan, state, stored).to_string();
  for (uint32_t t = 0; t < state.tensors().size(); ++t) {
    const TensorRef entry = state.tensors()[t];
    for (uint32_t p = 0; p < entry.pieces.size(); ++p) {
      std::vector<int> wanted(element_count(entry.global_shape), 0);
      for_each_element(entry.global_shape, entry.pieces[p].box, [&](size_t i) { wanted[i] = 1; });
      for (const ReadItem& read : reads_of(plan)) {
        if (read.entry != t || read.piece != p) continue;
        const Box stored_box = stored.chunk_box(read.chunk);
        EXPECT_EQ(intersect(stored_box, read.box), read.box);
        EXPECT_EQ(stored.tensor_name(stored.tensor_of(read.chunk)), entry.name);
        for_each_element(entry.global_shape, read.box, [&](size_t i) { --wanted[i]; });
      }
      EXPECT_TRUE(std::all_of(wanted.begin(), wanted.end(), [](int each) { return each == 0; }))
          << entry.name;
    }
  }
}

void save_and_load_one_world(shardwright::test::RandomSource& random) {
  const std::vector<WorldTensor> tensors = random_tensors(random);
  const auto ranks = static_cast<int32_t>(random.between(1, 6));
  const std::vector<State> states = random_states(random, tensors, ranks);
  SaveRules rules;
  rules.owner = random.chance(50) ? OwnerRule::kBalanced : OwnerRule::kLowestRank;
  const PlannedSave plan = planned(states, rules);
  ASSERT_TRUE(check_catalog(plan.catalog).ok()) << check_catalog(plan.catalog).to_string();
  ASSERT_TRUE(prove_all_covers(plan.catalog).ok());
  expect_covered(plan, tensors, ranks);
  expect_lists_agree(plan, states);
  // rank_local entries exist for the ranks that saved; all others load on any number of ranks.
  std::vector<WorldTensor> shared;
  for (const WorldTensor& tensor : tensors) {
    if (tensor.kind != EntryKind::kRankLocal) shared.push_back(tensor);
  }
  const auto readers = static_cast<int32_t>(random.between(1, 6));
  const std::vector<State> wanted = random_states(random, shared, readers);
  const CatalogIndex index(plan.catalog);
  for (int32_t r = 0; r < readers; ++r) {
    const State& state = wanted[static_cast<size_t>(r)];
    const Result<LoadPlan> load = make_load_plan(state, index, {}, r);
    ASSERT_TRUE(load.ok()) << load.status().to_string();
    expect_filled(*load, state, plan.catalog);
  }
  for (int32_t r = 0; r < ranks; ++r) {
    const Result<LoadPlan> load = make_load_plan(states[static_cast<size_t>(r)], index, {}, r);
    ASSERT_TRUE(load.ok()) << load.status().to_string();
    expect_filled(*load, states[static_cast<size_t>(r)], plan.catalog);
  }
}

TEST(GlobalPlan, CoversRandomWorldsAndFillsThemInAnotherLayout) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) save_and_load_one_world(random);
}

TEST(GlobalPlan, IsAPureFunctionOfItsInputs) {
  shardwright::test::RandomSource random;
  const std::vector<WorldTensor> tensors = random_tensors(random);
  const std::vector<State> states = random_states(random, tensors, 4);
  const PlannedSave first = planned(states);
  const PlannedSave second = planned(states);
  EXPECT_EQ(first.plan_digest, second.plan_digest);
  EXPECT_NE(first.plan_digest, Digest128{});
  for (size_t r = 0; r < states.size(); ++r) EXPECT_EQ(first.lists[r].items, second.lists[r].items);
}

TEST(GlobalPlan, MergesBoxesThatAreSplitInDifferentDimensions) {
  // Rank 0 cuts columns, rank 1 cuts rows, rank 2 holds a corner: their split masks differ.
  const Dims shape{4, 6, 5};
  const std::vector<State> states = [&] {
    std::vector<State> all;
    all.push_back(state_of({{"w", DType::kFloat32, shape, {box({0, 0, 0}, {4, 3, 5})}}}));
    all.push_back(state_of({{"w", DType::kFloat32, shape, {box({0, 3, 0}, {2, 3, 5})}}}));
    all.push_back(state_of(
        {{"w", DType::kFloat32, shape, {box({2, 3, 0}, {2, 3, 1}), box({2, 3, 1}, {2, 3, 4})}}}));
    return all;
  }();
  const PlannedSave plan = planned(states);
  ASSERT_EQ(plan.catalog.chunk_count(), 4U);
  EXPECT_EQ(plan.catalog.tensors[0].split_mask, 0b111U);
  EXPECT_EQ(plan.catalog.chunk_box(0), box({0, 0, 0}, {4, 3, 5}));
  EXPECT_EQ(plan.catalog.chunk_box(3), box({2, 3, 1}, {2, 3, 4}));
}

TEST(GlobalPlan, NamesTheRanksOfAnOverlap) {
  std::vector<State> states;
  states.push_back(state_of({{"w", DType::kFloat32, {8}, {box({0}, {5})}}}));
  states.push_back(state_of({{"w", DType::kFloat32, {8}, {box({4}, {4})}}}));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "'w'", "[0:5] of rank 0",
                 "[4:8] of rank 1");
}

TEST(GlobalPlan, NamesTheBoxOfAHole) {
  std::vector<State> states;
  states.push_back(state_of({{"w", DType::kFloat32, {8, 2}, {box({0, 0}, {3, 2})}}}));
  states.push_back(state_of({{"w", DType::kFloat32, {8, 2}, {box({4, 0}, {4, 2})}}}));
  const Status status = plan_save(states).status();
  EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "no rank holds box [3:4, 0:2]");
  EXPECT_EQ(status.detail("tensor"), "w");
  EXPECT_EQ(status.detail("box"), "[3:4, 0:2]");
}

TEST(GlobalPlan, RefusesABoxThatARankListsTwice) {
  std::vector<State> states;
  states.push_back(
      state_of({{"w", DType::kFloat32, {4}, {box({0}, {2}), box({0}, {2}), box({2}, {2})}}}));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "rank 0", "[0:2] twice",
                 "overlaps");
}

TEST(GlobalPlan, NamesTheRankOfASelfOverlap) {
  std::vector<State> states;
  states.push_back(state_of({{"w", DType::kFloat32, {4}, {box({0}, {3}), box({2}, {2})}}}));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "[0:3] of rank 0",
                 "[2:4] of rank 0");
}

// A host may list boxes without elements; what is stored does not depend on them.
TEST(GlobalPlan, BoxesWithoutElementsLeaveNoTrace) {
  std::vector<LocalPlan> plain;
  std::vector<LocalPlan> with_empty;
  for (int32_t r = 0; r < 2; ++r) {
    Listed rows = shard("w", {4, 6, 8, 3}, {2 * r, 0, 0, 0}, {2, 6, 8, 3});
    const auto local = [r](const Listed& listed) {
      DescribeRules rules;
      rules.rank = r;
      rules.world_size = 2;
      return *describe_local(Arrays({listed, tensor("v", {5})}).arrays(), rules);
    };
    plain.push_back(local(rows));
    rows.boxes.push_back(box({3, 2, 1, 0}, {1, 0, 4, 1}));
    with_empty.push_back(local(rows));
  }
  for (LocalPlan& each : with_empty) ASSERT_EQ(each.part.boxes.size(), 3U);
  const Result<PlannedSave> expected = plan_locals(plain, {});
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  for (const size_t odd : {size_t{0}, size_t{1}, size_t{2}}) {
    std::vector<LocalPlan> locals = with_empty;
    if (odd < 2) locals[odd] = plain[odd];
    const Result<PlannedSave> found = plan_locals(locals, {});
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->plan_digest, expected->plan_digest);
  }
}

TEST(GlobalPlan, RefusesNoRanks) {
  EXPECT_FAILURE(plan_locals({}, {}).status(), StatusCode::kInvalidArgument, "no local plan");
}

// Names of what each rank writes.
std::vector<std::vector<std::string>> written_names(const PlannedSave& plan,
                                                    const std::vector<State>& states) {
  std::vector<std::vector<std::string>> names;
  for (size_t r = 0; r < states.size(); ++r) {
    names.emplace_back();
    for (const WriteItem& item : plan.lists[r].items)
      names.back().emplace_back(states[r].tensors().name(item.entry));
  }
  return names;
}

TEST(GlobalPlan, PresetsWithExactOwnersChooseAsTheirOriginals) {
  std::vector<State> states;
  for (int r = 0; r < 2; ++r)
    states.push_back(state_of({whole("a", {1}), whole("b", {6}), whole("c", {4})}));
  const auto names = [&](Preset preset) {
    SaveRules rules;
    rules.preset = preset;
    rules.owner = OwnerRule::kExact;
    return written_names(planned(states, rules), states);
  };
  using Names = std::vector<std::vector<std::string>>;
  EXPECT_EQ(names(Preset::kNative), (Names{{"b"}, {"a", "c"}}));  // as balanced
  EXPECT_EQ(names(Preset::kHyperparallel), (Names{{"a", "c"}, {"b"}}));
  EXPECT_EQ(names(Preset::kTorch), (Names{{"a", "c"}, {"b"}}));
  EXPECT_EQ(names(Preset::kMegatron), (Names{{"b"}, {"a", "c"}}));
}

TEST(GlobalPlan, RefusesToStoreEveryReplica) {
  std::vector<State> states;
  states.push_back(state_of({whole("w", {2})}));
  SaveRules rules;
  rules.owner = OwnerRule::kAll;
  EXPECT_FAILURE(plan_locals(local_plans(states), rules).status(), StatusCode::kInvalidArgument,
                 "'all'");
}

TEST(GlobalPlan, PlansAnEmptyState) {
  std::vector<State> states;
  states.push_back(state_of({}));
  states.push_back(state_of({}));
  const PlannedSave plan = planned(states);
  EXPECT_EQ(plan.lists.size(), 2U);
  EXPECT_TRUE(plan.lists[0].items.empty());
}

}  // namespace
}  // namespace shardwright::plan::test
