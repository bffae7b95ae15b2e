// SPDX-License-Identifier: Apache-2.0
//
// Buckets as megatron-core 0.16.1 cuts them.
#include "core/reshard/bucket_layout.h"

#include <gtest/gtest.h>

namespace shardwright::reshard::test {
namespace {

constexpr int64_t kNoEnd = INT64_MAX;

std::vector<int64_t> sizes_of(const std::vector<BucketPlan>& buckets) {
  std::vector<int64_t> sizes;
  for (const BucketPlan& bucket : buckets) sizes.push_back(bucket.elements);
  return sizes;
}

TEST(BucketLayout, ParametersBeginAtMultiplesOf64) {
  const std::vector<BufferParameter> parameters = {{10}, {64}, {3}};
  const auto buckets = plan_buckets(parameters, kNoEnd);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(buckets[0].begins, (std::vector<int64_t>{0, 64, 128}));
  EXPECT_EQ(buckets[0].elements, 131);
}

TEST(BucketLayout, ABucketIsFullWhenItHasItsSize) {
  const std::vector<BufferParameter> parameters = {{64}, {36}, {10}, {200}, {1}};
  const auto buckets = plan_buckets(parameters, 100);
  EXPECT_EQ(sizes_of(buckets), (std::vector<int64_t>{100, 264, 1}));
  EXPECT_EQ(buckets[1].first, 2U);
  EXPECT_EQ(buckets[1].begins, (std::vector<int64_t>{0, 64}));
  EXPECT_EQ(buckets[2].first, 4U);
}

TEST(BucketLayout, ASharedEmbeddingHasABucketOfItsOwn) {
  const std::vector<BufferParameter> parameters = {{10}, {100, true}, {5}};
  const auto buckets = plan_buckets(parameters, kNoEnd);
  // The one in front ends where the embedding would begin.
  EXPECT_EQ(sizes_of(buckets), (std::vector<int64_t>{64, 100, 5}));
  EXPECT_EQ(buckets[1].begins, (std::vector<int64_t>{0}));
  const std::vector<BufferParameter> alone = {{100, true}};
  EXPECT_EQ(sizes_of(plan_buckets(alone, kNoEnd)), (std::vector<int64_t>{100}));
}

TEST(BucketLayout, NoParametersAreNoBucket) {
  EXPECT_TRUE(plan_buckets({}, 10).empty());
}

TEST(BucketLayout, RanksHaveEqualSharesInBlocks) {
  EXPECT_EQ(padded_bucket(1, 1, false), 128);
  EXPECT_EQ(padded_bucket(129, 3, false), 384);
  EXPECT_EQ(padded_bucket(128, 2, false), 128);
  EXPECT_EQ(padded_bucket(1, 3, true), 3 * 65536);
  EXPECT_TRUE(is_padded_for_bandwidth(3 * 65536));
  EXPECT_FALSE(is_padded_for_bandwidth(384));
  EXPECT_FALSE(is_padded_for_bandwidth(0));
}

}  // namespace
}  // namespace shardwright::reshard::test
