// SPDX-License-Identifier: Apache-2.0
//
// The order of chunks along a curve: all of them, neighbours together, whatever the coordinates.
#include "core/plan/search/curve_order_internal.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

void expect_permutation(std::vector<uint32_t> order, size_t count) {
  std::ranges::sort(order);
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0U);
  EXPECT_EQ(order, all);
}

TEST(CurveOrder, IsThatOfTheMiddlesInOneDimension) {
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 1000; ++i) boxes.push_back(box({3 * i}, {i % 4}));
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(1));
  const Catalog catalog = catalog_of({3000}, boxes);
  const std::vector<uint32_t> order = internal::curve_order(catalog, 0);
  expect_permutation(order, boxes.size());
  for (size_t i = 1; i < order.size(); ++i)
    EXPECT_LT(boxes[order[i - 1]].offsets[0], boxes[order[i]].offsets[0]);
}

TEST(CurveOrder, KeepsSquaresOfAGridTogether) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t column = 0; column < 64; ++column)
      boxes.push_back(box({8 * row, 8 * column}, {8, 8}));
  }
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(2));
  const Catalog catalog = catalog_of({512, 512}, boxes);
  const std::vector<uint32_t> order = internal::curve_order(catalog, 0);
  expect_permutation(order, boxes.size());
  // Sixteen after one another are a square of four by four, but where the lattice of the curve is
  // cut.
  int64_t area = 0;
  for (size_t first = 0; first < order.size(); first += 16) {
    Dims least = boxes[order[first]].offsets;
    Dims most = least;
    for (size_t i = first; i < first + 16; ++i) {
      for (size_t k = 0; k < 2; ++k) {
        least[k] = std::min(least[k], boxes[order[i]].offsets[k]);
        most[k] = std::max(most[k], boxes[order[i]].offsets[k]);
      }
    }
    area += (most[0] - least[0] + 8) * (most[1] - least[1] + 8);
  }
  EXPECT_LE(area, 2 * 512 * 512);
}

TEST(CurveOrder, ComparesLongChunksByTheirShortSides) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < 500; ++row) {
    const int64_t cut = 1 + row % 99;
    boxes.push_back(box({row, 0}, {1, cut}));
    boxes.push_back(box({row, cut}, {1, 100 - cut}));
  }
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(3));
  const Catalog catalog = catalog_of({500, 100}, boxes);
  const std::vector<uint32_t> order = internal::curve_order(catalog, 0);
  expect_permutation(order, boxes.size());
  int64_t away = 0;
  for (size_t i = 1; i < order.size(); ++i)
    away += std::abs(boxes[order[i]].offsets[0] - boxes[order[i - 1]].offsets[0]);
  EXPECT_LE(away, 8 * 500);  // in the order in which they are stored: about 167 each
}

TEST(CurveOrder, TakesManyDimensionsAndTheLargestCoordinates) {
  std::vector<Box> halves;  // along the diagonal: 62 dimensions are as many as have elements
  for (const int64_t at : {1, 0}) halves.push_back(box(Dims(62, at), Dims(62, 1)));
  const std::vector<uint32_t> diagonal = internal::curve_order(catalog_of(Dims(62, 2), halves), 0);
  EXPECT_EQ(diagonal, (std::vector<uint32_t>{1, 0}));
  const Dims shape(3, int64_t{1} << 20);
  const int64_t end = int64_t{1} << 20;
  const std::vector<Box> far = {box({end - 1, end - 1, end - 1}, {1, 1, 1}),
                                box({0, 0, 0}, {1, 1, 1}), box({end - 1, 0, 0}, {1, end, end})};
  expect_permutation(internal::curve_order(catalog_of(shape, far), 0), 3);
  const int64_t most = std::numeric_limits<int64_t>::max() / 2;
  const std::vector<Box> huge = {box({most - 1}, {1}), box({0}, {most - 1}), box({5}, {0})};
  const std::vector<uint32_t> order = internal::curve_order(catalog_of({most}, huge), 0);
  EXPECT_EQ(order.back(), 0U);
  expect_permutation(order, 3);
}

}  // namespace
}  // namespace shardwright::plan::test
