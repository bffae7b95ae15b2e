// SPDX-License-Identifier: Apache-2.0
//
// Box algebra.
#include "core/layout/box.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Box, WholeBoxCoversTheShape) {
  const Box box = whole_box(Dims{2, 0, 5});
  EXPECT_EQ(box.offsets, (Dims{0, 0, 0}));
  EXPECT_EQ(box.sizes, (Dims{2, 0, 5}));
  EXPECT_TRUE(box_is_empty(box));
  EXPECT_EQ(box_element_count(box), 0);
}

TEST(Box, OfAScalarHoldsOneElement) {
  const Box box = whole_box(Dims{});
  EXPECT_FALSE(box_is_empty(box));
  EXPECT_EQ(box_element_count(box), 1);
  EXPECT_EQ(box_text(box), "[]");
  EXPECT_TRUE(check_box(box, Dims{}).ok());
}

TEST(Box, TextShowsHalfOpenRanges) {
  EXPECT_EQ(box_text({{2, 0}, {3, 8}}), "[2:5, 0:8]");
  // As boxes of callers that were refused.
  EXPECT_EQ(box_text({{kMax, -1}, {kMax, 3}}), "[9223372036854775807:18446744073709551614, -1:2]");
}

TEST(Box, OrdersByOffsetsThenSizes) {
  EXPECT_LT((Box{{0, 1}, {9, 9}}), (Box{{0, 2}, {1, 1}}));
  EXPECT_LT((Box{{0}, {1}}), (Box{{0}, {2}}));
  EXPECT_EQ((Box{{1}, {2}}), (Box{{1}, {2}}));
}

struct CheckCase {
  Box box;
  Dims shape;
  StatusCode code;
};

class CheckBox : public testing::TestWithParam<CheckCase> {};

TEST_P(CheckBox, GivesTheCode) {
  EXPECT_EQ(check_box(GetParam().box, GetParam().shape).code(), GetParam().code)
      << box_text(GetParam().box);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CheckBox,
    testing::Values(CheckCase{{{0}, {4}}, {4}, StatusCode::kOk},
                    CheckCase{{{4}, {0}}, {4}, StatusCode::kOk},
                    CheckCase{{{1, 0}, {2, 3}}, {3, 3}, StatusCode::kOk},
                    CheckCase{{{5}, {0}}, {4}, StatusCode::kOutOfRange},
                    CheckCase{{{1}, {4}}, {4}, StatusCode::kOutOfRange},
                    CheckCase{{{2}, {kMax}}, {4}, StatusCode::kOutOfRange},
                    CheckCase{{{kMax}, {kMax}}, {4}, StatusCode::kOutOfRange},
                    CheckCase{{{-1}, {2}}, {4}, StatusCode::kInvalidArgument},
                    CheckCase{{{0}, {-2}}, {4}, StatusCode::kInvalidArgument},
                    CheckCase{{{9, -1}, {1, 1}}, {4, 4}, StatusCode::kInvalidArgument},
                    CheckCase{{{0}, {1}}, {4, 4}, StatusCode::kInvalidArgument},
                    CheckCase{{{0, 0}, {1}}, {4, 4}, StatusCode::kInvalidArgument},
                    CheckCase{{{}, {}}, {1}, StatusCode::kInvalidArgument}));

TEST(Intersect, GivesTheCommonPart) {
  EXPECT_EQ(intersect({{0, 0}, {4, 4}}, {{2, 1}, {4, 2}}), (Box{{2, 1}, {2, 2}}));
  EXPECT_TRUE(box_is_empty(intersect({{0}, {2}}, {{2}, {2}})));
  EXPECT_TRUE(box_is_empty(intersect({{0}, {2}}, {{7}, {2}})));
  EXPECT_EQ(intersect(whole_box(Dims{}), whole_box(Dims{})), whole_box(Dims{}));
}

TEST(Intersect, AgreesWithCountingElements) {
  test::RandomSource random;
  const auto random_box = [&random] {
    Box box{{0, 0}, {0, 0}};
    for (size_t d = 0; d < 2; ++d) {
      box.offsets[d] = random.between(0, 5);
      box.sizes[d] = random.between(0, 4);
    }
    return box;
  };
  const auto holds = [](const Box& box, int64_t x, int64_t y) {
    return x >= box.offsets[0] && x < box.offsets[0] + box.sizes[0] && y >= box.offsets[1] &&
           y < box.offsets[1] + box.sizes[1];
  };
  for (int round = 0; round < 300; ++round) {
    const Box a = random_box();
    const Box b = random_box();
    const Box common = intersect(a, b);
    for (int64_t x = 0; x < 10; ++x) {
      for (int64_t y = 0; y < 10; ++y) {
        ASSERT_EQ(holds(common, x, y), holds(a, x, y) && holds(b, x, y))
            << box_text(a) << " " << box_text(b);
      }
    }
  }
}

}  // namespace
}  // namespace shardwright
