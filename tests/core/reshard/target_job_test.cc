// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_job.h"

#include <string>
#include <vector>

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
  EXPECT_EQ(job.shape, (JobShape{4, 3, 1, 1, 1}));
  EXPECT_EQ(job.optimizer, OptimizerLayout::kDpReshardable);
}

TEST(TargetJob, SaysWhereItIsWrong) {
  TargetJob job;
  const auto failure = [&](const char* text) { return read_target_job(text, &job); };
  EXPECT_FAILURE(failure("[]"), StatusCode::kInvalidArgument, "line 1, column 1", "object");
  EXPECT_FAILURE(failure("{\n \"tp\": 1}"), StatusCode::kInvalidArgument, "line 2",
                 "'tp' is no key of a job", "tensor_model_parallel_size");
  EXPECT_FAILURE(failure(R"({"data_parallel_size": 0})"), StatusCode::kInvalidArgument,
                 "'data_parallel_size'", "from 1");
  EXPECT_FAILURE(failure(R"({"data_parallel_size": 2.5})"), StatusCode::kInvalidArgument);
  EXPECT_FAILURE(failure(R"({"optimizer": "other"})"), StatusCode::kInvalidArgument,
                 "fully_reshardable");
  EXPECT_FAILURE(failure(R"({"expert_tensor_parallel_size": 0})"), StatusCode::kInvalidArgument,
                 "'expert_tensor_parallel_size'");
  for (const char* layers : {"2", "[]", "[1, -1]", "[1, 2.5]", "[1, 1048577]", "[\"1\"]"})
    EXPECT_FAILURE(failure((R"({"pipeline_layers": )" + std::string(layers) + "}").c_str()),
                   StatusCode::kInvalidArgument, "line 1", "'pipeline_layers'", "each pipeline");
  EXPECT_FAILURE(failure("{"), StatusCode::kInvalidArgument, "line 1");
}

TEST(TargetJob, HasLayersOfStagesAndRanksOfExperts) {
  TargetJob job;
  job.pipeline_layers = {9};
  ASSERT_TRUE(
      read_target_job(R"({"pipeline_layers": [3, 0, 1], "expert_tensor_parallel_size": 2})", &job)
          .ok());
  EXPECT_EQ(job.pipeline_layers, (std::vector<int64_t>{3, 0, 1}));
  EXPECT_EQ(job.shape.expert_tensor, 2);
}

TEST(TargetJob, HasLayersOfAllStages) {
  TargetJob job;
  job.shape.pipeline = 2;
  job.pipeline_layers = {3, 1};
  EXPECT_TRUE(check_target_job(job).ok());
  job.pipeline_layers = {3, 1, 1};
  EXPECT_FAILURE(check_target_job(job), StatusCode::kInvalidArgument, "3 pipeline stages",
                 "(3, 1, 1)", "pp is 2");
  EXPECT_EQ(check_target_job(job).detail("parameter"), "pipeline_layers");
  job.pipeline_layers = {3, -1};
  EXPECT_FAILURE(check_target_job(job), StatusCode::kInvalidArgument, "-1 layers");
}

TEST(TargetJob, ExpertsShareOutTheRanksOfAStage) {
  EXPECT_EQ((JobShape{.tensor = 2, .expert = 2, .data = 4, .expert_tensor = 2}.expert_data()), 2);
  EXPECT_EQ((JobShape{.tensor = 2, .expert = 2}.expert_data()), 1);
  EXPECT_EQ((JobShape{.expert = 4, .data = 2}.expert_data()), 0);
}

TEST(TargetJob, SizesAreBounded) {
  EXPECT_TRUE(check_target_job({}).ok());
  EXPECT_FAILURE(check_target_job({{1, 0, 1, 1}, {}}), StatusCode::kInvalidArgument, "pp is 0");
  EXPECT_FAILURE(check_target_job({{1, 1, 1, int64_t{1} << 40}, {}}), StatusCode::kInvalidArgument,
                 "dp is");
  EXPECT_FAILURE(check_target_job({{.expert_tensor = 0}, {}}), StatusCode::kInvalidArgument,
                 "etp is 0");
}

}  // namespace
}  // namespace shardwright::reshard::test
