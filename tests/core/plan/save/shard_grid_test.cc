// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of grids against enumeration.
#include "core/plan/save/shard_grid_internal.h"

#include "tests/core/plan/describe/random_job.h"

namespace shardwright::plan::internal {
namespace {

using shardwright::test::RandomSource;

// A grid and the same cuts as axes whose coordinates enumerate its columns: rank = column.
struct Case {
  Dims shape;
  std::vector<GridAxis> grid_axes;
  std::vector<ShardAxis> axes;  // in nest order
  int32_t columns = 1;
};

Case random_case(RandomSource& random) {
  Case made;
  made.shape = test::random_shape(random);
  const int64_t count = made.shape.empty() ? 0 : random.between(0, 4);
  std::vector<int32_t> levels(static_cast<size_t>(count));
  std::iota(levels.begin(), levels.end(), 0);
  std::shuffle(levels.begin(), levels.end(), std::mt19937_64(random.next()));
  for (int64_t i = 0; i < count; ++i) {
    const auto dim =
        static_cast<int32_t>(random.between(0, static_cast<int64_t>(made.shape.size()) - 1));
    made.grid_axes.push_back(
        {dim, static_cast<int32_t>(random.between(2, 5)), levels[static_cast<size_t>(i)]});
  }
  std::vector<std::pair<int32_t, ShardAxis>> by_level;
  for (size_t i = made.grid_axes.size(); i-- > 0;) {
    const GridAxis& axis = made.grid_axes[i];
    by_level.push_back({axis.level, {axis.dim, axis.extent, made.columns, 0}});
    made.columns *= axis.extent;
  }
  std::ranges::sort(by_level, {}, [](const auto& each) { return each.first; });
  for (const auto& each : by_level) made.axes.push_back(each.second);
  return made;
}

Box box_of(const ShardGrid& grid, uint32_t column) {
  std::vector<ExtentPair> pairs(grid.shape().size());
  grid.box_of_column(column, pairs);
  return plan::box_of(pairs);
}

TEST(ShardGrid, EqualsTheEnumerationOfItsColumns) {
  RandomSource random;
  for (int i = 0; i < 3000; ++i) {
    const Case made = random_case(random);
    const Result<ShardGrid> grid = ShardGrid::make(made.shape, made.grid_axes);
    ASSERT_TRUE(grid.ok()) << grid.status().to_string();
    ASSERT_EQ(grid->column_count(), static_cast<uint32_t>(made.columns));
    std::vector<std::pair<Box, uint32_t>> chunks;
    std::vector<int64_t> elements(static_cast<size_t>(made.columns), 0);
    uint64_t mask = 0;
    for (int32_t column = 0; column < made.columns; ++column) {
      const Box box = box_of_axes(made.axes, made.shape, column);
      elements[static_cast<size_t>(column)] = box_element_count(box);
      ASSERT_EQ(grid->elements_of_column(static_cast<uint32_t>(column)), box_element_count(box));
      ASSERT_EQ(box_of(*grid, static_cast<uint32_t>(column)), box);
      if (box_is_empty(box)) continue;
      chunks.push_back({box, static_cast<uint32_t>(column)});
      for (size_t d = 0; d < made.shape.size(); ++d)
        mask |= box.sizes[d] == made.shape[d] ? 0 : uint64_t{1} << d;
    }
    std::ranges::sort(chunks, {}, [](const auto& each) { return each.first; });
    ASSERT_EQ(grid->chunk_count(), chunks.size());
    ASSERT_EQ(grid->split_mask(), mask);
    const std::vector<uint32_t> columns = grid->chunk_columns();
    ASSERT_EQ(columns.size(), chunks.size());
    for (size_t c = 0; c < chunks.size(); ++c)
      ASSERT_EQ(columns[c], chunks[c].second) << "chunk " << c;
    std::vector<int64_t> by_run(elements.size(), 0);
    for (const ColumnRun& run : grid->runs()) {
      for (uint32_t k = 0; k < run.count; ++k) by_run[run.first + k] = run.elements;
    }
    ASSERT_EQ(by_run, elements);
    for (const int64_t size : elements) {
      ASSERT_EQ(std::ranges::count(grid->sizes(), size), size == 0 ? 0 : 1);
    }
  }
}

TEST(ShardGrid, RunsAreFewWhenShardsAreEven) {
  const GridAxis axes[] = {{0, 64, 0}, {1, 8, 1}};
  const Result<ShardGrid> even = ShardGrid::make(Dims{640, 80}, axes);
  ASSERT_TRUE(even.ok());
  EXPECT_TRUE(even->even());
  EXPECT_EQ(even->runs().size(), 1U);
  const Result<ShardGrid> short_end = ShardGrid::make(Dims{630, 80}, axes);
  ASSERT_TRUE(short_end.ok());
  EXPECT_FALSE(short_end->even());
  EXPECT_EQ(short_end->runs().size(), 1U) << "63 full parts, the last is empty";
  const Result<ShardGrid> uneven = ShardGrid::make(Dims{635, 80}, axes);
  ASSERT_TRUE(uneven.ok());
  EXPECT_EQ(uneven->runs().size(), 2U);
}

}  // namespace
}  // namespace shardwright::plan::internal
