// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_job.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

TEST(TargetJob, KeepsWhatTheTextDoesNotSay) {
  TargetJob job;
  job.shape.pipeline = 3;
  ASSERT_TRUE(
      read_target_job(R"({"tensor_model_parallel_size": 4, "optimizer": "dp_reshardable"})", &job)
          .ok());
  EXPECT_EQ(job.shape, (JobShape{4, 3, 1, 1}));
  EXPECT_EQ(job.optimizer, OptimizerLayout::kDpReshardable);
}

TEST(TargetJob, SaysWhereItIsWrong) {
  TargetJob job;
  const auto failure = [&](const char* text) { return read_target_job(text, &job); };
  EXPECT_FAILURE(failure("[]"), StatusCode::kInvalidArgument, "line 1, column 1", "object");
  EXPECT_FAILURE(failure("{\n \"tp\": 1}"), StatusCode::kInvalidArgument, "line 2", "'tp'",
                 "tensor_model_parallel_size");
  EXPECT_FAILURE(failure(R"({"data_parallel_size": 0})"), StatusCode::kInvalidArgument,
                 "'data_parallel_size'", "from 1");
  EXPECT_FAILURE(failure(R"({"data_parallel_size": 2.5})"), StatusCode::kInvalidArgument);
  EXPECT_FAILURE(failure(R"({"optimizer": "other"})"), StatusCode::kInvalidArgument,
                 "fully_reshardable");
  EXPECT_FAILURE(failure("{"), StatusCode::kInvalidArgument, "line 1");
}

TEST(TargetJob, SizesAreBounded) {
  EXPECT_TRUE(check_target_job({}).ok());
  EXPECT_FAILURE(check_target_job({{1, 0, 1, 1}, {}}), StatusCode::kInvalidArgument, "pp is 0");
  EXPECT_FAILURE(check_target_job({{1, 1, 1, int64_t{1} << 40}, {}}), StatusCode::kInvalidArgument,
                 "dp is");
}

}  // namespace
}  // namespace shardwright::reshard::test
