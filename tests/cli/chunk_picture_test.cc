// SPDX-License-Identifier: Apache-2.0
#include "cli/chunk_picture.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

// Chunks of a regular grid over two dimensions, each written by its own rank and held by it.
ChunkColumns grid(int64_t rows, int64_t columns) {
  ChunkColumns chunks;
  chunks.dims = {0, 1};
  chunks.offsets.resize(2);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      chunks.offsets[0].push_back(row * 10);
      chunks.offsets[1].push_back(column * 10);
      chunks.ranks.push_back(chunks.ranks.size());
      chunks.holders.push_back(1);
    }
  }
  return chunks;
}

TEST(ChunkPicture, HasACellForEachChunkOfASmallGrid) {
  const ChunkPicture picture = draw_chunks(grid(2, 3));
  EXPECT_EQ(picture.row_dim, 0);
  EXPECT_EQ(picture.column_dim, 1);
  EXPECT_EQ(picture.rows, 2U);
  EXPECT_EQ(picture.columns, 3U);
  ASSERT_EQ(picture.cells.size(), 6U);
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(picture.cells[i].chunks, 1U);
    EXPECT_EQ(picture.cells[i].first_rank, i);
    EXPECT_EQ(picture.cells[i].last_rank, i);
  }
}

TEST(ChunkPicture, IsBoundedForManyChunks) {
  const ChunkPicture picture = draw_chunks(grid(300, 100));
  EXPECT_EQ(picture.row_parts, 300U);
  EXPECT_EQ(picture.column_parts, 100U);
  EXPECT_EQ(picture.cells.size(), kMaxPictureSide * kMaxPictureSide);
  uint64_t chunks = 0;
  for (const PictureCell& cell : picture.cells) chunks += cell.chunks;
  EXPECT_EQ(chunks, 30000U);
  EXPECT_EQ(picture.cells.front().first_rank, 0U);
  EXPECT_EQ(picture.cells.back().last_rank, 29999U);
}

TEST(ChunkPicture, OneCutDimensionBehindTheFirstGoesToTheRight) {
  ChunkColumns chunks;
  chunks.dims = {2};
  chunks.offsets = {{0, 5}};
  chunks.ranks = {7, 3};
  chunks.holders = {2, 4};
  const ChunkPicture picture = draw_chunks(chunks);
  EXPECT_EQ(picture.row_dim, -1);
  EXPECT_EQ(picture.column_dim, 2);
  ASSERT_EQ(picture.cells.size(), 2U);
  EXPECT_EQ(picture.cells[1].first_rank, 3U);
  EXPECT_EQ(picture.cells[1].most_holders, 4U);
}

TEST(ChunkPicture, FurtherDimensionsLieBehindEachOther) {
  ChunkColumns chunks;
  chunks.dims = {0, 1, 2};
  chunks.offsets = {{0, 0, 1, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}};
  chunks.ranks = {4, 1, 2, 3};
  chunks.holders = {1, 3, 1, 1};
  const ChunkPicture picture = draw_chunks(chunks);
  ASSERT_EQ(picture.cells.size(), 4U);
  EXPECT_EQ(picture.cells[0].chunks, 2U);
  EXPECT_EQ(picture.cells[0].first_rank, 1U);
  EXPECT_EQ(picture.cells[0].last_rank, 4U);
  EXPECT_EQ(picture.cells[0].fewest_holders, 1U);
  EXPECT_EQ(picture.cells[0].most_holders, 3U);
  EXPECT_EQ(picture.cells[1].chunks, 0U) << "nothing lies in the first rows and the second columns";
}

TEST(ChunkPicture, AnUncutTensorIsOneCell) {
  ChunkColumns chunks;
  chunks.ranks = {5};
  chunks.holders = {8};
  const ChunkPicture picture = draw_chunks(chunks);
  EXPECT_EQ(picture.row_dim, -1);
  EXPECT_EQ(picture.column_dim, -1);
  ASSERT_EQ(picture.cells.size(), 1U);
  EXPECT_EQ(picture.cells[0].first_rank, 5U);
}

}  // namespace
}  // namespace shardwright::cli
