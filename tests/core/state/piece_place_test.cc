// SPDX-License-Identifier: Apache-2.0
//
// Where pieces lie in a local tensor, by shapes alone.
#include "core/state/piece_place.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

struct PlaceCase {
  Dims local;
  Dims global;
  std::vector<Piece> pieces;
  PiecePlace place;
};

TEST(PiecePlace, FollowsFromTheShapes) {
  const std::vector<PlaceCase> cases = {
      {{2, 3}, {8, 3}, {{{{4, 0}, {2, 3}}, 0}}, PiecePlace::kWhole},
      {{2, 3}, {8, 3}, {{{{4, 0}, {2, 3}}, 0}, {{{0, 0}, {0, 3}}, 0}}, PiecePlace::kWindow},
      {{2, 3}, {8, 3}, {{{{4, 0}, {1, 3}}, 3}}, PiecePlace::kWindow},
      {{2, 3}, {4, 8, 3}, {{{{1, 4, 0}, {1, 2, 3}}, 0}}, PiecePlace::kWhole},
      {{2, 3}, {4, 8, 3}, {{{{1, 4, 0}, {2, 1, 3}}, 0}}, PiecePlace::kRun},
      {{3}, {1, 3}, {{{{0, 0}, {1, 3}}, 0}}, PiecePlace::kWhole},
      {{6}, {8, 3}, {{{{0, 0}, {2, 3}}, 0}}, PiecePlace::kRun},
      {{1, 6}, {8}, {{{{2}, {6}}, 0}}, PiecePlace::kRun},
      {{}, {1, 1}, {{{{0, 0}, {1, 1}}, 0}}, PiecePlace::kWhole},
      {{}, {}, {{{{}, {}}, 0}}, PiecePlace::kWhole},
      {{4}, {9}, {}, PiecePlace::kWindow},
  };
  PieceBuffer buffer;
  for (const PlaceCase& each : cases) {
    TensorRef tensor;
    tensor.local.shape = each.local;
    tensor.global_shape = each.global;
    tensor.pieces = buffer.assign(each.global.size(), each.pieces);
    EXPECT_EQ(place_of_pieces(tensor), each.place) << &each - cases.data();
  }
}

TEST(LocalWindow, BeginsAtTheIndexOfTheOffset) {
  const Dims local = {2, 3, 4};
  const Dims global = {9, 9, 9};
  PieceBuffer buffer;
  TensorRef tensor;
  tensor.local.shape = local;
  tensor.global_shape = global;
  tensor.pieces = buffer.assign(3, std::vector<Piece>{{{{5, 5, 5}, {1, 2, 1}}, 19}});
  EXPECT_EQ(local_window(tensor, 0), (Box{{1, 1, 3}, {1, 2, 1}}));
}

}  // namespace
}  // namespace shardwright
