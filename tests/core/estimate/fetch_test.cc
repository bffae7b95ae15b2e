// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/estimate/estimate_internal.h"
#include "tests/core/plan/world.h"

namespace shardwright::estimate::internal {
namespace {

namespace test = plan::test;

// Blocks that hold a wanted byte, byte by byte.
uint64_t slow_fetch(DType dtype, const Box& chunk, const Box& wanted, uint64_t block) {
  const auto width = static_cast<uint64_t>(dtype_bits(dtype)) / 8;
  std::set<uint64_t> blocks;
  Dims at = wanted.offsets;
  const int64_t count = box_element_count(wanted);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t element = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      element = element * static_cast<uint64_t>(chunk.sizes[d]) +
                static_cast<uint64_t>(at[d] - chunk.offsets[d]);
    }
    for (uint64_t b = 0; b < width; ++b) blocks.insert((element * width + b) / block);
    for (size_t d = at.size(); d > 0; --d) {
      if (++at[d - 1] < wanted.offsets[d - 1] + wanted.sizes[d - 1]) break;
      at[d - 1] = wanted.offsets[d - 1];
    }
  }
  uint64_t bytes = 0;
  const uint64_t all = box_bytes(dtype, chunk);
  for (const uint64_t each : blocks) bytes += std::min(block, all - each * block);
  return bytes;
}

TEST(Fetch, CountsWholeDigestBlocks) {
  const Box chunk = test::box({0, 0}, {1024, 1024});  // 4 MiB of float32
  const uint64_t mib = uint64_t{1} << 20;
  const auto fetched = [&](const Box& wanted) {
    return fetch_of(DType::kFloat32, chunk, wanted, mib).fetched_bytes;
  };
  EXPECT_EQ(fetched(chunk), 4 * mib);
  EXPECT_EQ(fetched(test::box({0, 0}, {256, 1024})), mib);
  EXPECT_EQ(fetched(test::box({255, 0}, {2, 1024})), 2 * mib);
  EXPECT_EQ(fetched(test::box({0, 0}, {1024, 1})), 4 * mib) << "a column lies in every block";
  EXPECT_EQ(fetch_of(DType::kFloat32, chunk, test::box({0, 0}, {1024, 1}), 0).fetched_bytes, 4096U);
  EXPECT_EQ(fetch_of(DType::kInt8, test::box({5}, {100}), test::box({7}, {1}), mib).fetched_bytes,
            100U)
      << "a small chunk is read whole";
}

TEST(Fetch, IsWhatLookingAtEveryByteGives) {
  const char* given = std::getenv("SHW_SEED");
  const uint64_t seed = given == nullptr ? 20260721 : std::stoull(given);
  std::mt19937_64 random(seed);
  const auto up_to = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 3000; ++round) {
    const auto rank = static_cast<size_t>(up_to(4));
    Box chunk{Dims(rank, 0), Dims(rank, 0)};
    Box wanted = chunk;
    for (size_t d = 0; d < rank; ++d) {
      chunk.offsets[d] = up_to(5);
      chunk.sizes[d] = up_to(9);
      wanted.sizes[d] = up_to(chunk.sizes[d]);
      wanted.offsets[d] = chunk.offsets[d] + up_to(chunk.sizes[d] - wanted.sizes[d] + 1) - 1;
    }
    const auto block = static_cast<uint64_t>(up_to(64));
    for (const DType dtype : {DType::kInt8, DType::kFloat32}) {
      const Fetch fetch = fetch_of(dtype, chunk, wanted, block);
      ASSERT_EQ(fetch.fetched_bytes, slow_fetch(dtype, chunk, wanted, block))
          << box_text(chunk) << box_text(wanted) << " block " << block << " SHW_SEED=" << seed
          << " round " << round;
      ASSERT_EQ(fetch.wanted_bytes, box_bytes(dtype, wanted));
    }
  }
}

}  // namespace
}  // namespace shardwright::estimate::internal
