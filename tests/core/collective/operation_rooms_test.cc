// SPDX-License-Identifier: Apache-2.0
#include "core/collective/operation_rooms_internal.h"

#include <utility>

#include <gtest/gtest.h>

namespace shardwright::collective::internal {
namespace {

TEST(OperationRooms, GiveTheSameMemoryToTheNextOperationOfItsSize) {
  OperationRooms rooms;
  OperationRooms::Block first = rooms.take(1000);
  const std::byte* memory = first.bytes.get();
  rooms.give_back(std::move(first));
  EXPECT_EQ(rooms.take(999).bytes.get(), memory);
}

TEST(OperationRooms, ABlockIsNobodysWhileItIsUsed) {
  OperationRooms rooms;
  rooms.give_back(rooms.take(1000));
  const OperationRooms::Block first = rooms.take(1000), second = rooms.take(1000);
  EXPECT_NE(first.bytes.get(), second.bytes.get());
}

TEST(OperationRooms, SmallOperationsLeaveLargeBlocksAlone) {
  OperationRooms rooms;
  OperationRooms::Block large = rooms.take(1000);
  const std::byte* memory = large.bytes.get();
  rooms.give_back(std::move(large));
  EXPECT_NE(rooms.take(499).bytes.get(), memory);
  for (int each = 0; each < 5; ++each) rooms.give_back(rooms.take(10));
  EXPECT_EQ(rooms.take(1000).bytes.get(), memory);
}

TEST(OperationRooms, ABlockIsLargeEnough) {
  OperationRooms rooms;
  rooms.give_back(rooms.take(1000));
  EXPECT_EQ(rooms.take(1001).size, 1001U);
  EXPECT_EQ(rooms.take(500).size, 1000U);
}

}  // namespace
}  // namespace shardwright::collective::internal
