// SPDX-License-Identifier: Apache-2.0
//
// Flat ranges as boxes.
#include "core/layout/flat_range.h"

#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

std::vector<Piece> pieces_of(const Box& box, int64_t begin, int64_t end) {
  const auto pieces = flat_range_pieces(box, {begin, end - begin});
  EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
  return pieces.ok() ? *pieces : std::vector<Piece>();
}

using Pieces = std::vector<Piece>;

TEST(FlatRange, OfOneDimensionIsOneBox) {
  EXPECT_EQ(pieces_of({{10}, {6}}, 3, 6), (Pieces{{{{13}, {3}}, 0}}));
}

TEST(FlatRange, OfAScalarIsTheScalar) {
  EXPECT_EQ(pieces_of({{}, {}}, 0, 1), (Pieces{{{{}, {}}, 0}}));
  EXPECT_TRUE(pieces_of({{}, {}}, 1, 1).empty());
}

TEST(FlatRange, HasPartsOfRowsAroundWholeRows) {
  const Box box = whole_box(Dims{4, 6});
  EXPECT_EQ(pieces_of(box, 0, 24), (Pieces{{{{0, 0}, {4, 6}}, 0}}));
  EXPECT_EQ(pieces_of(box, 0, 10), (Pieces{{{{0, 0}, {1, 6}}, 0}, {{{1, 0}, {1, 4}}, 6}}));
  EXPECT_EQ(pieces_of(box, 10, 24), (Pieces{{{{1, 4}, {1, 2}}, 0}, {{{2, 0}, {2, 6}}, 2}}));
  EXPECT_EQ(pieces_of(box, 7, 11), (Pieces{{{{1, 1}, {1, 4}}, 0}}));
  EXPECT_EQ(pieces_of(box, 5, 7), (Pieces{{{{0, 5}, {1, 1}}, 0}, {{{1, 0}, {1, 1}}, 1}}));
}

TEST(FlatRange, OfThreeDimensionsIsAtMostFiveBoxes) {
  const Pieces pieces = pieces_of({{1, 0, 2}, {4, 3, 5}}, 7, 52);
  EXPECT_EQ(pieces, (Pieces{{{{1, 1, 4}, {1, 1, 3}}, 0},
                            {{{1, 2, 2}, {1, 1, 5}}, 3},
                            {{{2, 0, 2}, {2, 3, 5}}, 8},
                            {{{4, 0, 2}, {1, 1, 5}}, 38},
                            {{{4, 1, 2}, {1, 1, 2}}, 43}}));
}

TEST(FlatRange, ThatIsEmptyHasNoBox) {
  EXPECT_TRUE(pieces_of(whole_box(Dims{4, 6}), 11, 11).empty());
  EXPECT_TRUE(pieces_of(whole_box(Dims{4, 0}), 0, 0).empty());
}

TEST(FlatRange, MustLieInsideTheBox) {
  const Box box = whole_box(Dims{2, 3});
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(flat_range_pieces(box, {3, 4}).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(flat_range_pieces(box, {7, 0}).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(flat_range_pieces(box, {kMax, kMax}).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(flat_range_pieces(box, {-1, 2}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(flat_range_pieces(box, {1, -1}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(flat_range_pieces({{0, 0}, {kMax, 2}}, {0, 1}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright
