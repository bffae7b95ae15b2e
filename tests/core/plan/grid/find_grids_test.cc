// SPDX-License-Identifier: Apache-2.0
//
// Chunks that are a grid are written as one, whoever described them; nothing else changes.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/catalog.h"
#include "tests/core/plan/catalog_boxes.h"
#include "tests/core/plan/random_world.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::plan {
namespace {

using Chunk = CatalogBuilder::Chunk;

void add(Catalog* catalog, const std::string& name, const Dims& shape,
         const std::vector<Chunk>& chunks) {
  const Status added = CatalogBuilder(catalog).add_tensor(
      {name, "", DType::kFloat32, EntryKind::kSharded, -1, shape}, chunks);
  ASSERT_TRUE(added.ok()) << added.to_string();
}

// All combinations of parts, row-major, the c-th at place ranks[c].
std::vector<Chunk> grid_of(const std::vector<std::vector<int64_t>>& sizes,
                           const std::vector<uint32_t>& ranks) {
  std::vector<Chunk> chunks;
  std::vector<size_t> part(sizes.size(), 0);
  while (true) {
    Box box{Dims(sizes.size(), 0), Dims(sizes.size(), 0)};
    for (size_t d = 0; d < sizes.size(); ++d) {
      box.offsets[d] = std::accumulate(
          sizes[d].begin(), sizes[d].begin() + static_cast<int64_t>(part[d]), int64_t{0});
      box.sizes[d] = sizes[d][part[d]];
    }
    chunks.push_back({box, ranks[chunks.size()]});
    size_t d = sizes.size();
    while (d > 0 && ++part[d - 1] == sizes[d - 1].size()) part[--d] = 0;
    if (d == 0) return chunks;
  }
}

std::vector<uint32_t> count_up(size_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

void expect_same_chunks(const Catalog& a, const Catalog& b) {
  ASSERT_EQ(a.chunk_count(), b.chunk_count());
  for (uint64_t c = 0; c < a.chunk_count(); ++c) {
    EXPECT_EQ(a.tensor_of(c), b.tensor_of(c));
    EXPECT_EQ(a.chunk_box(c), b.chunk_box(c)) << c;
    EXPECT_EQ(a.place_of(c), b.place_of(c)) << c;
    EXPECT_EQ(box_element_count(a.chunk_box(c)), box_element_count(b.chunk_box(c)));
    EXPECT_EQ(a.chunk_bytes(c), b.chunk_bytes(c));
  }
}

TEST(FindGrids, RowsColumnsAndTheirProductsAreGrids) {
  Catalog catalog;
  add(&catalog, "rows", {10, 4}, grid_of({{3, 3, 3, 1}, {4}}, count_up(4)));
  add(&catalog, "grid", {10, 4}, grid_of({{3, 3, 3, 1}, {2, 2}}, count_up(8)));
  add(&catalog, "cube", {4, 4, 4}, grid_of({{2, 2}, {1, 3}, {2, 2}}, count_up(8)));
  add(&catalog, "whole", {7}, grid_of({{7}}, {5}));
  add(&catalog, "scalar", {}, {{Box{}, 3}});
  const Catalog before = catalog;
  find_grids(&catalog);
  for (const TensorRecord& tensor : catalog.tensors) EXPECT_TRUE(tensor.is_grid());
  EXPECT_TRUE(catalog.boxes.empty());
  EXPECT_TRUE(catalog.more.empty());
  EXPECT_EQ(catalog.splits.size(), 3U) << "3 3 3 1, then 2 2, then 1 3 of the cube";
  expect_same_chunks(before, catalog);
  EXPECT_TRUE(check_catalog(catalog).ok()) << check_catalog(catalog).to_string();
  EXPECT_TRUE(prove_all_covers(catalog).ok());
}

TEST(FindGrids, WhatIsNoGridInItsOrderStaysBoxes) {
  const std::vector<Chunk> rows = grid_of({{2, 2, 2}}, count_up(3));
  std::vector<std::pair<std::string, std::vector<Chunk>>> cases;
  cases.emplace_back("in another order", std::vector<Chunk>{rows[1], rows[0], rows[2]});
  cases.emplace_back("with a hole", std::vector<Chunk>{rows[0], rows[2]});
  cases.emplace_back("twice", std::vector<Chunk>{rows[0], rows[0], rows[1], rows[2]});
  std::vector<Chunk> empty = rows;
  empty.insert(empty.begin() + 1, {Box{{2}, {0}}, 7});
  cases.emplace_back("with an empty box", empty);
  cases.emplace_back("overlap", std::vector<Chunk>{rows[0], {Box{{1}, {3}}, 1}, rows[2]});
  Catalog catalog;
  for (const auto& [name, chunks] : cases) add(&catalog, name, {6}, chunks);
  add(&catalog, "bricks", {4, 4},
      {{Box{{0, 0}, {2, 1}}, 0},
       {Box{{0, 1}, {2, 3}}, 1},
       {Box{{2, 0}, {2, 3}}, 2},
       {Box{{2, 3}, {2, 1}}, 3}});
  add(&catalog, "nothing", {0, 4}, {});
  const Catalog before = catalog;
  find_grids(&catalog);
  for (const TensorRecord& tensor : catalog.tensors) EXPECT_FALSE(tensor.is_grid());
  EXPECT_TRUE(catalog.splits.empty() && catalog.rank_maps.empty() && catalog.grids.empty());
  EXPECT_EQ(catalog.boxes.size(), before.boxes.size());
  expect_same_chunks(before, catalog);
}

// Tensors of very different numbers of chunks, some of none.
TEST(FindGrids, EveryChunkIsThatOfItsTensor) {
  shardwright::test::RandomSource random;
  for (int64_t round = 0; round < shardwright::test::rounds(100, 2000); ++round) {
    Catalog catalog;
    std::vector<size_t> expected;
    const int64_t tensors = random.between(1, 40);
    for (int64_t t = 0; t < tensors; ++t) {
      const auto count = static_cast<size_t>(
          random.chance(30) ? 0 : random.between(1, random.chance(20) ? 200 : 3));
      std::vector<int64_t> sizes(count, 1);
      const auto extent = static_cast<int64_t>(count);
      add(&catalog, "t" + std::to_string(t), {extent},
          count == 0 ? std::vector<Chunk>() : grid_of({sizes}, count_up(count)));
      expected.insert(expected.end(), count, static_cast<size_t>(t));
    }
    for (uint64_t c = 0; c < expected.size(); ++c) EXPECT_EQ(catalog.tensor_of(c), expected[c]);
  }
}

TEST(FindGrids, BoxesBesideGridsKeepTheirPlaces) {
  Catalog catalog;
  add(&catalog, "a", {6}, grid_of({{2, 2, 2}}, count_up(3)));
  add(&catalog, "b", {4, 4, 4},
      {{Box{{0, 0, 0}, {2, 4, 4}}, 1},
       {Box{{2, 0, 0}, {2, 2, 4}}, 2},
       {Box{{2, 2, 0}, {2, 2, 2}}, 3},
       {Box{{2, 2, 2}, {2, 2, 2}}, 4}});
  add(&catalog, "c", {6}, grid_of({{4, 2}}, {9, 3}));
  const Catalog before = catalog;
  find_grids(&catalog);
  EXPECT_EQ(catalog.boxes.size(), 4U);
  EXPECT_EQ(catalog.more.size(), 4U);
  expect_same_chunks(before, catalog);
  EXPECT_TRUE(check_catalog(catalog).ok()) << check_catalog(catalog).to_string();
}

// Splits and maps are numbered as tensors name them, whether they were grids or became one.
TEST(FindGrids, TablesAreThoseOfTheWholeCatalogHoweverItWasMade) {
  shardwright::test::RandomSource random;
  for (int64_t round = 0; round < shardwright::test::rounds(300, 10000); ++round) {
    Catalog all;
    Catalog by_turns;
    const int64_t tensors = random.between(1, 6);
    for (int64_t t = 0; t < tensors; ++t) {
      std::vector<std::vector<int64_t>> sizes(static_cast<size_t>(random.between(1, 3)));
      std::vector<int64_t> extents;
      size_t count = 1;
      for (std::vector<int64_t>& each : sizes) {
        each.resize(static_cast<size_t>(random.between(1, 3)));
        for (int64_t& size : each) size = random.between(1, 2);
        extents.push_back(std::accumulate(each.begin(), each.end(), int64_t{0}));
        count *= each.size();
      }
      std::vector<uint32_t> ranks(count);
      for (uint32_t& rank : ranks) rank = static_cast<uint32_t>(random.between(0, 3));
      std::vector<Chunk> chunks = grid_of(sizes, ranks);
      if (random.chance(30)) random.shuffle(&chunks);
      const std::string name = "t" + std::to_string(t);
      const Dims shape(extents);
      add(&all, name, shape, chunks);
      add(&by_turns, name, shape, chunks);
      if (random.chance(50)) find_grids(&by_turns);
    }
    const Catalog before = all;
    find_grids(&all);
    find_grids(&by_turns);
    expect_same_chunks(before, all);
    EXPECT_EQ(all.splits, by_turns.splits);
    EXPECT_EQ(all.rank_maps, by_turns.rank_maps);
    EXPECT_EQ(all.grids, by_turns.grids);
    EXPECT_EQ(all.boxes.size(), by_turns.boxes.size());
    EXPECT_TRUE(check_catalog(all).ok()) << check_catalog(all).to_string();
    expect_same_chunks(with_boxes(all), before);
  }
}

}  // namespace
}  // namespace shardwright::plan
