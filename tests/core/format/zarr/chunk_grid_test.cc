// SPDX-License-Identifier: Apache-2.0
//
// The chunks of an array: their numbers, names and boxes.
#include "core/format/zarr/chunk_grid.h"

#include <gtest/gtest.h>

namespace shardwright::format::zarr {
namespace {

ArrayHeader header_of(Dims shape, Dims chunks, char separator = '.') {
  ArrayHeader header;
  header.dtype = DType::kFloat16;
  header.shape = std::move(shape);
  header.chunks = std::move(chunks);
  header.separator = separator;
  return header;
}

TEST(ChunkGrid, CutsAnArrayIntoChunksThatAreSmallerAtTheEdge) {
  const ArrayHeader header = header_of({5, 7}, {2, 3});
  const ChunkGrid grid(header);
  ASSERT_EQ(grid.count(), 9U);
  EXPECT_EQ(grid.file_bytes(), 12U);
  EXPECT_EQ(grid.name_of(5), "1.2");
  EXPECT_EQ(box_text(grid.box_of(4)), "[2:4, 3:6]");
  EXPECT_EQ(box_text(grid.box_of(8)), "[4:5, 6:7]");
  int64_t elements = 0;
  for (uint64_t number = 0; number < grid.count(); ++number) {
    const auto index = grid.index_of(grid.name_of(number));
    ASSERT_TRUE(index.has_value());
    EXPECT_EQ(grid.number_of(*index), number);
    elements += box_element_count(grid.box_of(number));
  }
  EXPECT_EQ(elements, 35);
}

TEST(ChunkGrid, AChunkMayBeLargerThanTheArray) {
  const ArrayHeader header = header_of({3}, {10});
  const ChunkGrid grid(header);
  EXPECT_EQ(grid.count(), 1U);
  EXPECT_EQ(grid.file_bytes(), 20U);
  EXPECT_EQ(box_text(grid.box_of(0)), "[0:3]");
}

TEST(ChunkGrid, ScalarsHaveOneChunkAndEmptyArraysNone) {
  const ArrayHeader scalar = header_of({}, {});
  const ChunkGrid one(scalar);
  EXPECT_EQ(one.count(), 1U);
  EXPECT_EQ(one.name_of(0), "0");
  EXPECT_EQ(one.number_of(*one.index_of("0")), 0U);
  EXPECT_FALSE(one.index_of("1").has_value());
  const ArrayHeader empty = header_of({4, 0}, {2, 0});
  const ChunkGrid none(empty);
  EXPECT_EQ(none.count(), 0U);
  EXPECT_FALSE(none.number_of(*none.index_of("0.0")).has_value());
}

TEST(ChunkGrid, KnowsOneNameForEachChunk) {
  const ArrayHeader header = header_of({5, 7}, {2, 3});
  const ChunkGrid grid(header);
  for (const char* name : {"", "0", "0.", ".0", "0.0.0", "00.0", "0.01", "-1.0", "+1.0", "0/0",
                           "0.0 ", "0.0x", "0.99999999999999999999", ".zarray"})
    EXPECT_FALSE(grid.index_of(name).has_value()) << name;
  EXPECT_FALSE(grid.number_of(*grid.index_of("3.0")).has_value());
  EXPECT_FALSE(grid.number_of(*grid.index_of("0.9223372036854775807")).has_value());
  const ArrayHeader nested = header_of({5, 7}, {2, 3}, '/');
  const ChunkGrid folders(nested);
  EXPECT_EQ(folders.name_of(5), "1/2");
  EXPECT_EQ(folders.number_of(*folders.index_of("1/2")), 5U);
  EXPECT_FALSE(folders.index_of("1.2").has_value());
}

}  // namespace
}  // namespace shardwright::format::zarr
