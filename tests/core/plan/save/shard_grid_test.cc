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

// The boxes of all chunks, as the sizes of the parts put them together.
std::vector<Box> boxes_of(const ShardGrid& grid, const Dims& shape) {
  std::vector<Box> boxes;
  if (grid.chunk_count() != 0) boxes.push_back(whole_box(shape));
  std::vector<std::vector<int64_t>> splits = grid.split_sizes();
  auto split = splits.begin();
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((grid.split_mask() >> d & 1) == 0) continue;
    std::vector<Box> finer;
    for (Box box : boxes) {
      box.offsets[d] = 0;
      for (const int64_t size : *split) {
        box.sizes[d] = size;
        finer.push_back(box);
        box.offsets[d] += size;
      }
    }
    boxes = std::move(finer);
    ++split;
  }
  EXPECT_EQ(split, splits.end());
  return boxes;
}

TEST(ShardGrid, EqualsTheEnumerationOfItsColumns) {
  RandomSource random;
  for (int i = 0; i < 3000; ++i) {
    const Case made = random_case(random);
    const ShardGrid grid(made.shape, made.grid_axes);
    std::vector<std::pair<Box, uint32_t>> chunks;
    std::vector<int64_t> elements(static_cast<size_t>(made.columns), 0);
    uint64_t mask = 0;
    for (int32_t column = 0; column < made.columns; ++column) {
      const Box box = box_of_axes(made.axes, made.shape, column);
      elements[static_cast<size_t>(column)] = box_element_count(box);
      if (box_is_empty(box)) continue;
      chunks.push_back({box, static_cast<uint32_t>(column)});
      for (size_t d = 0; d < made.shape.size(); ++d)
        mask |= box.sizes[d] == made.shape[d] ? 0 : uint64_t{1} << d;
    }
    std::ranges::sort(chunks, {}, [](const auto& each) { return each.first; });
    ASSERT_EQ(grid.chunk_count(), chunks.size());
    ASSERT_EQ(grid.split_mask(), mask);
    const std::vector<uint32_t> columns = grid.chunk_columns();
    const std::vector<Box> boxes = boxes_of(grid, made.shape);
    ASSERT_EQ(columns.size(), chunks.size());
    ASSERT_EQ(boxes.size(), chunks.size());
    for (size_t c = 0; c < chunks.size(); ++c)
      ASSERT_EQ(std::pair(boxes[c], columns[c]), chunks[c]) << "chunk " << c;
    std::vector<int64_t> by_run(elements.size(), 0);
    for (const ColumnRun& run : grid.runs()) {
      for (uint32_t k = 0; k < run.count; ++k) by_run[run.first + k] = run.elements;
    }
    ASSERT_EQ(by_run, elements);
    if (!chunks.empty()) {
      ASSERT_EQ(grid.runs()[0].elements, std::ranges::max(elements));
    }
  }
}

TEST(ShardGrid, RunsAreFewWhenShardsAreEven) {
  const GridAxis axes[] = {{0, 64, 0}, {1, 8, 1}};
  EXPECT_EQ(ShardGrid(Dims{640, 80}, axes).runs().size(), 1U);
  EXPECT_EQ(ShardGrid(Dims{630, 80}, axes).runs().size(), 1U) << "63 full parts, the last is empty";
  EXPECT_EQ(ShardGrid(Dims{635, 80}, axes).runs().size(), 2U);
}

}  // namespace
}  // namespace shardwright::plan::internal
