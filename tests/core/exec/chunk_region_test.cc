// SPDX-License-Identifier: Apache-2.0
//
// Geometry of wanted boxes inside chunks, compared with a slow map from element to byte.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "core/device/host/host_device.h"
#include "core/exec/chunk_region_internal.h"

namespace shardwright::exec::internal {
namespace {

// A chunk whose element i (row-major) holds the number i as int32, and a box inside it.
struct Scene {
  Box chunk;
  Box wanted;
  std::vector<int32_t> values;

  explicit Scene(std::mt19937_64& random) {
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const auto dims = static_cast<size_t>(draw(0, 4));
    chunk = {Dims(dims, 0), Dims(dims, 1)};
    wanted = chunk;
    int64_t count = 1;
    for (size_t d = 0; d < dims; ++d) {
      chunk.offsets[d] = draw(0, 5);
      chunk.sizes[d] = draw(1, 7);
      const int64_t begin = draw(0, chunk.sizes[d] - 1);
      wanted.offsets[d] = chunk.offsets[d] + begin;
      wanted.sizes[d] = draw(1, chunk.sizes[d] - begin);
      count *= chunk.sizes[d];
    }
    values.resize(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0);
  }

  // Numbers of the wanted elements in row-major order of the box.
  std::vector<int32_t> expected() const {
    std::vector<int32_t> numbers;
    const auto total = static_cast<int64_t>(values.size());
    for (int64_t i = 0; i < total; ++i) {
      int64_t rest = i;
      bool inside = true;
      for (size_t d = chunk.sizes.size(); d-- > 0;) {
        const int64_t at = chunk.offsets[d] + rest % chunk.sizes[d];
        rest /= chunk.sizes[d];
        inside = inside && at >= wanted.offsets[d] && at < wanted.offsets[d] + wanted.sizes[d];
      }
      if (inside) numbers.push_back(static_cast<int32_t>(i));
    }
    return numbers;
  }

  ChunkBytes bytes(size_t first, size_t count) const {
    return {std::as_bytes(std::span(values).subspan(first, count)), first * sizeof(int32_t)};
  }
};

template <typename T>
device::DeviceWindow window_of_box(device::Device& device, std::vector<T>* memory, const Box& box) {
  return {&device,
          packed_window(reinterpret_cast<std::byte*>(memory->data()), sizeof(T), box.sizes)};
}

TEST(ChunkRegion, CopiesTheSameElementsAsASlowMapHoweverTheChunkIsCut) {
  const std::unique_ptr<device::Device> host = device::make_host_device();
  std::mt19937_64 random(20261);
  for (int round = 0; round < 2000; ++round) {
    const Scene scene(random);
    const std::vector<int32_t> expected = scene.expected();
    const Result<ChunkRegion> region = chunk_region(DType::kInt32, scene.chunk, scene.wanted);
    ASSERT_TRUE(region.ok());
    std::vector<int32_t> target(expected.size(), -1);
    const device::DeviceWindow window = window_of_box(*host, &target, scene.wanted);
    const size_t step = std::uniform_int_distribution<size_t>(1, scene.values.size())(random);
    for (size_t first = 0; first < scene.values.size(); first += step) {
      const size_t count = std::min(step, scene.values.size() - first);
      ASSERT_TRUE(copy_region(*region, scene.bytes(first, count), window).ok());
    }
    ASSERT_EQ(target, expected) << "round " << round;
  }
}

TEST(ChunkRegion, PositionsCountWantedBytesOnly) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 1000; ++round) {
    const Scene scene(random);
    const std::vector<int32_t> expected = scene.expected();
    const ChunkRegion region = *chunk_region(DType::kInt32, scene.chunk, scene.wanted);
    EXPECT_EQ(region.size_bytes, expected.size() * 4);
    EXPECT_EQ(region.origin, static_cast<uint64_t>(expected.front()) * 4);
    EXPECT_EQ(region.end(), static_cast<uint64_t>(expected.back()) * 4 + 4);
    for (size_t i = 0; i <= scene.values.size(); ++i) {
      const auto at = std::lower_bound(expected.begin(), expected.end(), static_cast<int32_t>(i));
      ASSERT_EQ(packed_position(region, i * 4), static_cast<uint64_t>(at - expected.begin()) * 4);
      const uint64_t next = at == expected.end() ? UINT64_MAX : static_cast<uint64_t>(*at) * 4;
      ASSERT_EQ(next_wanted(region, i * 4), next);
    }
  }
}

TEST(ChunkRegion, CastsWhileItCopies) {
  const std::unique_ptr<device::Device> host = device::make_host_device();
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    const Scene scene(random);
    const std::vector<int32_t> expected = scene.expected();
    const ChunkRegion region = *chunk_region(DType::kInt32, scene.chunk, scene.wanted);
    std::vector<double> target(expected.size(), -1);
    const device::DeviceWindow window = window_of_box(*host, &target, scene.wanted);
    const size_t half = scene.values.size() / 2;
    ASSERT_TRUE(
        cast_region(region, scene.bytes(0, half), DType::kInt32, window, DType::kFloat64).ok());
    ASSERT_TRUE(cast_region(region, scene.bytes(half, scene.values.size() - half), DType::kInt32,
                            window, DType::kFloat64)
                    .ok());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(target[i], expected[i]);
  }
}

TEST(ChunkRegion, CountsSubByteElementsInBytes) {
  const Box chunk{{0, 0}, {4, 16}};
  const ChunkRegion region = *chunk_region(DType::kInt4, chunk, {{1, 4}, {2, 8}});
  EXPECT_EQ(region.element_bytes, 1U);
  EXPECT_EQ(region.origin, 8U + 2U);
  EXPECT_EQ(region.size_bytes, 8U);
  EXPECT_EQ(region.shape, (Dims{2, 4}));
  EXPECT_FALSE(region.contiguous);
}

TEST(ChunkRegion, RefusesASubByteBoxThatSplitsAByte) {
  const Box chunk{{0, 0}, {4, 16}};
  EXPECT_EQ(chunk_region(DType::kInt4, chunk, {{1, 3}, {2, 8}}).status().code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(chunk_region(DType::kInt4, chunk, {{1, 4}, {2, 7}}).status().code(),
            StatusCode::kUnimplemented);
}

TEST(ChunkRegion, SeesWholeRowsAndSingleElementsAsOneRun) {
  const Box chunk{{0, 0, 0}, {4, 5, 6}};
  EXPECT_TRUE(chunk_region(DType::kInt8, chunk, {{1, 0, 0}, {2, 5, 6}})->contiguous);
  EXPECT_TRUE(chunk_region(DType::kInt8, chunk, {{1, 2, 0}, {1, 2, 6}})->contiguous);
  EXPECT_TRUE(chunk_region(DType::kInt8, chunk, {{1, 2, 3}, {1, 1, 2}})->contiguous);
  EXPECT_FALSE(chunk_region(DType::kInt8, chunk, {{1, 0, 0}, {2, 4, 6}})->contiguous);
  EXPECT_FALSE(chunk_region(DType::kInt8, chunk, {{0, 0, 0}, {1, 2, 5}})->contiguous);
}

}  // namespace
}  // namespace shardwright::exec::internal
