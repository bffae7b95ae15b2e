// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/job_arguments.h"

#include "tests/core/reshard/golden_reshard.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

class GoldenArguments : public GoldenReshard {};

TEST_F(GoldenArguments, AreReadAsData) {
  const auto arguments = read_job_arguments(*opened(source("gpt_tp2pp2")));
  ASSERT_TRUE(arguments.ok()) << arguments.status().to_string();
  EXPECT_EQ(arguments->at("tensor_model_parallel_size"), 2);
  EXPECT_EQ(arguments->at("hidden_size"), 16);
}

TEST(JobArguments, SayWhenABucketIsFull) {
  const auto size = [](const JobArguments& arguments, int64_t data) {
    return bucket_size_of({}, arguments, data);
  };
  EXPECT_EQ(*size({{"overlap_grad_reduce", 0}}, 1), kOneBucket);
  EXPECT_EQ(*size({{"overlap_grad_reduce", 1}, {"ddp_bucket_size", 500}}, 1), 500);
  EXPECT_EQ(*size({{"overlap_grad_reduce", 1}, {"ddp_bucket_size", std::nullopt}}, 4), 40'000'000);
  EXPECT_EQ(*size({{"overlap_grad_reduce", 1}, {"ddp_bucket_size", std::nullopt}}, 64), 64'000'000);
}

TEST(JobArguments, LeaveItToTheMapWhereTheyDoNotSayIt) {
  const JobArguments several = {
      {"overlap_grad_reduce", 1}, {"ddp_bucket_size", std::nullopt}, {"ddp_num_buckets", 4}};
  for (const JobArguments& arguments : {JobArguments(), several})
    EXPECT_FAILURE(bucket_size_of({}, arguments, 1).status(), StatusCode::kFailedPrecondition,
                   "bucket_size");
  ReshardMap map;
  map.bucket_size = 7;
  EXPECT_EQ(*bucket_size_of(map, several, 1), 7);
}

TEST(JobArguments, SayWhetherExpertsAreGrouped) {
  EXPECT_EQ(has_grouped_experts({}, {}), std::nullopt);
  EXPECT_EQ(has_grouped_experts({}, {{"moe_grouped_gemm", 1}}), true);
  ReshardMap map;
  map.has_grouped_experts = false;
  EXPECT_EQ(has_grouped_experts(map, {{"moe_grouped_gemm", 1}}), false);
}

}  // namespace
}  // namespace shardwright::reshard::test
