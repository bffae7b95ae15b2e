// SPDX-License-Identifier: Apache-2.0
//
// Chunks that share no element pass, whether they tile their tensor or not; two that do are named.
#include "core/plan/search/chunk_search_internal.h"

#include "core/base/limits.h"
#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

Status prove(const Dims& shape, const std::vector<Box>& boxes) {
  return internal::prove_disjoint(catalog_of(shape, boxes), 0, "rank");
}

// Of any two boxes, by looking.
bool any_meet(const std::vector<Box>& boxes) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      bool meet = true;
      for (size_t d = 0; d < boxes[i].sizes.size(); ++d) {
        const int64_t begin = std::max(boxes[i].offsets[d], boxes[j].offsets[d]);
        const int64_t end = std::min(boxes[i].offsets[d] + boxes[i].sizes[d],
                                     boxes[j].offsets[d] + boxes[j].sizes[d]);
        meet = meet && begin < end;
      }
      if (meet) return true;
    }
  }
  return false;
}

TEST(ProveDisjoint, NamesTwoBoxesAndTheirPlacesInAnyNumberOfDimensions) {
  EXPECT_FAILURE(prove({4}, {box({0}, {4}), box({0}, {4})}), StatusCode::kInvalidArgument,
                 "box [0:4] of rank 0 overlaps box [0:4] of rank 1");
  EXPECT_FAILURE(prove({9}, {box({0}, {3}), box({5}, {3}), box({2}, {2})}),
                 StatusCode::kInvalidArgument, "box [0:3] of rank 0 overlaps box [2:4] of rank 2");
  EXPECT_FAILURE(prove({9, 9}, {box({0, 0}, {3, 3}), box({0, 5}, {9, 2}), box({2, 2}, {2, 2})}),
                 StatusCode::kInvalidArgument,
                 "box [0:3, 0:3] of rank 0 overlaps box [2:4, 2:4] of rank 2");
  EXPECT_FAILURE(prove({9, 9, 9}, {box({0, 0, 0}, {3, 3, 3}), box({5, 5, 5}, {1, 1, 1}),
                                   box({2, 2, 2}, {2, 2, 2})}),
                 StatusCode::kInvalidArgument,
                 "box [0:3, 0:3, 0:3] of rank 0 overlaps box [2:4, 2:4, 2:4] of rank 2");
}

TEST(ProveDisjoint, TakesHolesAndBoxesWithoutElements) {
  EXPECT_TRUE(prove({9}, {box({0}, {3}), box({5}, {3})}).ok());
  EXPECT_TRUE(prove({9}, {box({0}, {9}), box({4}, {0})}).ok());
  EXPECT_TRUE(prove({9, 9}, {box({0, 0}, {3, 9}), box({1, 4}, {2, 0})}).ok());
  EXPECT_TRUE(prove({4, 4, 4}, {box({0, 0, 0}, {4, 4, 2}), box({1, 1, 1}, {2, 0, 1})}).ok());
}

TEST(ProveDisjoint, AgreesWithLookingAtAllPairs) {
  shardwright::test::RandomSource random(20260);
  int overlapping = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto dimensions = static_cast<size_t>(random.between(1, 4));
    std::vector<Box> boxes;
    for (int64_t count = random.between(1, 5); count > 0; --count) {
      Box made{Dims(dimensions, 0), Dims(dimensions, 0)};
      for (size_t d = 0; d < dimensions; ++d) {
        made.offsets[d] = random.between(0, 6);
        made.sizes[d] = random.between(0, std::min<int64_t>(3, 8 - made.offsets[d]));
      }
      boxes.push_back(std::move(made));
    }
    overlapping += any_meet(boxes) ? 1 : 0;
    ASSERT_EQ(prove(Dims(dimensions, 8), boxes).ok(), !any_meet(boxes));
  }
  EXPECT_GT(overlapping, 300);
  EXPECT_LT(overlapping, 2700);
}

}  // namespace
}  // namespace shardwright::plan::test
