// SPDX-License-Identifier: Apache-2.0
//
// Descriptions in flat arrays: there and back, and what is refused.
#include "core/plan/describe/describe_entries.h"

#include <gtest/gtest.h>

#include "core/plan/describe/entry_columns.h"
#include "core/plan/entry_arrays.h"
#include "tests/core/plan/described.h"

namespace shardwright::plan::test {
namespace {

std::vector<Listed> everything() {
  Listed w = shard("w", {4, 6}, {1, 0}, {2, 6});
  w.boxes.push_back(box({3, 2}, {1, 0}));
  w.attribute = "a";
  Listed rng = tensor("rng", {3});
  rng.kind = EntryKind::kRankLocal;
  rng.dtype = DType::kUint8;
  Listed step = object("step");
  step.bytes = 17;
  Listed cube = {"cube", {2, 2, 2, 1}, {box({0, 1, 0, 0}, {1, 1, 1, 1})}};
  cube.secondary = true;
  return {w, step, rng, tensor("scale", {}), object("last"), cube, Listed{"none", {2}, {}}};
}

void expect_equal(const EntryArrays& a, const EntryArrays& b) {
  ASSERT_EQ(a.count, b.count);
  const uint64_t boxes = a.box_ranges[a.count];
  for (size_t i = 0; i < a.count; ++i) {
    EXPECT_EQ(a.names.at(i), b.names.at(i));
    EXPECT_EQ(a.attributes.at(i), b.attributes.at(i));
  }
  EXPECT_TRUE(std::ranges::equal(a.dtypes, b.dtypes));
  EXPECT_TRUE(std::ranges::equal(a.shape_offsets, b.shape_offsets));
  EXPECT_TRUE(std::ranges::equal(a.box_ranges, b.box_ranges));
  EXPECT_TRUE(std::ranges::equal(a.object_sizes, b.object_sizes));
  EXPECT_TRUE(std::equal(a.shapes, a.shapes + a.shape_offsets[a.count], b.shapes));
  uint64_t values = 0;
  for (size_t i = 0; i < a.count; ++i) {
    values +=
        (a.box_ranges[i + 1] - a.box_ranges[i]) * (a.shape_offsets[i + 1] - a.shape_offsets[i]);
  }
  EXPECT_TRUE(std::equal(a.box_offsets, a.box_offsets + values, b.box_offsets));
  EXPECT_TRUE(std::equal(a.box_sizes, a.box_sizes + values, b.box_sizes));
  ASSERT_NE(b.order, nullptr);
  EXPECT_TRUE(std::equal(a.order, a.order + boxes, b.order));
  ASSERT_NE(b.secondary, nullptr);
  EXPECT_TRUE(std::equal(a.secondary, a.secondary + boxes, b.secondary));
}

TEST(Describe, PlansGiveBackWhatWasDescribed) {
  const std::vector<uint64_t> order = {6, 0, 5, 1, 2, 4, 3};
  const Result<LocalPlan> back = decode<LocalPlan>(described(everything(), {2, 3}, order));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->part.rank, 2);
  EXPECT_EQ(back->part.world_size, 3);
  const EntryColumns columns(*back);
  expect_equal(Arrays(everything(), order).arrays(), columns.arrays());
}

TEST(Describe, MergedDescriptionsHaveRanksForNumbers) {
  const std::vector<uint64_t> ranks = {3, 1};
  const Arrays arrays({shard("w", {4}, {0}, {4}), object("o")});
  EntryArrays given = arrays.arrays();
  given.numbers = ranks.data();
  given.secondary = nullptr;
  const Result<GlobalSavePlan> plan = describe_merged(given, {});
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const GlobalSavePlan back = *decode<GlobalSavePlan>(*encode(*plan));
  EXPECT_EQ(back.catalog.place_of(0), 3U);
  EXPECT_EQ(back.catalog.objects[0].place, 1U);
}

Status refused(const std::vector<Listed>& entries, std::vector<uint64_t> order = {}) {
  return describe_local(Arrays(entries, std::move(order)).arrays(), {}).status();
}

TEST(Describe, RefusesEntriesNamingThem) {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(refused({tensor("a", {1}), tensor("a", {2})}), StatusCode::kAlreadyExists, "'a'",
                 "entries[1]");
  EXPECT_FAILURE(refused({tensor("a", {1}), object("a")}), StatusCode::kAlreadyExists, "'a'");
  EXPECT_FAILURE(refused({shard("w", {4}, {3}, {2})}), StatusCode::kOutOfRange, "'w'",
                 "2 elements from 3 of 4");
  EXPECT_FAILURE(refused({shard("w", {4}, {-1}, {2})}), kInvalid, "'w'");
  EXPECT_FAILURE(refused({tensor("w", {-1})}), kInvalid, "'w'");
  EXPECT_FAILURE(refused({tensor("w", {INT64_MAX, 2})}), kInvalid, "'w'");
  EXPECT_FAILURE(refused({tensor("\xff", {1})}), kInvalid, "UTF-8");
  EXPECT_FAILURE(refused({tensor("a", {1})}, {1}), kInvalid, "order[0]");
  Listed sharded = object("o");
  sharded.kind = EntryKind::kSharded;
  EXPECT_FAILURE(refused({sharded}), kInvalid, "'o'", "sharded");
}

TEST(Describe, PatternsGiveKindsBeforeTheEntriesOwn) {
  DescribeRules rules;
  rules.kinds = {{"r*", EntryKind::kRankLocal}, {"*", EntryKind::kSharded}};
  const Arrays arrays({tensor("rng", {1}), tensor("w", {1}), object("o"), object("r")});
  const Result<LocalPlan> plan = describe_local(arrays.arrays(), rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->description.catalog.tensors[0].kind, EntryKind::kRankLocal);
  EXPECT_EQ(plan->description.catalog.tensors[1].kind, EntryKind::kSharded);
  EXPECT_EQ(plan->description.catalog.objects[0].kind, EntryKind::kReplicated);
  EXPECT_EQ(plan->description.catalog.objects[1].kind, EntryKind::kRankLocal);
}

}  // namespace
}  // namespace shardwright::plan::test
