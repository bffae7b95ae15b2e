// SPDX-License-Identifier: Apache-2.0
//
// Ranges of row-major boxes as boxes: every range of small boxes, and random ones of larger.
#include "core/format/megatron/flat_boxes.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/layout/flat_range.h"
#include "tests/support/random_source.h"

namespace shardwright::format::megatron {
namespace {

// Numbers of the elements of a part of a box in row-major order of the box.
std::vector<int64_t> numbers_of(const Box& box, const Box& part) {
  std::vector<int64_t> numbers;
  const int64_t count = box_element_count(part);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t number = 0;
    int64_t stride = 1;
    for (size_t d = box.sizes.size(); d-- > 0;) {
      const int64_t at = part.offsets[d] - box.offsets[d] + rest % part.sizes[d];
      rest /= part.sizes[d];
      number += at * stride;
      stride *= box.sizes[d];
    }
    numbers.push_back(number);
  }
  return numbers;
}

// The boxes give the elements of the range, once each and in their order.
void expect_range(const Box& box, IndexRange range) {
  std::vector<Piece> boxes;
  append_flat_range(box, range, &boxes);
  int64_t next = range.begin;
  for (const Piece& each : boxes) {
    EXPECT_EQ(each.local_offset_elements, next - range.begin);
    for (const int64_t number : numbers_of(box, each.box)) {
      ASSERT_EQ(number, next++) << box_text(box) << " from " << range.begin << ", " << range.size;
    }
  }
  EXPECT_EQ(next, range.begin + range.size);
  EXPECT_LE(boxes.size(), std::max<size_t>(1, 2 * box.sizes.size()) - (box.sizes.empty() ? 0 : 1));
}

TEST(FlatBoxes, EveryRangeOfSmallBoxes) {
  for (const Dims& sizes :
       {Dims{}, Dims{7}, Dims{1, 5}, Dims{3, 4}, Dims{2, 1, 3}, Dims{3, 2, 4}}) {
    Box box{Dims(sizes.size(), 10), sizes};
    const int64_t count = element_count_of(sizes.span());
    for (int64_t begin = 0; begin < count; ++begin) {
      for (int64_t length = 0; begin + length <= count; ++length)
        expect_range(box, {begin, length});
    }
  }
}

TEST(FlatBoxes, RandomRangesOfManyDimensions) {
  shardwright::test::RandomSource random;
  for (int round = 0; round < 500; ++round) {
    const auto dims = static_cast<size_t>(random.between(1, 6));
    Box box{Dims(dims, 0), Dims(dims, 1)};
    for (size_t d = 0; d < dims; ++d) box.sizes[d] = random.between(1, 5);
    const int64_t count = box_element_count(box);
    const int64_t begin = random.between(0, count - 1);
    expect_range(box, {begin, random.between(0, count - begin)});
  }
}

TEST(FlatBoxes, SizesAreExactOrNone) {
  const auto sizes = [](Dims shape, Dims entry) {
    return flattened_box_sizes(shape.span(), entry.span());
  };
  EXPECT_EQ(*sizes({4, 6}, {1, 2, 12}), (Dims{4, 3}));
  EXPECT_EQ(*sizes({6}, {1, 6}), Dims{6});
  EXPECT_EQ(*sizes({2, 2, 3}, {2, 1, 1, 6}), (Dims{1, 2, 3}));
  for (const auto& [shape, entry] : std::vector<std::pair<Dims, Dims>>{{{4, 6}, {1, 2, 11}},
                                                                       {{4, 6}, {1, 4, 6}},
                                                                       {{4, 6}, {0, 2, 12}},
                                                                       {{4, 6}, {1, 2}},
                                                                       {{4, 6}, {1, -2, 12}},
                                                                       {{-4, 6}, {1, 2, 12}}}) {
    EXPECT_EQ(sizes(shape, entry).status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace shardwright::format::megatron
