// SPDX-License-Identifier: Apache-2.0
//
// Every way of searching the chunks of a tensor, compared with looking at all of them.
#include "core/plan/search/chunk_search_internal.h"

#include <algorithm>
#include <array>

#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

using internal::ChunkRuns;
using internal::ChunkSearch;
using internal::ChunkTree;
using internal::Interval;

// The chunks of tensor 1 are not the first of the catalog.
Catalog second_of_catalog(const Dims& shape, const std::vector<Box>& boxes) {
  Catalog catalog = catalog_of(shape, {boxes[0]});
  add_stored(&catalog, "at hand", shape, boxes);
  return catalog;
}

// Rows that are cut into two columns, every second one at its own place, and boxes without
// elements.
std::vector<Box> scattered_rows(shardwright::test::RandomSource* random, int64_t rows) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t cut = row % 2 == 0 ? 50 : 1 + random->between(0, 48);
    boxes.push_back(box({row, 0}, {1, cut}));
    boxes.push_back(box({row, cut}, {1, 50 - cut}));
  }
  random->shuffle(&boxes);
  return boxes;
}

std::vector<uint64_t> meeting_of_all(const Catalog& catalog, const Interval* region) {
  std::vector<uint64_t> found;
  const TensorRecord& tensor = catalog.tensors[1];
  for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
    if (internal::chunk_meets(catalog, tensor, c, region)) found.push_back(c);
  }
  return found;
}

// Regions of any size, empty ones included.
template <typename GroupRank>
void expect_like_all(shardwright::test::RandomSource* random, const Catalog& catalog,
                     const GroupRank& meeting) {
  const std::span<const int64_t> shape = catalog.shape(1);
  for (int i = 0; i < 300; ++i) {
    std::array<Interval, kMaxTensorRank> region;
    for (size_t k = 0; k < shape.size(); ++k) {
      region[k].begin = random->between(0, shape[k]);
      region[k].end = random->between(region[k].begin, shape[k]);
    }
    std::vector<uint64_t> found;
    meeting(region.data(), &found);
    ASSERT_EQ(found, meeting_of_all(catalog, region.data()));
  }
}

TEST(ChunkSearch, RunsAlongACurveFindWhatLookingAtAllChunksFinds) {
  shardwright::test::RandomSource random(7);
  const Catalog catalog = second_of_catalog({700, 50}, scattered_rows(&random, 700));
  const std::optional<ChunkRuns> runs = ChunkRuns::find(catalog, 1);
  ASSERT_TRUE(runs.has_value());
  ASSERT_FALSE(runs->in_order());
  expect_like_all(&random, catalog, [&](const Interval* region, std::vector<uint64_t>* found) {
    runs->meeting(region, found);
    std::ranges::sort(*found);
  });
  const ChunkSearch search(catalog, 1);
  expect_like_all(&random, catalog, [&](const Interval* region, std::vector<uint64_t>* found) {
    search.meeting(region, found);
  });
}

TEST(ChunkSearch, RunsAsStoredFindWhatLookingAtAllChunksFinds) {
  shardwright::test::RandomSource random(7);
  std::vector<Box> boxes = scattered_rows(&random, 700);
  std::ranges::sort(boxes, {}, [](const Box& each) { return each.offsets[0]; });
  const Catalog catalog = second_of_catalog({700, 50}, boxes);
  const std::optional<ChunkRuns> runs = ChunkRuns::find(catalog, 1);
  ASSERT_TRUE(runs.has_value());
  ASSERT_TRUE(runs->in_order());
  expect_like_all(&random, catalog, [&](const Interval* region, std::vector<uint64_t>* found) {
    runs->meeting(region, found);
  });
}

TEST(ChunkSearch, ATreeFindsWhatLookingAtAllChunksFinds) {
  shardwright::test::RandomSource random;
  for (const Dims& shape : {Dims{4000}, Dims{90, 110}, Dims{20, 30, 25}}) {
    std::vector<Box> boxes = random_pieces(random, whole_box(shape), 900);
    random.shuffle(&boxes);
    const Catalog catalog = second_of_catalog(shape, boxes);
    const ChunkTree tree(catalog, 1);
    expect_like_all(&random, catalog, [&](const Interval* region, std::vector<uint64_t>* found) {
      tree.meeting(region, found);
      std::ranges::sort(*found);
    });
  }
}

}  // namespace
}  // namespace shardwright::plan::test
