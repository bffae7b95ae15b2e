// SPDX-License-Identifier: Apache-2.0
#include "tests/property/choices.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace shardwright::test {
namespace {

std::vector<int64_t> draw_numbers(Choices& choices) {
  std::vector<int64_t> numbers(static_cast<size_t>(choices.between(0, 30)));
  for (int64_t& each : numbers) each = choices.between(0, 1000);
  return numbers;
}

TEST(Choices, DrawTheSameAgainAndZerosAfterTheirEnd) {
  Choices first(uint64_t{5});
  const std::vector<int64_t> numbers = draw_numbers(first);
  Choices again(first.drawn());
  EXPECT_EQ(draw_numbers(again), numbers);
  EXPECT_EQ(again.between(-3, 9), -3);
  EXPECT_FALSE(again.chance(99));
}

TEST(Choices, StayInTheirRange) {
  Choices given(ChoiceList{7, UINT64_MAX, 2});
  EXPECT_EQ(given.between(0, 4), 4);
  EXPECT_EQ(given.between(INT64_MIN, INT64_MAX), INT64_MAX);
  EXPECT_EQ(given.between(5, 5), 5);
}

TEST(Choices, ShrinkToTheSmallestListThatFails) {
  const auto fails = [](const ChoiceList& list) {
    Choices choices(list);
    const std::vector<int64_t> numbers = draw_numbers(choices);
    return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}) > 1500;
  };
  for (uint64_t start = 0; start < 20; ++start) {
    Choices choices(start);
    draw_numbers(choices);
    if (!fails(choices.drawn())) continue;
    Choices small(shrink(choices.drawn(), fails, 100000));
    const std::vector<int64_t> numbers = draw_numbers(small);
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}), 1501);
  }
}

TEST(Choices, ShrinkStopsAfterItsTries) {
  int calls = 0;
  const auto fails = [&calls](const ChoiceList&) { return ++calls < 0; };
  EXPECT_EQ(shrink(ChoiceList(50, 1000), fails, 17), ChoiceList(50, 1000));
  EXPECT_EQ(calls, 17);
}

}  // namespace
}  // namespace shardwright::test
