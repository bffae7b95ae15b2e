// SPDX-License-Identifier: Apache-2.0
//
// Gather, scatter and copy against an oracle that visits one byte at a time.
#include "core/tensor/strided_copy.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright {
namespace {

using test::RandomSource;

// Address of each byte of the window in row-major order.
std::vector<std::byte*> addresses(const StridedWindow& window) {
  std::vector<std::byte*> result;
  const uint64_t bytes = window_bytes(window);
  for (uint64_t i = 0; i < bytes; ++i) {
    uint64_t element = i / window.element_bytes;
    std::byte* at = window.data + i % window.element_bytes;
    for (size_t d = window.shape.size(); d-- > 0;) {
      const auto extent = static_cast<uint64_t>(window.shape[d]);
      at += static_cast<int64_t>(element % extent) * window.strides[d] *
            static_cast<int64_t>(window.element_bytes);
      element /= extent;
    }
    result.push_back(at);
  }
  return result;
}

// A window with distinct elements over memory of its own.
struct RandomWindow {
  std::vector<std::byte> memory;
  StridedWindow window;

  RandomWindow(RandomSource& random, const Dims& shape, uint64_t element_bytes) {
    window.shape = shape;
    window.element_bytes = element_bytes;
    window.strides = Dims(shape.size(), 0);
    // Dimensions take their strides in random order, each with a random gap after it.
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
    if (random.chance(50)) std::shuffle(order.begin(), order.end(), std::mt19937_64(random.next()));
    int64_t step = random.chance(70) ? 1 : random.between(1, 3);
    for (const size_t d : order) {
      window.strides[d] = step;
      step = step * std::max<int64_t>(shape[d], 1) + (random.chance(50) ? 0 : random.between(0, 3));
    }
    memory = random.bytes(static_cast<size_t>(step + 1) * element_bytes);
    window.data = memory.data();
  }
};

Dims random_shape(RandomSource& random) {
  Dims shape(static_cast<size_t>(random.between(0, 5)), 0);
  for (int64_t& extent : shape) extent = random.chance(4) ? 0 : random.between(1, 6);
  return shape;
}

uint64_t random_element_bytes(RandomSource& random) {
  return static_cast<uint64_t>(random.pick(std::vector<int64_t>{1, 2, 3, 4, 8, 16}));
}

TEST(StridedCopy, GatherOfAnyPartAgreesWithTheOracle) {
  RandomSource random;
  for (int round = 0; round < 500; ++round) {
    const RandomWindow from(random, random_shape(random), random_element_bytes(random));
    const std::vector<std::byte*> oracle = addresses(from.window);
    for (int part = 0; part < 4; ++part) {
      const auto begin =
          static_cast<size_t>(random.between(0, static_cast<int64_t>(oracle.size())));
      const auto size =
          static_cast<size_t>(random.between(0, static_cast<int64_t>(oracle.size() - begin)));
      std::vector<std::byte> to(size + 1, std::byte{0x5A});
      gather(from.window, begin, std::span(to).first(size));
      for (size_t i = 0; i < size; ++i)
        ASSERT_EQ(to[i], *oracle[begin + i]) << "byte " << i << " from " << begin;
      ASSERT_EQ(to[size], std::byte{0x5A});
    }
  }
}

TEST(StridedCopy, ScatterOfAnyPartTouchesOnlyThatPart) {
  RandomSource random;
  for (int round = 0; round < 500; ++round) {
    RandomWindow to(random, random_shape(random), random_element_bytes(random));
    const std::vector<std::byte*> oracle = addresses(to.window);
    const auto begin = static_cast<size_t>(random.between(0, static_cast<int64_t>(oracle.size())));
    const auto size =
        static_cast<size_t>(random.between(0, static_cast<int64_t>(oracle.size() - begin)));
    const std::vector<std::byte> from = random.bytes(size);
    std::vector<std::byte> expected = to.memory;
    for (size_t i = 0; i < size; ++i)
      expected[static_cast<size_t>(oracle[begin + i] - to.memory.data())] = from[i];
    scatter(from, to.window, begin);
    ASSERT_EQ(to.memory, expected);
  }
}

TEST(StridedCopy, CopyWindowAgreesWithGatherAndScatter) {
  RandomSource random;
  for (int round = 0; round < 500; ++round) {
    const Dims shape = random_shape(random);
    const uint64_t element_bytes = random_element_bytes(random);
    const RandomWindow from(random, shape, element_bytes);
    RandomWindow to(random, shape, element_bytes);
    RandomWindow reference = to;
    reference.window.data = reference.memory.data();
    std::vector<std::byte> dense(window_bytes(from.window));
    gather(from.window, 0, dense);
    scatter(dense, reference.window, 0);
    copy_window(from.window, to.window);
    ASSERT_EQ(to.memory, reference.memory);
  }
}

TEST(StridedCopy, ContiguousMeansOneRun) {
  StridedWindow window;
  window.element_bytes = 4;
  window.shape = {2, 3};
  window.strides = {3, 1};
  EXPECT_TRUE(window_is_contiguous(window));
  window.strides = {4, 1};
  EXPECT_FALSE(window_is_contiguous(window));
  window.shape = {1, 3};
  EXPECT_TRUE(window_is_contiguous(window));
  window.shape = {3, 1};
  EXPECT_FALSE(window_is_contiguous(window));
  window.shape = {0, 3};
  EXPECT_TRUE(window_is_contiguous(window));
  EXPECT_TRUE(window_is_contiguous(StridedWindow{nullptr, 4, {}, {}}));
}

TEST(StridedCopy, RepeatedElementsCanBeGathered) {
  uint16_t value = 0x1234;
  const StridedWindow window{reinterpret_cast<std::byte*>(&value), 2, {2, 3}, {0, 0}};
  std::vector<uint16_t> out(6);
  gather(window, 0, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, std::vector<uint16_t>(6, 0x1234));
}

TEST(StridedCopy, SixtyFourDimensionsWork) {
  RandomSource random;
  Dims shape(64, 1);
  for (size_t d = 0; d < 64; d += 8) shape[d] = 2;
  const RandomWindow from(random, shape, 2);
  const std::vector<std::byte*> oracle = addresses(from.window);
  std::vector<std::byte> to(oracle.size());
  gather(from.window, 0, to);
  for (size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], *oracle[i]);
}

TensorView view_over(std::vector<std::byte>& memory, DType dtype, const Dims& shape,
                     const Dims& strides = {}) {
  TensorArguments arguments;
  arguments.data = memory.data();
  arguments.byte_size = memory.size();
  arguments.dtype = dtype;
  arguments.shape = shape;
  arguments.strides = strides;
  return *make_tensor_view(arguments);
}

TEST(WindowOf, BeginsAtTheBox) {
  std::vector<std::byte> memory(96);
  const TensorView view = view_over(memory, DType::kInt16, {4, 12});
  const StridedWindow window = *window_of(view, Dims{1, 2}, Dims{2, 5});
  EXPECT_EQ(window.data, memory.data() + (12 + 2) * 2);
  EXPECT_EQ(window.element_bytes, 2U);
  EXPECT_EQ(window.shape, (Dims{2, 5}));
  EXPECT_EQ(window.strides, (Dims{12, 1}));
  EXPECT_EQ(window_bytes(window), 20U);
}

TEST(WindowOf, HonoursStrides) {
  std::vector<std::byte> memory(96);
  const TensorView view = view_over(memory, DType::kInt8, {4, 12}, {1, 4});
  const StridedWindow window = *window_of(view, Dims{3, 2}, Dims{1, 5});
  EXPECT_EQ(window.data, memory.data() + 3 + 8);
  EXPECT_EQ(window.strides, (Dims{1, 4}));
}

TEST(WindowOf, RefusesBoxesOutsideTheTensor) {
  std::vector<std::byte> memory(96);
  const TensorView view = view_over(memory, DType::kInt8, {4, 12});
  constexpr int64_t kMax = INT64_MAX;
  for (const auto& [offsets, sizes] : std::vector<std::pair<Dims, Dims>>{{{0, 0}, {5, 1}},
                                                                         {{4, 0}, {1, 1}},
                                                                         {{5, 0}, {0, 1}},
                                                                         {{-1, 0}, {1, 1}},
                                                                         {{0, 0}, {1, -1}},
                                                                         {{1, 0}, {kMax, 1}},
                                                                         {{kMax, 0}, {kMax, 1}}}) {
    EXPECT_EQ(window_of(view, offsets, sizes).status().code(), StatusCode::kOutOfRange);
  }
  EXPECT_EQ(window_of(view, Dims{0}, Dims{1}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(window_of(view, Dims{0, 0}, Dims{1}).status().code(), StatusCode::kInvalidArgument);
}

TEST(WindowOf, EmptyBoxIsEmptyWhateverTheDtype) {
  std::vector<std::byte> memory(96);
  EXPECT_EQ(
      window_bytes(*window_of(view_over(memory, DType::kInt32, {4, 6}), Dims{4, 0}, Dims{0, 6})),
      0U);
  EXPECT_EQ(
      window_bytes(*window_of(view_over(memory, DType::kInt4, {4, 6}), Dims{1, 1}, Dims{3, 0})),
      0U);
}

TEST(WindowOf, CountsSubbyteRowsInBytes) {
  std::vector<std::byte> memory(96);
  const TensorView int4 = view_over(memory, DType::kInt4, {3, 8});
  const StridedWindow window = *window_of(int4, Dims{1, 2}, Dims{2, 4});
  EXPECT_EQ(window.data, memory.data() + 4 + 1);
  EXPECT_EQ(window.element_bytes, 1U);
  EXPECT_EQ(window.shape, (Dims{2, 2}));
  EXPECT_EQ(window.strides, (Dims{4, 1}));
  const TensorView float6 = view_over(memory, DType::kFloat6E3m2fn, {2, 2, 8});
  const StridedWindow six = *window_of(float6, Dims{1, 0, 4}, Dims{1, 2, 4});
  EXPECT_EQ(six.data, memory.data() + 12 + 3);
  EXPECT_EQ(six.shape, (Dims{1, 2, 3}));
  EXPECT_EQ(six.strides, (Dims{12, 6, 1}));
}

TEST(WindowOf, RefusesSubbyteBoxesThatCutAByte) {
  std::vector<std::byte> memory(96);
  const TensorView even = view_over(memory, DType::kInt4, {3, 8});
  EXPECT_EQ(window_of(even, Dims{0, 1}, Dims{1, 2}).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(window_of(even, Dims{0, 2}, Dims{1, 3}).status().code(), StatusCode::kUnimplemented);
  const TensorView odd = view_over(memory, DType::kInt4, {3, 7});
  EXPECT_EQ(window_of(odd, Dims{1, 0}, Dims{1, 2}).status().code(), StatusCode::kUnimplemented);
  const TensorView one_row = view_over(memory, DType::kInt4, {1, 7});
  EXPECT_TRUE(window_of(one_row, Dims{0, 2}, Dims{1, 4}).ok());
  const TensorView scalar = view_over(memory, DType::kInt4, {});
  EXPECT_EQ(window_of(scalar, Dims{}, Dims{}).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace shardwright
