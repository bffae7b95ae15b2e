// SPDX-License-Identifier: Apache-2.0
//
// Layouts of units: the vectors of rows, the same boxes as core/layout gives, cover of every
// parameter, digests, refusals.
#include "core/hsdp/unit_layout.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/layout/layout.h"
#include "tests/support/random_source.h"

namespace shardwright::hsdp {
namespace {

ParameterSpec parameter(std::string fqn, Dims shape, int32_t dim = 0) {
  ParameterSpec spec;
  spec.fqn = std::move(fqn);
  spec.shape = std::move(shape);
  spec.shard_dim = dim;
  return spec;
}

UnitLayout layout_of(std::vector<ParameterSpec> specs, int32_t world,
                     LayoutMode mode = LayoutMode::kRow) {
  auto layout = UnitLayout::create(std::move(specs), world, mode);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return std::move(layout).value();
}

std::vector<int64_t> rows_of(const UnitLayout& layout, size_t parameter) {
  std::vector<int64_t> rows;
  for (int32_t rank = 0; rank < layout.world(); ++rank)
    rows.push_back(layout.rows(parameter, rank).size);
  return rows;
}

struct RowVector {
  int64_t rows;
  int32_t world;
  std::vector<int64_t> expected;
};

TEST(UnitLayout, RowsAreThoseOfTorchChunk) {
  const std::vector<RowVector> vectors = {
      {13, 4, {4, 4, 4, 1}}, {9, 4, {3, 3, 3, 0}}, {5, 4, {2, 2, 1, 0}}, {3, 4, {1, 1, 1, 0}},
      {29, 3, {10, 10, 9}},  {1, 2, {1, 0}},       {0, 2, {0, 0}},       {8, 1, {8}}};
  for (const RowVector& each : vectors) {
    const UnitLayout layout = layout_of({parameter("w", {each.rows, 5})}, each.world);
    EXPECT_EQ(rows_of(layout, 0), each.expected) << each.rows << "/" << each.world;
    const int64_t padded = each.expected.front() * 5;
    EXPECT_EQ(layout.shard_elements(), padded);
    EXPECT_EQ(layout.padding_elements(), padded * each.world - each.rows * 5);
  }
}

TEST(UnitLayout, EmptyShardsKeepTheOtherDimensionsAndBeginAtTheEnd) {
  const UnitLayout layout = layout_of({parameter("w", {3, 7})}, 4);
  EXPECT_EQ(layout.local_shape(0, 2), (Dims{1, 7}));
  EXPECT_EQ(layout.local_shape(0, 3), (Dims{0, 7}));
  EXPECT_EQ(layout.box(0, 3).offsets, (Dims{3, 0}));
}

TEST(UnitLayout, ParametersLieBackToBackEachPaddedAlike) {
  const UnitLayout layout =
      layout_of({parameter("a", {5, 2}), parameter("b", {4, 6}, -1), parameter("c", {3})}, 2);
  EXPECT_EQ(layout.slot(0).shard_rows, 3);
  EXPECT_EQ(layout.local_offset(1, 1), 6);   // 3 rows of 2
  EXPECT_EQ(layout.local_offset(2, 0), 18);  // and 4 x 3 of b
  EXPECT_EQ(layout.shard_elements(), 20);
  EXPECT_EQ(layout.gathered_elements(), 40);
  EXPECT_EQ(layout.padding_elements(), 40 - 10 - 24 - 3);
  EXPECT_EQ(layout.local_shape(1, 1), (Dims{4, 3}));
  EXPECT_EQ(layout.box(1, 1).offsets, (Dims{0, 3}));
  EXPECT_EQ(layout.specs()[1].shard_dim, 1);
}

// The geometry is one thing: that of core/layout.
TEST(UnitLayout, BoxesAreThoseOfAShardedDimension) {
  test::RandomSource random;
  for (int i = 0; i < 500; ++i) {
    const auto world = static_cast<int32_t>(random.between(1, 9));
    const auto rank_count = random.between(1, 4);
    const auto dim =
        static_cast<int32_t>(random.chance(60) ? 0 : random.between(0, rank_count - 1));
    Dims shape;
    std::vector<int64_t> extents;
    for (int64_t d = 0; d < rank_count; ++d)
      extents.push_back(random.between(0, 20) * (d == dim && dim != 0 ? world : 1));
    shape = Dims(std::span<const int64_t>(extents));
    const int32_t given = random.chance(50) ? dim : dim - static_cast<int32_t>(rank_count);
    const UnitLayout layout = layout_of({parameter("w", shape, given)}, world);
    const auto expected =
        Layout::create(Mesh{{world}, {}, {}}, {Placement{PlacementKind::kShard, dim}});
    ASSERT_TRUE(expected.ok());
    for (int32_t rank = 0; rank < world; ++rank) {
      const auto pieces = (*expected)->pieces(shape, rank);
      ASSERT_TRUE(pieces.ok());
      ASSERT_EQ(pieces->size(), 1U);
      ASSERT_EQ(layout.box(0, rank), pieces->front().box) << box_text(layout.box(0, rank));
    }
  }
}

TEST(UnitLayout, RaggedParametersAreContiguousInTheShardsOfAllRanks) {
  const UnitLayout layout =
      layout_of({parameter("a", {5, 4}), parameter("b", {7}), parameter("c", {3, 3})}, 4,
                LayoutMode::kRagged);
  EXPECT_EQ(layout.slot(0).offset_in_unit, 0);
  for (size_t p = 0; p < layout.size(); ++p) {
    int64_t next = 0;
    for (int32_t rank = 0; rank < 4; ++rank) {
      const IndexRange held = layout.rows(p, rank);
      if (held.size == 0) continue;
      EXPECT_EQ(held.begin, next);
      next += held.size;
      EXPECT_EQ(layout.shard_elements() * rank + layout.local_offset(p, rank),
                layout.slot(p).offset_in_unit + held.begin * layout.slot(p).row_elements);
    }
    EXPECT_EQ(next, layout.slot(p).rows);
  }
  EXPECT_EQ(layout.shard_elements(), 12);  // nothing from 9 on to 11 would do
}

TEST(UnitLayout, ReplicatedParametersHaveMemoryOfTheirOwn) {
  ParameterSpec scalar = parameter("scale", {});
  scalar.replicate = true;
  ParameterSpec bias = parameter("bias", {3});
  bias.replicate = true;
  const UnitLayout layout = layout_of({scalar, parameter("w", {4, 2}), bias}, 2);
  EXPECT_EQ(layout.shard_elements(), 4);
  EXPECT_EQ(layout.replicated_elements(), 4);
  EXPECT_EQ(layout.local_offset(2, 1), 1);
  EXPECT_EQ(layout.box(2, 1), whole_box(Dims{3}));
  EXPECT_EQ(layout.local_shape(0, 1), Dims{});
  EXPECT_EQ(layout.padding_elements(), 0);
}

TEST(UnitLayout, WhatIsLeftOutHasNoRoomInRows) {
  const UnitLayout layout =
      layout_of({parameter("a", {5, 2}), parameter("b", {3}), parameter("c", {4})}, 2);
  const UnitLayout kept = layout.keeping({false, true, true});
  EXPECT_EQ(kept.local_offset(1, 0), 0);
  EXPECT_EQ(kept.local_offset(2, 0), 2);
  EXPECT_EQ(kept.shard_elements(), 4);
  EXPECT_EQ(kept.padding_elements(), 1);
  EXPECT_TRUE(box_is_empty(kept.box(0, 0)));
  EXPECT_EQ(kept.box(1, 1), layout.box(1, 1));
  EXPECT_NE(kept.digest(), layout.digest());
  EXPECT_EQ(layout.keeping({true, true, true}).digest(), layout.digest());
}

TEST(UnitLayout, WhatIsLeftOutOfARaggedUnitIsPadding) {
  const UnitLayout layout =
      layout_of({parameter("a", {4, 2}), parameter("b", {4})}, 2, LayoutMode::kRagged);
  const UnitLayout kept = layout.keeping({false, true});
  EXPECT_EQ(kept.shard_elements(), layout.shard_elements());
  EXPECT_EQ(kept.padding_elements(), layout.padding_elements() + 8);
  EXPECT_EQ(kept.box(1, 1), layout.box(1, 1));
  EXPECT_TRUE(box_is_empty(kept.box(0, 0)));
}

TEST(UnitLayout, AUnitWithoutParametersIsEmpty) {
  for (const LayoutMode mode : {LayoutMode::kRow, LayoutMode::kRagged}) {
    const UnitLayout layout = layout_of({}, 3, mode);
    EXPECT_EQ(layout.shard_elements(), 0);
    EXPECT_EQ(layout.dtype(), DType::kInvalid);
  }
}

TEST(UnitLayout, TheDigestShowsEveryDifference) {
  const auto digest_of = [](const std::function<void(ParameterSpec*)>& change, int32_t world,
                            LayoutMode mode) {
    ParameterSpec spec = parameter("w", {4, 4});
    change(&spec);
    return layout_of({spec}, world, mode).digest();
  };
  const auto same = [](ParameterSpec*) {};
  const Digest128 digest = digest_of(same, 2, LayoutMode::kRow);
  EXPECT_EQ(digest_of(same, 2, LayoutMode::kRow), digest);
  EXPECT_NE(digest_of(same, 4, LayoutMode::kRow), digest);
  EXPECT_NE(digest_of(same, 2, LayoutMode::kRagged), digest);
  const std::vector<std::function<void(ParameterSpec*)>> changes = {
      [](ParameterSpec* spec) { spec->fqn = "v"; },
      [](ParameterSpec* spec) { spec->dtype = DType::kBfloat16; },
      [](ParameterSpec* spec) { spec->shape = {2, 8}; },
      [](ParameterSpec* spec) { spec->shard_dim = 1; },
      [](ParameterSpec* spec) { spec->frozen = true; },
      [](ParameterSpec* spec) { spec->replicate = true; },
      [](ParameterSpec* spec) { spec->aliases = {"v"}; },
  };
  for (const auto& change : changes) EXPECT_NE(digest_of(change, 2, LayoutMode::kRow), digest);
  // A negative dimension is another way to write the same.
  EXPECT_EQ(digest_of([](ParameterSpec* spec) { spec->shard_dim = -2; }, 2, LayoutMode::kRow),
            digest);
}

void expect_refused(std::vector<ParameterSpec> specs, int32_t world, LayoutMode mode,
                    const std::vector<std::string>& words) {
  const auto layout = UnitLayout::create(std::move(specs), world, mode);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().code(), StatusCode::kInvalidArgument);
  for (const std::string& word : words) {
    EXPECT_NE(layout.status().message().find(word), std::string_view::npos)
        << layout.status().to_string();
  }
}

TEST(UnitLayout, RefusesUnevenDimensionsNamingAll) {
  expect_refused({parameter("layer.w", {4, 6}, -1)}, 4, LayoutMode::kRow,
                 {"layer.w", "dimension 1", "size 6", "world size 4"});
}

TEST(UnitLayout, RefusesWhatCannotBeSharded) {
  constexpr LayoutMode kRow = LayoutMode::kRow;
  expect_refused({parameter("w", {})}, 2, kRow, {"w", "one element"});
  expect_refused({parameter("w", {4}, 1)}, 2, kRow, {"w", "dimension 1"});
  expect_refused({parameter("w", {4}, -2)}, 2, kRow, {"w", "dimension -2"});
  expect_refused({parameter("w", {4, -1})}, 2, kRow, {"w", "shape"});
  expect_refused({parameter("w", {4, 4}, 1)}, 2, LayoutMode::kRagged, {"w", "ragged"});
  expect_refused({parameter("w", Dims(65, 1))}, 2, kRow, {"w", "65 dimensions"});
  expect_refused({parameter("w", {4})}, 0, kRow, {"0 ranks"});
  expect_refused({parameter("w", {4})}, 2, static_cast<LayoutMode>(2), {"layout mode"});
  ParameterSpec spec = parameter("w", {4});
  spec.dtype = DType::kInt4;
  expect_refused({spec}, 2, kRow, {"w", "int4"});
  spec.dtype = DType::kInvalid;
  expect_refused({spec}, 2, kRow, {"w", "dtype"});
  spec.dtype = DType::kBfloat16;
  expect_refused({parameter("v", {4}), spec}, 2, kRow, {"w", "v", "bfloat16", "float32"});
}

TEST(UnitLayout, RefusesNamesThatComeTwice) {
  ParameterSpec tied = parameter("head.w", {4});
  tied.aliases = {"embedding.w"};
  expect_refused({parameter("w", {4}), parameter("w", {4})}, 2, LayoutMode::kRow, {"w", "twice"});
  expect_refused({parameter("embedding.w", {4}), tied}, 2, LayoutMode::kRow,
                 {"head.w", "embedding.w"});
}

TEST(UnitLayout, RefusesWhatDoesNotFit63Bits) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2;
  for (const LayoutMode mode : {LayoutMode::kRow, LayoutMode::kRagged}) {
    expect_refused({parameter("a", {kHuge}), parameter("b", {kHuge}), parameter("c", {kHuge})}, 2,
                   mode, {"63 bits"});
  }
  expect_refused({parameter("a", {1, kHuge})}, 4, LayoutMode::kRow, {"63 bits"});
}

}  // namespace
}  // namespace shardwright::hsdp
