// SPDX-License-Identifier: Apache-2.0
//
// The cover proof agrees with a count per element, and names a true culprit.
#include "core/base/limits.h"
#include "tests/core/plan/catalog_boxes.h"
#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

Status prove(const Dims& shape, const std::vector<Box>& boxes) {
  return prove_cover(catalog_of(shape, boxes), 0);
}

// Whether each point of the shape lies in exactly one box, by looking.
bool covers_each_point(const Dims& shape, const std::vector<Box>& boxes) {
  const int64_t points = box_element_count(whole_box(shape));
  for (int64_t i = 0; i < points; ++i) {
    Box point{Dims(shape.size(), 0), Dims(shape.size(), 1)};
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) point.offsets[d] = rest % shape[d];
    int64_t count = 0;
    for (const Box& each : boxes) count += box_is_empty(intersect(each, point)) ? 0 : 1;
    if (count != 1) return false;
  }
  return true;
}

TEST(ProveCover, TakesTilings) {
  EXPECT_TRUE(prove({}, {box({}, {})}).ok());
  EXPECT_TRUE(prove({5}, {box({3}, {2}), box({0}, {3})}).ok());
  EXPECT_TRUE(prove({5}, {box({0}, {3}), box({3}, {0}), box({3}, {2})}).ok());
  EXPECT_TRUE(prove({2, 2}, {box({0, 0}, {1, 2}), box({1, 0}, {1, 1}), box({1, 1}, {1, 1})}).ok());
  EXPECT_TRUE(prove({0, 4}, {}).ok());
  EXPECT_TRUE(prove({0, 4}, {box({0, 0}, {0, 2})}).ok());
}

TEST(ProveCover, NamesHoles) {
  EXPECT_FAILURE(prove({}, {}), StatusCode::kInvalidArgument, "'w'", "[]");
  EXPECT_FAILURE(prove({5}, {}), StatusCode::kInvalidArgument, "holds box [0:5]");
  EXPECT_FAILURE(prove({5}, {box({0}, {4})}), StatusCode::kInvalidArgument, "holds box [4:5]");
  EXPECT_FAILURE(prove({4, 4}, {box({0, 0}, {4, 2}), box({0, 2}, {3, 2})}),
                 StatusCode::kInvalidArgument, "holds box [3:4, 2:4]");
}

TEST(ProveCover, NamesOverlaps) {
  EXPECT_FAILURE(prove({}, {box({}, {}), box({}, {})}), StatusCode::kInvalidArgument, "place 0",
                 "place 1", "overlaps");
  EXPECT_FAILURE(prove({5}, {box({0}, {3}), box({2}, {3})}), StatusCode::kInvalidArgument,
                 "[0:3] of place 0", "[2:5] of place 1");
  // Right number of elements, but one row twice and one never.
  const Status status = prove({4, 4}, {box({0, 0}, {2, 4}), box({1, 0}, {2, 4})});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(ProveCover, SeesAHoleThatAnOverlapMakesUpFor) {
  EXPECT_FALSE(prove({2, 2}, {box({0, 0}, {1, 1}), box({0, 0}, {1, 1}), box({1, 0}, {1, 1}),
                              box({1, 1}, {1, 1})})
                   .ok());
}

TEST(ProveCover, TakesCopiesWhereTheyAreAllowed) {
  const auto allowed = [](const Dims& shape, const std::vector<Box>& boxes) {
    return prove_cover(catalog_of(shape, boxes), 0, Copies::kAllowed);
  };
  EXPECT_TRUE(allowed({}, {box({}, {}), box({}, {})}).ok());
  EXPECT_TRUE(allowed({4}, {box({0}, {4}), box({0}, {4}), box({0}, {4})}).ok());
  EXPECT_TRUE(allowed({4}, {box({2}, {2}), box({0}, {2}), box({2}, {2})}).ok());
  EXPECT_TRUE(allowed({4, 4}, {box({0, 0}, {2, 4}), box({2, 0}, {2, 1}), box({2, 1}, {2, 3}),
                               box({2, 1}, {2, 3})})
                  .ok());
  EXPECT_FAILURE(allowed({4}, {box({2}, {2}), box({2}, {2})}), StatusCode::kInvalidArgument,
                 "holds box [0:2]");
  EXPECT_FAILURE(allowed({4}, {box({0}, {2}), box({2}, {2}), box({0}, {2}), box({1}, {2})}),
                 StatusCode::kInvalidArgument, "place 3", "overlaps");
}

TEST(ProveCover, AgreesWithACountPerElementOfDistinctBoxes) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 1000 && !testing::Test::HasFailure(); ++i) {
    const Dims shape{random.between(1, 5), random.between(1, 5), random.between(1, 5)};
    std::vector<Box> boxes = random_pieces(random, whole_box(shape), random.between(1, 9));
    const std::vector<Box> once = boxes;
    for (int64_t k = random.between(0, 4); k > 0; --k) boxes.push_back(random.pick(once));
    std::vector<Box> distinct = once;
    if (random.chance(30)) {
      boxes.erase(boxes.begin());
      distinct.clear();
      for (const Box& each : boxes) {
        if (std::ranges::find(distinct, each) == distinct.end()) distinct.push_back(each);
      }
    }
    const Status status = prove_cover(catalog_of(shape, boxes), 0, Copies::kAllowed);
    EXPECT_EQ(status.ok(), covers_each_point(shape, distinct)) << status.to_string();
  }
}

// Changes one box of a tiling.
void damage(shardwright::test::RandomSource& random, const Dims& shape, std::vector<Box>* boxes) {
  Box& victim =
      (*boxes)[static_cast<size_t>(random.between(0, static_cast<int64_t>(boxes->size()) - 1))];
  const auto d = static_cast<size_t>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
  victim.offsets[d] = random.between(0, shape[d] - 1);
  victim.sizes[d] = random.between(0, shape[d] - victim.offsets[d]);
}

TEST(ProveCover, AgreesWithACountPerElement) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
    std::vector<int64_t> extents;
    for (int64_t d = random.between(1, 4); d > 0; --d) extents.push_back(random.between(1, 5));
    const Dims shape(extents);
    std::vector<Box> boxes = random_pieces(random, whole_box(shape), random.between(1, 20));
    if (random.chance(60)) damage(random, shape, &boxes);
    const Status status = prove(shape, boxes);
    EXPECT_EQ(status.ok(), covers_each_point(shape, boxes)) << status.to_string();
    if (status.code() == StatusCode::kInvalidArgument) continue;
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(ProveCover, NamesTrueCulprits) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 500 && !testing::Test::HasFailure(); ++i) {
    const Dims shape{9, 8, 7};
    std::vector<Box> boxes = random_pieces(random, whole_box(shape), 40);
    damage(random, shape, &boxes);
    const Status status = prove(shape, boxes);
    if (status.ok()) continue;
    std::vector<std::string> named;
    for (const StatusDetail& detail : status.details()) {
      if (detail.key == "box") named.push_back(detail.value);
    }
    std::vector<Box> meant;
    for (const Box& each : boxes) {
      if (named.size() == 2 && (box_text(each) == named[0] || box_text(each) == named[1]))
        meant.push_back(each);
    }
    if (named.size() == 2) {
      ASSERT_GE(meant.size(), 2U);
      EXPECT_FALSE(box_is_empty(intersect(meant[0], meant[1]))) << status.to_string();
      continue;
    }
    ASSERT_EQ(named.size(), 1U);
    for (const Box& each : boxes) {
      EXPECT_NE(box_text(each), named[0]) << status.to_string();
    }
  }
}

TEST(ProveCover, IsLinearInSplitDimensions) {
  // 2^20 corners per box would be felt; the factored sum takes twenty steps.
  const Dims shape(20, 2);
  std::vector<Box> boxes;
  Box rest = whole_box(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    Box part = rest;
    part.sizes[d] = 1;
    rest.offsets[d] = 1;
    rest.sizes[d] = 1;
    boxes.push_back(part);
  }
  EXPECT_FAILURE(prove(shape, boxes), StatusCode::kInvalidArgument, "holds box [1:2, 1:2");
  boxes.push_back(rest);
  EXPECT_TRUE(prove(shape, boxes).ok());
}

TEST(ProveAllCovers, ProvesRankLocalEntriesByThemselves) {
  std::vector<State> states;
  for (int r = 0; r < 2; ++r) states.push_back(state_of({whole("w", {3}, EntryKind::kRankLocal)}));
  Catalog catalog = planned(states).catalog;
  ASSERT_EQ(catalog.tensors.size(), 2U);
  EXPECT_TRUE(prove_all_covers(catalog).ok());
  catalog = with_boxes(catalog);
  catalog.shapes[1] = 4;
  catalog.tensors[1].split_mask = 1;
  catalog.boxes[1].size0 = 3;
  EXPECT_FAILURE(prove_all_covers(catalog), StatusCode::kInvalidArgument, "[3:4]");
}

}  // namespace
}  // namespace shardwright::plan::test
