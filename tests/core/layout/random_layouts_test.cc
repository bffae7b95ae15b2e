// SPDX-License-Identifier: Apache-2.0
//
// Random layouts, flat ranges and grids against the dense oracle. A failure names the world that
// repeats it alone: SHW_SEED=<number>. SHW_SOAK runs more of them.
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/layout/flat_range.h"
#include "core/layout/grid.h"
#include "core/layout/overlap.h"
#include "core/layout/split.h"
#include "tests/core/layout/dense_oracle.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::test {
namespace {

// Calls world(random) with sources of ascending numbers.
template <typename World>
void for_random_worlds(int64_t count, int64_t soak_count, const World& world) {
  const char* given = std::getenv("SHW_SEED");
  const uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  const int64_t worlds = rounds(count, soak_count);
  for (int64_t i = 0; i < worlds && !testing::Test::HasFailure(); ++i) {
    RandomSource random(first + static_cast<uint64_t>(i));
    world(random);
  }
}

Dims random_shape(RandomSource& random, int64_t largest_rank, int64_t largest_extent) {
  Dims shape(static_cast<size_t>(random.between(0, largest_rank)), 0);
  for (int64_t& extent : shape) extent = random.chance(6) ? 0 : random.between(1, largest_extent);
  return shape;
}

Mesh random_mesh(RandomSource& random) {
  Mesh mesh;
  mesh.shape = Dims(static_cast<size_t>(random.between(0, 4)), 1);
  for (int64_t& extent : mesh.shape) extent = random.between(1, 4);
  if (!random.chance(50)) return mesh;
  std::set<int32_t> ranks;  // of a sub-mesh, in any order
  while (static_cast<int64_t>(ranks.size()) < element_count_of(mesh.shape))
    ranks.insert(static_cast<int32_t>(random.between(0, 2000)));
  mesh.ranks.assign(ranks.begin(), ranks.end());
  for (size_t i = mesh.ranks.size(); i > 1; --i)
    std::swap(mesh.ranks[i - 1],
              mesh.ranks[static_cast<size_t>(random.between(0, static_cast<int64_t>(i) - 1))]);
  return mesh;
}

enum class Style { kChunks, kStrides, kFlat };

Placement random_placement(RandomSource& random, int64_t rank, Style style) {
  if (style == Style::kFlat && random.chance(50)) return {PlacementKind::kFlat, 0, 0};
  if (rank == 0 || random.chance(25)) return {};
  const auto dim = static_cast<int32_t>(random.between(-rank, rank - 1));
  if (style == Style::kStrides && random.chance(60))
    return {PlacementKind::kStridedShard, dim, static_cast<int32_t>(random.between(1, 6))};
  return {PlacementKind::kShard, dim, 0};
}

Layout::Ptr random_layout(RandomSource& random, const Dims& shape) {
  Mesh mesh = random_mesh(random);
  const auto style = random.pick(std::vector<Style>{Style::kChunks, Style::kStrides, Style::kFlat});
  std::vector<Placement> placements;
  placements.reserve(mesh.shape.size());
  for (size_t axis = 0; axis < mesh.shape.size(); ++axis)
    placements.push_back(random_placement(random, static_cast<int64_t>(shape.size()), style));
  const auto layout = Layout::create(mesh, placements);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return *layout;
}

// Axes in any order on the dimensions, -1 now and then.
Layout::Ptr random_mapped_layout(RandomSource& random, const Dims& shape) {
  Mesh mesh = random_mesh(random);
  std::vector<int32_t> axes(mesh.shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  TensorMap map(shape.size());
  while (!axes.empty() && !map.empty()) {
    const auto at = random.between(0, static_cast<int64_t>(axes.size()) - 1);
    if (random.chance(70)) {
      auto& entry =
          map[static_cast<size_t>(random.between(0, static_cast<int64_t>(map.size()) - 1))];
      if (random.chance(20)) entry.push_back(-1);
      entry.push_back(axes[static_cast<size_t>(at)]);
    }
    axes.erase(axes.begin() + at);
  }
  const auto layout = Layout::create_mapped(mesh, map);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return *layout;
}

size_t run_count(const IndexList& list) {
  size_t runs = list.empty() ? 0 : 1;
  for (size_t i = 1; i < list.size(); ++i) runs += list[i] != list[i - 1] + 1 ? 1 : 0;
  return runs;
}

void expect_pieces(const Layout& layout, const Dims& shape, int64_t position,
                   const DenseHolding& dense) {
  const int32_t rank = layout.rank_at(position);
  const auto pieces = layout.pieces(shape, rank);
  const auto local = layout.local_shape(shape, rank);
  ASSERT_TRUE(pieces.ok() && local.ok()) << pieces.status().to_string();
  ASSERT_EQ(element_count_of(*local), static_cast<int64_t>(dense.elements.size()));
  ASSERT_EQ(filled_local(*pieces, shape, *local), dense.elements);
  for (const Piece& piece : *pieces) ASSERT_TRUE(check_box(piece.box, shape).ok());
  if (layout.is_flat()) {
    ASSERT_LE(pieces->size(), std::max<size_t>(2 * shape.size(), 2) - 1);
    return;
  }
  size_t boxes = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    ASSERT_EQ((*local)[d], static_cast<int64_t>(dense.dims[d].size()));
    boxes *= run_count(dense.dims[d]);
    const int64_t first = dense.dims[d].empty() ? shape[d] : dense.dims[d].front();
    ASSERT_EQ(pieces->front().box.offsets[d], first);
  }
  ASSERT_EQ(pieces->size(), std::max<size_t>(boxes, 1)) << "as few boxes as possible";
}

// Cells and replicas: positions of one cell hold the same, positions of two cells nothing in
// common.
void expect_cells(const Layout& layout, const Dims& shape,
                  const std::vector<DenseHolding>& holdings) {
  const auto split = *SplitView::create(layout, shape);
  std::map<int64_t, int64_t> replicas;
  std::map<int64_t, int64_t> cell_of_element;
  std::set<int64_t> filled;
  for (int64_t position = 0; position < layout.rank_count(); ++position) {
    const int64_t cell = split.cell_of(position);
    ASSERT_TRUE(cell >= 0 && cell < split.cell_count());
    ASSERT_EQ(split.position_of(cell, replicas[cell]++), position);
    for (const int64_t element : holdings[static_cast<size_t>(position)].elements) {
      ASSERT_EQ(cell_of_element.emplace(element, cell).first->second, cell);
      filled.insert(cell);
    }
    for (int32_t d = 0; split.is_grid() && d < static_cast<int32_t>(shape.size()); ++d) {
      const IndexRange range = split.range(d, split.part_of(d, position));
      const IndexList& list = holdings[static_cast<size_t>(position)].dims[static_cast<size_t>(d)];
      ASSERT_EQ(range.size, static_cast<int64_t>(list.size()));
      ASSERT_EQ(range.begin, list.empty() ? shape[static_cast<size_t>(d)] : list.front());
    }
  }
  ASSERT_EQ(static_cast<int64_t>(replicas.size()), split.cell_count());
  for (const auto& each : replicas) ASSERT_EQ(each.second, split.replica_count());
  ASSERT_EQ(static_cast<int64_t>(cell_of_element.size()), element_count_of(shape))
      << "every element is held";
  if (split.is_grid() && element_count_of(shape) > 0) {
    ASSERT_EQ(static_cast<int64_t>(filled.size()), split.filled_cell_count());
  }
}

void expect_layout(const Layout& layout, const Dims& shape) {
  const std::vector<Cut> cuts(layout.cuts().begin(), layout.cuts().end());
  std::vector<DenseHolding> holdings;
  for (int64_t position = 0; position < layout.rank_count(); ++position) {
    holdings.push_back(dense_holding(layout.mesh().shape, cuts, shape, position));
    expect_pieces(layout, shape, position, holdings.back());
    if (testing::Test::HasFatalFailure()) return;
  }
  expect_cells(layout, shape, holdings);
}

TEST(RandomLayouts, OfPlacementsHoldWhatTheOracleSays) {
  for_random_worlds(20000, 2000000, [](RandomSource& random) {
    const Dims shape = random_shape(random, 3, 9);
    expect_layout(*random_layout(random, shape), shape);
  });
}

TEST(RandomLayouts, OfTensorMapsHoldWhatTheOracleSays) {
  for_random_worlds(5000, 500000, [](RandomSource& random) {
    const Dims shape = random_shape(random, 4, 7);
    expect_layout(*random_mapped_layout(random, shape), shape);
  });
}

TEST(RandomLayouts, AreMadeAgainFromTheirCuts) {
  for_random_worlds(2000, 100000, [](RandomSource& random) {
    const Dims shape = random_shape(random, 3, 9);
    const auto layout =
        random.chance(50) ? random_layout(random, shape) : random_mapped_layout(random, shape);
    const auto again = Layout::create_cut(
        layout->mesh(), {layout->cuts().begin(), layout->cuts().end()}, layout->tensor_rank());
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    for (int64_t p = 0; p < layout->rank_count(); ++p)
      ASSERT_EQ(*(*again)->pieces(shape, layout->rank_at(p)),
                *layout->pieces(shape, layout->rank_at(p)));
  });
}

TEST(RandomFlatRanges, AreTheElementsInOrderInFewBoxes) {
  for_random_worlds(20000, 2000000, [](RandomSource& random) {
    const Dims sizes = random_shape(random, 4, 5);
    Box box{Dims(sizes.size(), 0), sizes};
    Dims shape = sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      box.offsets[d] = random.between(0, 3);
      shape[d] += box.offsets[d] + random.between(0, 2);
    }
    const int64_t count = box_element_count(box);
    const int64_t begin = random.between(0, count);
    const IndexRange range = {begin, random.between(0, count - begin)};
    const auto pieces = flat_range_pieces(box, range);
    ASSERT_TRUE(pieces.ok()) << pieces.status().to_string();
    ASSERT_LE(pieces->size(), std::max<size_t>(2 * sizes.size(), 2) - 1);
    IndexList elements;
    for (const Piece& piece : *pieces) {
      ASSERT_EQ(piece.local_offset_elements, static_cast<int64_t>(elements.size()));
      for (int64_t i = 0; i < box_element_count(piece.box); ++i)
        elements.push_back(element_of_box(piece.box, shape, i));
    }
    IndexList expected;
    for (int64_t i = 0; i < range.size; ++i)
      expected.push_back(element_of_box(box, shape, range.begin + i));
    ASSERT_EQ(elements, expected);
  });
}

TEST(RandomGrids, OfRankOffsetsTileTheirTensor) {
  for_random_worlds(2000, 100000, [](RandomSource& random) {
    const Dims local = random_shape(random, 3, 3);
    const auto prepended = static_cast<int32_t>(random.between(0, 2));
    Dims parts(local.size() + static_cast<size_t>(prepended), 1);
    for (int64_t& count : parts) count = random.between(1, 3);
    std::map<int64_t, int> holders;
    for (int64_t part = 0; part < element_count_of(parts); ++part) {
      std::vector<RankOffset> places;
      int64_t rest = part;
      for (size_t axis = parts.size(); axis-- > 0; rest /= parts[axis])
        places.push_back({static_cast<int32_t>(axis), rest % parts[axis], parts[axis]});
      const auto shard = grid_shard_at(local, prepended, places);
      ASSERT_TRUE(shard.ok()) << shard.status().to_string();
      const Box box = grid_pieces(*shard)->front().box;
      for (int64_t i = 0; i < box_element_count(box); ++i)
        ++holders[element_of_box(box, shard->global_shape, i)];
    }
    for (const auto& each : holders) ASSERT_EQ(each.second, 1);
    ASSERT_EQ(static_cast<int64_t>(holders.size()),
              element_count_of(local) * element_count_of(parts));
  });
}

TEST(RandomGrids, ChunksOfFlattenedEntriesAreTheRangesTheyCameFrom) {
  for_random_worlds(5000, 500000, [](RandomSource& random) {
    const Dims local = random_shape(random, 3, 4);
    std::vector<RankOffset> places;
    for (size_t axis = 0; axis <= local.size(); ++axis) {
      const int64_t count = random.between(1, 3);
      places.push_back({static_cast<int32_t>(axis), random.between(0, count - 1), count});
    }
    GridShard shard = *grid_shard_at(local, 1, places);
    const int64_t begin = random.between(0, element_count_of(local));
    shard.flat_range = {begin, random.between(0, element_count_of(local) - begin)};
    const auto entry = flat_entry_of(shard);
    ASSERT_TRUE(entry.ok()) << entry.status().to_string();
    const auto pieces = flat_entry_pieces(shard.global_shape, entry->shape, entry->box);
    ASSERT_TRUE(pieces.ok()) << pieces.status().to_string();
    ASSERT_EQ(*pieces, *grid_pieces(shard));
  });
}

TEST(RandomGrids, PartsOverlapAsTheirElementsDo) {
  for_random_worlds(2000, 100000, [](RandomSource& random) {
    const int64_t stored = random.between(1, 30);
    const int64_t wanted = random.between(1, 30);
    const int64_t index = random.between(0, wanted - 1);
    std::set<int64_t> met;  // on an axis of stored x wanted elements
    for (int64_t i = index * stored; i < (index + 1) * stored; ++i) met.insert(i / wanted);
    const IndexRange parts = overlapping_parts(stored, wanted, index);
    ASSERT_EQ(parts.begin, *met.begin()) << stored << " " << wanted << " " << index;
    ASSERT_EQ(parts.size, static_cast<int64_t>(met.size()));
  });
}

TEST(RandomOverlaps, AreFoundWhereElementsAreShared) {
  for_random_worlds(10000, 1000000, [](RandomSource& random) {
    const auto rank = static_cast<size_t>(random.between(1, 3));
    std::vector<Box> boxes;
    std::map<int64_t, size_t> owner;
    bool shared = false;
    for (int64_t b = random.between(0, 8); b-- > 0;) {
      Box box{Dims(rank, 0), Dims(rank, 0)};
      for (size_t d = 0; d < rank; ++d) {
        box.offsets[d] = random.between(0, 6);
        box.sizes[d] = random.between(0, 3);
      }
      for (int64_t i = 0; i < box_element_count(box); ++i)
        shared |= !owner.emplace(element_of_box(box, Dims(rank, 10), i), boxes.size()).second;
      boxes.push_back(box);
    }
    const auto found = find_overlap(boxes);
    ASSERT_EQ(found.has_value(), shared);
    if (!shared) return;
    ASSERT_NE(found->first, found->second);
    ASSERT_FALSE(box_is_empty(intersect(boxes[found->first], boxes[found->second])));
  });
}

}  // namespace
}  // namespace shardwright::test
