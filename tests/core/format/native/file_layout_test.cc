// SPDX-License-Identifier: Apache-2.0
//
// Where chunks and objects lie in a file.
#include "core/format/native/file_layout.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::format::native {
namespace {

using plan::kObjectPiece;
using plan::WriteItem;

TEST(FileLayout, LargeItemsComeFirstAlignedThenSmallChunksThenSmallObjects) {
  const uint64_t limit = kSlabChunkLimitBytes;
  const std::vector<WriteItem> items = {{0, 0, 12},           {1, 0, limit},
                                        {2, 0, limit - 4},    {3, 0, limit + 4},
                                        {0, kObjectPiece, 0}, {1, kObjectPiece, 4}};
  const Result<FileLayout> layout = lay_out(items);
  ASSERT_TRUE(layout.ok()) << layout.status().to_string();
  const std::vector<PlacedItem>& placed = layout->items;
  ASSERT_EQ(placed.size(), 6U);
  const std::vector<uint32_t> order = {1, 3, 0, 2, 4, 5};
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(placed[i].item, order[i]) << i;
  EXPECT_EQ(placed[0].position, kExtentAlignmentBytes);
  EXPECT_EQ(placed[1].position, kExtentAlignmentBytes + limit);
  const uint64_t slab = placed[1].position + placed[1].size_bytes;
  EXPECT_EQ(placed[2].position, (slab + 63) / 64 * 64);
  EXPECT_EQ(placed[3].position, placed[2].position + 64);
  EXPECT_EQ(placed[4].size_bytes, 0U);
  EXPECT_EQ(placed[5].position % kSlabAlignmentBytes, 0U);
  EXPECT_EQ(layout->data_bytes, placed[5].position + 4);
}

TEST(FileLayout, ItemsAscendWithoutOverlapAndWithoutWaste) {
  test::RandomSource random;
  for (int64_t round = 0; round < test::rounds(500, 20000); ++round) {
    std::vector<WriteItem> items(static_cast<size_t>(random.between(0, 30)));
    const size_t objects = items.size() - items.size() / 3;
    for (uint32_t i = 0; i < items.size(); ++i) {
      const int64_t most = random.chance(30) ? 200'000 : 500;
      items[i] = {i, i < objects ? 0 : kObjectPiece,
                  static_cast<uint64_t>(random.between(0, most))};
    }
    const FileLayout layout = *lay_out(items);
    std::vector<bool> seen(items.size(), false);
    uint64_t end = kExtentAlignmentBytes;
    for (const PlacedItem& placed : layout.items) {
      ASSERT_FALSE(seen[placed.item]);
      seen[placed.item] = true;
      ASSERT_EQ(placed.size_bytes, items[placed.item].size_bytes);
      ASSERT_GE(placed.position, end);
      const bool large = placed.size_bytes >= kSlabChunkLimitBytes;
      const uint64_t alignment = large ? kExtentAlignmentBytes : kSlabAlignmentBytes;
      if (placed.size_bytes != 0) {
        ASSERT_EQ(placed.position % alignment, 0U);
      }
      ASSERT_LT(placed.position - end, alignment);
      end = placed.position + placed.size_bytes;
    }
    ASSERT_EQ(std::ranges::count(seen, false), 0);
    ASSERT_EQ(layout.data_bytes, items.empty() ? 0 : end);
  }
}

TEST(FileLayout, RefusesAFileThatIsTooLarge) {
  // Each item fits, all of them do not.
  const std::vector<WriteItem> items(5, {0, 0, uint64_t{1} << 60});
  const Status status = lay_out(items).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("2^62"), std::string_view::npos) << status.message();
}

}  // namespace
}  // namespace shardwright::format::native
