// SPDX-License-Identifier: Apache-2.0
//
// Matches of wanted boxes and chunks: the conformance vectors of both originals, and random boxes
// compared with looking at every pair.
#include "core/plan/load/box_match.h"

#include <algorithm>
#include <tuple>

#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

constexpr BoxMatchRules kHyperParallel{MatchOrder::kWantedOuter, EmptyMatch::kNone,
                                       CopyMatch::kAll};
constexpr BoxMatchRules kTorch{MatchOrder::kSweep, EmptyMatch::kStrictlyInside, CopyMatch::kAll};

struct Row {
  uint64_t wanted;
  uint64_t chunk;
  Dims wanted_offsets;
  Dims stored_offsets;
  Dims lengths;
  friend bool operator==(const Row&, const Row&) = default;
  friend auto operator<=>(const Row& a, const Row& b) {
    return std::tie(a.wanted, a.chunk) <=> std::tie(b.wanted, b.chunk);
  }
};

std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.wanted << " <- " << row.chunk << " at "
             << box_text({row.wanted_offsets, row.lengths}) << " from "
             << box_text({row.stored_offsets, row.lengths});
}

std::vector<Row> rows_of(const BoxMatches& matches, size_t dimensions) {
  const auto part = [dimensions](const std::vector<int64_t>& column, size_t row) {
    return Dims(std::span(column).subspan(row * dimensions, dimensions));
  };
  std::vector<Row> rows;
  for (size_t i = 0; i < matches.chunks.size(); ++i) {
    rows.push_back({matches.wanted[i], matches.chunks[i], part(matches.wanted_offsets, i),
                    part(matches.stored_offsets, i), part(matches.lengths, i)});
  }
  return rows;
}

std::vector<Row> match(const Dims& shape, const std::vector<Box>& stored,
                       const std::vector<Box>& wanted, const BoxMatchRules& rules) {
  const Catalog catalog = catalog_of(shape, stored);
  BoxMatches matches;
  match_boxes(CatalogIndex(catalog), 0, wanted, rules, &matches);
  std::vector<Row> rows = rows_of(matches, shape.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (uint64_t row = matches.begins[i]; row < matches.ends[i]; ++row)
      EXPECT_EQ(matches.wanted[row], i);
  }
  return rows;
}

std::vector<Box> rows_of_height(int64_t height, const Dims& shape) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < shape[0]; i += height) boxes.push_back(box({i, 0}, {height, shape[1]}));
  return boxes;
}

const std::vector<Box> kTiles = {box({0, 0}, {2, 2}), box({0, 2}, {2, 2}), box({2, 0}, {2, 2}),
                                 box({2, 2}, {2, 2})};

struct Vector {
  Dims shape;
  std::vector<Box> stored;
  std::vector<Box> wanted;
  std::vector<Row> rows;
};

// hyperparallel, create_read_items_for_chunk_list.
std::vector<Vector> hyperparallel_vectors() {
  const Box all = whole_box(Dims{4, 4});
  return {
      {{8, 4}, rows_of_height(2, {8, 4}), {box({2, 0}, {2, 4})}, {{0, 1, {0, 0}, {0, 0}, {2, 4}}}},
      {{8, 4},
       rows_of_height(1, {8, 4}),
       {box({2, 0}, {2, 4})},
       {{0, 2, {0, 0}, {0, 0}, {1, 4}}, {0, 3, {1, 0}, {0, 0}, {1, 4}}}},
      {{8, 4}, rows_of_height(2, {8, 4}), {box({3, 0}, {1, 4})}, {{0, 1, {0, 0}, {1, 0}, {1, 4}}}},
      {{4, 4},
       rows_of_height(2, {4, 4}),
       {box({0, 2}, {4, 2})},
       {{0, 0, {0, 0}, {0, 2}, {2, 2}}, {0, 1, {2, 0}, {0, 2}, {2, 2}}}},
      {{4, 4},
       kTiles,
       {all},
       {{0, 0, {0, 0}, {0, 0}, {2, 2}},
        {0, 1, {0, 2}, {0, 0}, {2, 2}},
        {0, 2, {2, 0}, {0, 0}, {2, 2}},
        {0, 3, {2, 2}, {0, 0}, {2, 2}}}},
      {{4, 4}, {all}, {box({2, 0}, {2, 4})}, {{0, 0, {0, 0}, {2, 0}, {2, 4}}}},
      {{}, {box({}, {})}, {box({}, {})}, {{0, 0, {}, {}, {}}}},
      {{0, 4}, {box({0, 0}, {0, 4})}, {box({0, 0}, {0, 4})}, {}},
      {{3}, {box({0}, {3}), box({3}, {0})}, {box({0}, {3})}, {{0, 0, {0}, {0}, {3}}}},
      {{6},
       {box({0}, {3}), box({3}, {3})},
       {box({0}, {2}), box({2}, {4})},
       {{0, 0, {0}, {0}, {2}}, {1, 0, {0}, {2}, {1}}, {1, 1, {1}, {0}, {3}}}},
      {{4, 4}, {all, all}, {all}, {{0, 0, {0, 0}, {0, 0}, {4, 4}}, {0, 1, {0, 0}, {0, 0}, {4, 4}}}},
      {{4},
       {box({0}, {2}), box({3}, {1})},
       {box({0}, {4})},
       {{0, 0, {0}, {0}, {2}}, {0, 1, {3}, {0}, {1}}}},
  };
}

TEST(BoxMatch, TakesTheVectorsOfHyperParallel) {
  for (const Vector& each : hyperparallel_vectors())
    EXPECT_EQ(match(each.shape, each.stored, each.wanted, kHyperParallel), each.rows);
}

TEST(BoxMatch, KeepsOneOfEqualChunksWhenAsked) {
  BoxMatchRules rules = kHyperParallel;
  rules.copies = CopyMatch::kFirst;
  const Box all = whole_box(Dims{4, 4});
  EXPECT_EQ(match({4, 4}, {all, all}, {all}, rules),
            (std::vector<Row>{{0, 0, {0, 0}, {0, 0}, {4, 4}}}));
}

// torch 2.15, create_read_items_for_chunk_list.
std::vector<Vector> torch_vectors() {
  std::vector<Box> pairs;
  for (int64_t i = 0; i < 8; ++i) pairs.push_back(box({2 * i}, {2}));
  return {
      {{16},
       pairs,
       {box({0}, {6}), box({6}, {6}), box({12}, {4})},
       {{0, 0, {0}, {0}, {2}},
        {0, 1, {2}, {0}, {2}},
        {0, 2, {4}, {0}, {2}},
        {1, 3, {0}, {0}, {2}},
        {1, 4, {2}, {0}, {2}},
        {1, 5, {4}, {0}, {2}},
        {2, 6, {0}, {0}, {2}},
        {2, 7, {2}, {0}, {2}}}},
      {{4, 4},
       kTiles,
       {box({1, 1}, {2, 3})},
       {{0, 0, {0, 0}, {1, 1}, {1, 1}},
        {0, 1, {0, 1}, {1, 0}, {1, 2}},
        {0, 2, {1, 0}, {0, 1}, {1, 1}},
        {0, 3, {1, 1}, {0, 0}, {1, 2}}}},
      {{8, 4},
       {box({6, 0}, {2, 4}), box({0, 0}, {2, 4}), box({4, 0}, {2, 4}), box({2, 0}, {2, 4})},
       {box({5, 0}, {3, 4}), box({0, 0}, {5, 4})},
       {{1, 1, {0, 0}, {0, 0}, {2, 4}},
        {1, 3, {2, 0}, {0, 0}, {2, 4}},
        {1, 2, {4, 0}, {0, 0}, {1, 4}},
        {0, 2, {0, 0}, {1, 0}, {1, 4}},
        {0, 0, {1, 0}, {0, 0}, {2, 4}}}},
      {{}, {box({}, {})}, {box({}, {})}, {{0, 0, {}, {}, {}}}},
      // A chunk without elements strictly inside the wanted box, and one at its end.
      {{4},
       {box({0}, {4}), box({2}, {0}), box({4}, {0})},
       {box({0}, {4})},
       {{0, 1, {2}, {0}, {0}}, {0, 0, {0}, {0}, {4}}}},
      {{4}, {box({0}, {4})}, {box({2}, {0}), box({0}, {0})}, {{0, 0, {0}, {2}, {0}}}},
  };
}

TEST(BoxMatch, TakesTheVectorsOfTorch) {
  for (const Vector& each : torch_vectors())
    EXPECT_EQ(match(each.shape, each.stored, each.wanted, kTorch), each.rows);
}

// Every pair, one after the other; begins before the other's end in every dimension.
std::vector<Row> look_at_all(const Dims& shape, const std::vector<Box>& stored,
                             const std::vector<Box>& wanted, EmptyMatch empty) {
  std::vector<Row> rows;
  for (uint64_t i = 0; i < wanted.size(); ++i) {
    for (uint64_t j = 0; j < stored.size(); ++j) {
      Row row{i, j, Dims(shape.size(), 0), Dims(shape.size(), 0), Dims(shape.size(), 0)};
      bool meet = true;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t l = wanted[i].offsets[d];
        const int64_t l_end = l + wanted[i].sizes[d];
        const int64_t s = stored[j].offsets[d];
        const int64_t s_end = s + stored[j].sizes[d];
        meet = meet && l < s_end && s < l_end;
        row.wanted_offsets[d] = std::max<int64_t>(0, s - l);
        row.stored_offsets[d] = std::max<int64_t>(0, l - s);
        row.lengths[d] = std::min(s_end, l_end) - std::max(s, l);
        meet = meet && (empty == EmptyMatch::kStrictlyInside || row.lengths[d] > 0);
      }
      if (meet) rows.push_back(row);
    }
  }
  return rows;
}

Box random_part(shardwright::test::RandomSource& random, const Dims& shape) {
  Box part = whole_box(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (random.chance(30)) continue;
    part.offsets[d] = random.between(0, shape[d]);
    part.sizes[d] = random.between(0, shape[d] - part.offsets[d]);
  }
  return part;
}

TEST(BoxMatch, FindsWhatLookingAtEveryPairFinds) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
    std::vector<int64_t> extents;
    for (int64_t d = random.between(0, 4); d > 0; --d) extents.push_back(random.between(1, 7));
    const Dims shape(extents);
    std::vector<Box> stored = random_pieces(random, whole_box(shape), random.between(1, 40));
    if (random.chance(30)) stored.push_back(random_part(random, shape));
    if (random.chance(30)) stored.push_back(random.pick(stored));
    std::vector<Box> wanted;
    for (int64_t k = random.between(1, 12); k > 0; --k)
      wanted.push_back(random_part(random, shape));
    for (const EmptyMatch empty : {EmptyMatch::kNone, EmptyMatch::kStrictlyInside}) {
      const std::vector<Row> expected = look_at_all(shape, stored, wanted, empty);
      BoxMatchRules rules{MatchOrder::kWantedOuter, empty, CopyMatch::kAll};
      EXPECT_EQ(match(shape, stored, wanted, rules), expected);
      rules.order = MatchOrder::kSweep;
      std::vector<Row> swept = match(shape, stored, wanted, rules);
      std::ranges::sort(swept);
      EXPECT_EQ(swept, expected);
    }
  }
}

}  // namespace
}  // namespace shardwright::plan::test
