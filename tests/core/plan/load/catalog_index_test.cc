// SPDX-License-Identifier: Apache-2.0
//
// Finding entries and chunks, compared with looking at all of them.
#include "core/plan/load/catalog_index.h"

#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

void add(Catalog* catalog, const Dims& shape, const std::vector<Box>& boxes) {
  add_stored(catalog, "t" + std::to_string(catalog->tensors.size()), shape, boxes);
}

std::vector<Box> grid(const Dims& shape, const std::vector<int64_t>& parts) {
  std::vector<Box> boxes{Box{Dims(shape.size(), 0), shape}};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<Box> cut;
    for (const Box& each : boxes) {
      const int64_t size = (shape[d] + parts[d] - 1) / parts[d];
      for (int64_t begin = 0; begin < shape[d]; begin += size) {
        Box part = each;
        part.offsets[d] = begin;
        part.sizes[d] = std::min(size, shape[d] - begin);
        cut.push_back(part);
      }
    }
    boxes = cut;
  }
  return boxes;
}

Box random_box(shardwright::test::RandomSource& random, const Dims& shape) {
  Box wanted = whole_box(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    wanted.offsets[d] = random.between(0, shape[d]);
    wanted.sizes[d] = random.between(0, shape[d] - wanted.offsets[d]);
  }
  return wanted;
}

void expect_all_found(const Catalog& catalog, const CatalogIndex& index, size_t tensor,
                      const Box& wanted) {
  std::vector<uint64_t> expected;
  const TensorRecord& record = catalog.tensors[tensor];
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
    const Box own = catalog.chunk_box(c);
    const bool is_copy = std::ranges::any_of(
        expected, [&](uint64_t earlier) { return catalog.chunk_box(earlier) == own; });
    if (!is_copy && !box_is_empty(intersect(own, wanted))) expected.push_back(c);
  }
  EXPECT_EQ(index.chunks_meeting(tensor, wanted), expected) << box_text(wanted);
}

TEST(CatalogIndex, FindsWhatLookingAtAllChunksFinds) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    std::vector<int64_t> extents;
    std::vector<int64_t> parts;
    for (int64_t d = random.between(1, 4); d > 0; --d) {
      extents.push_back(random.between(1, 12));
      parts.push_back(random.between(1, 6));
    }
    const Dims shape(extents);
    Catalog catalog;
    add(&catalog, shape, grid(shape, parts));
    std::vector<Box> irregular = random_pieces(random, whole_box(shape), random.between(1, 60));
    add(&catalog, shape, irregular);
    std::vector<Box> shuffled = grid(shape, parts);
    random.shuffle(&shuffled);
    add(&catalog, shape, shuffled);
    for (std::vector<Box>* boxes : {&shuffled, &irregular}) {
      for (int64_t k = random.between(0, 20); k > 0; --k) boxes->push_back(random.pick(*boxes));
      add(&catalog, shape, *boxes);
    }
    const CatalogIndex index(catalog);
    for (size_t tensor = 0; tensor < 5; ++tensor) {
      for (int k = 0; k < 10; ++k)
        expect_all_found(catalog, index, tensor, random_box(random, shape));
    }
  }
}

TEST(CatalogIndex, SkipsChunksAndBoxesWithoutElements) {
  Catalog catalog;
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 20; ++i) boxes.push_back(box({i}, {1}));
  boxes.push_back(box({20}, {0}));
  boxes.push_back(box({7}, {0}));
  add(&catalog, {20}, boxes);
  add(&catalog, {0, 4}, std::vector<Box>(12, box({0, 1}, {0, 2})));
  const CatalogIndex index(catalog);
  EXPECT_EQ(index.chunks_meeting(0, box({6}, {3})), (std::vector<uint64_t>{6, 7, 8}));
  EXPECT_TRUE(index.chunks_meeting(0, box({6}, {0})).empty());
  EXPECT_TRUE(index.chunks_meeting(1, whole_box(catalog.shape(1))).empty());
}

TEST(CatalogIndex, PrefersTheOwnEntryOfARank) {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  ObjectRecord record;
  record.kind = EntryKind::kReplicated;
  ASSERT_TRUE(builder.add_object(record, "o", "", "t").ok());
  record.kind = EntryKind::kRankLocal;
  record.rank = 2;
  ASSERT_TRUE(builder.add_object(record, "o", "", "t").ok());
  record.rank = 1;
  ASSERT_TRUE(builder.add_object(record, "only_one", "", "t").ok());
  const CatalogIndex index(catalog);
  EXPECT_EQ(index.find_object("o", 2), 1);
  EXPECT_EQ(index.find_object("o", 1), 0);
  EXPECT_EQ(index.find_object("o", -1), 0);
  EXPECT_EQ(index.find_object("only_one", 1), 2);
  EXPECT_EQ(index.find_object("only_one", 0), -1);
  EXPECT_EQ(index.find_object("only_one", -1), -1);
  EXPECT_EQ(index.find_tensor("o", 0), -1);
}

TEST(CatalogIndex, TakesAnEmptyCatalog) {
  const Catalog catalog;
  const CatalogIndex index(catalog);
  EXPECT_EQ(index.find_tensor("w", 0), -1);
  EXPECT_EQ(&index.catalog(), &catalog);
}

}  // namespace
}  // namespace shardwright::plan::test
