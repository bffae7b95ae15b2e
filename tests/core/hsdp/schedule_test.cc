// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/schedule.h"

#include <gtest/gtest.h>

namespace shardwright::test {
namespace {

using hsdp::Schedule;
using hsdp::UnitId;
using Units = std::vector<UnitId>;

Schedule with_units(UnitId count) {
  Schedule schedule;
  for (UnitId each = 0; each < count; ++each) schedule.add_unit(each);
  return schedule;
}

TEST(Schedule, TheFirstIterationFollowsTheOrderOfCreation) {
  Schedule schedule = with_units(4);
  EXPECT_EQ(schedule.forward(0, 2), (Units{1, 2}));
  EXPECT_EQ(schedule.forward(1, 2), (Units{2, 3}));
  EXPECT_EQ(schedule.forward(3, 2), Units{});
}

TEST(Schedule, LaterIterationsFollowWhatRan) {
  Schedule schedule = with_units(3);
  for (const UnitId each : {2, 0, 1}) (void)schedule.forward(each, 1);
  schedule.finish();
  EXPECT_EQ(schedule.recorded(), (Units{2, 0, 1}));
  EXPECT_EQ(schedule.forward(2, 1), Units{0});
  EXPECT_EQ(schedule.forward(0, 1), Units{1});
  EXPECT_EQ(schedule.forward(1, 1), Units{});
}

TEST(Schedule, AUnitThatRunsTwiceIsForetoldTwice) {
  Schedule schedule = with_units(3);
  for (const UnitId each : {0, 1, 0, 2}) (void)schedule.forward(each, 1);
  schedule.finish();
  EXPECT_EQ(schedule.forward(0, 1), Units{1});
  EXPECT_EQ(schedule.forward(1, 1), Units{0});
  EXPECT_EQ(schedule.forward(0, 1), Units{2});
}

TEST(Schedule, AnOrderThatBeginsAnewIsFoundAgain) {
  Schedule schedule = with_units(3);
  for (const UnitId each : {0, 1, 2}) (void)schedule.forward(each, 1);
  schedule.finish();
  // Two forwards before a backward.
  for (const UnitId each : {0, 1, 2}) (void)schedule.forward(each, 1);
  EXPECT_EQ(schedule.forward(0, 1), Units{1});
  EXPECT_EQ(schedule.forward(1, 1), Units{2});
}

TEST(Schedule, BackwardGoesTheSameWayBack) {
  Schedule schedule = with_units(3);
  for (const UnitId each : {0, 1, 0, 2}) (void)schedule.forward(each, 1);
  EXPECT_EQ(schedule.backward(2, 2), (Units{0, 1}));
  EXPECT_EQ(schedule.backward(0, 2), (Units{1, 0}));
  EXPECT_EQ(schedule.backward(1, 2), Units{0});
  EXPECT_EQ(schedule.backward(0, 2), Units{});
}

TEST(Schedule, AUnitAroundOthersDoesNotEndWhatTheyForetell) {
  for (const bool begins_first : {true, false}) {
    Schedule schedule = with_units(4);
    for (const UnitId each : {0, 1, 2, 3}) (void)schedule.forward(each, 1);
    if (begins_first) {
      EXPECT_EQ(schedule.backward(0, 1), Units{});
    }
    EXPECT_EQ(schedule.backward(3, 1), Units{2});
    if (!begins_first) {
      EXPECT_EQ(schedule.backward(0, 1), Units{});
    }
    EXPECT_EQ(schedule.backward(2, 1), Units{1});
    EXPECT_EQ(schedule.backward(1, 1), Units{});
  }
}

TEST(Schedule, UnitsThatBackwardLeavesOutAreNotForetold) {
  Schedule schedule = with_units(4);
  for (const UnitId each : {0, 1, 2, 3}) (void)schedule.forward(each, 1);
  EXPECT_EQ(schedule.backward(2, 1), Units{1});
  EXPECT_EQ(schedule.backward(1, 2), Units{0});
}

TEST(Schedule, MicroBatchesForetellTheirOwnUnits) {
  Schedule schedule = with_units(2);
  for (int number = 0; number < 3; ++number) {
    for (const UnitId each : {0, 1}) (void)schedule.forward(each, 1);
    EXPECT_EQ(schedule.backward(1, 2), Units{0});
    EXPECT_EQ(schedule.backward(0, 2), Units{});
  }
}

TEST(Schedule, AUnitThatNeverRanForetellsNothing) {
  Schedule schedule = with_units(2);
  (void)schedule.forward(0, 1);
  EXPECT_EQ(schedule.backward(1, 1), Units{});
}

TEST(Schedule, WhatWasAbandonedIsNotRecorded) {
  Schedule schedule = with_units(3);
  for (const UnitId each : {0, 1, 2}) (void)schedule.forward(each, 1);
  schedule.finish();
  (void)schedule.forward(2, 1);
  schedule.abandon();
  EXPECT_EQ(schedule.recorded(), (Units{0, 1, 2}));
  EXPECT_EQ(schedule.forward(0, 1), Units{1});
}

}  // namespace
}  // namespace shardwright::test
