// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that megatron-core wrote with its optimizer in buckets, resharded: every tensor is
// what the same job wrote as fully_reshardable.
#include <fstream>
#include <string>
#include <tuple>

#include "tests/core/reshard/golden_reshard.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

using Case = std::tuple<const char*, int64_t, int64_t, int64_t>;
class EveryShape : public GoldenReshard, public testing::WithParamInterface<Case> {};

TEST_P(EveryShape, HoldsWhatTheJobWroteForAnyShape) {
  const auto& [name, tensor, pipeline, expert] = GetParam();
  const auto report = run(name, to_shape(tensor, pipeline, expert));
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->operation, "reshard");
  expect_digests(name);
  EXPECT_EQ(text_of("common.content_metadata.distrib_optim_sharding_type"),
            "\"fully_reshardable\"");
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryShape,
    testing::Values(Case{"gpt_tp2dp2_bf16", 1, 1, 1}, Case{"gpt_tp2dp2_bf16_zero", 1, 1, 1},
                    Case{"gpt_tp2dp2_bf16_zero", 2, 2, 1}, Case{"gpt_dp2_buckets_zero", 1, 1, 1},
                    Case{"gpt_dp2_buckets_zero", 2, 1, 1}, Case{"gpt_tp2dp2_bf16", 4, 2, 1},
                    Case{"gpt_tp2pp2", 1, 1, 1}, Case{"gpt_tp2pp2", 1, 2, 1},
                    Case{"gpt_tp2pp2", 4, 1, 1}, Case{"moe_ep2", 1, 1, 1}, Case{"moe_ep2", 1, 1, 4},
                    Case{"moe_ep2", 2, 1, 2}));

TEST_F(GoldenReshard, ExpertsAreInOneOptimizerOrInTheirOwn) {
  ASSERT_TRUE(run("moe_ep2", to_shape(1, 1, 1)).ok());
  EXPECT_EQ(text_of("common.optimizer.param_state_sharding_type"), "\"fully_reshardable\"");
  EXPECT_EQ(text_of("common.optimizer.0.param_state_sharding_type"), "absent");
  EXPECT_EQ(text_of("common.optimizer.optimizer.param_groups.0.is_expert_parallel"), "false");
  EXPECT_EQ(text_of("common.optimizer.optimizer.param_groups.2.lr"), "absent");  // they joined
  ASSERT_TRUE(run("moe_ep2", to_shape(1, 1, 2), "apart").ok());
  EXPECT_EQ(text_of("common.optimizer.1.optimizer.param_groups.0.is_expert_parallel", "apart"),
            "true");
}

TEST_F(GoldenReshard, TheArgumentsSayTheNewSizes) {
  ReshardOptions options = to_shape(1, 2);
  options.target.shape.data = 3;
  ASSERT_TRUE(run("gpt_tp2pp2", options).ok());
  const std::string pickle = text_of("common.args");
  EXPECT_NE(pickle.find("tensor_model_parallel_size"), std::string::npos);
  EXPECT_NE(pickle, "absent");
  ASSERT_TRUE(run("gpt_tp2pp2", to_shape(4, 1), "other").ok());
  EXPECT_NE(pickle, text_of("common.args", "other"));
}

TEST_F(GoldenReshard, ACommonStateAmongTheDataBecomesCommonPt) {
  const auto path = exec::test::golden_directory("megatron") / "mc19_tp2_w2" / "ckpt";
  const format::Location newer{storage::make_posix_storage(path), "", path.string(), path.string()};
  const auto report =
      reshard(*reading_, *writing_, newer, target(), to_shape(1), exec::CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(text_of("common_state/shard_0_1"), "absent");
  EXPECT_EQ(text_of("common.iteration"), "58446");
  EXPECT_EQ(text_of("common.optimizer.param_groups.1.lr"), "0.2");
}

TEST_F(GoldenReshard, AChunkIsWhatARankOfTheTargetHolds) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", to_shape(4, 2)).ok());
  const auto made = exec::Checkpoint::open(*reading_, target());
  ASSERT_TRUE(made.ok());
  const plan::Catalog& catalog = (*made)->catalog();
  const auto count = [&](const char* name) {
    return catalog.tensors[*(*made)->find_tensor(name, -1)].chunk_count;
  };
  EXPECT_EQ(count("decoder.layers.mlp.linear_fc1.weight"), 16U);  // layers, halves, ranks
  EXPECT_EQ(count("decoder.layers.mlp.linear_fc2.weight"), 8U);
  EXPECT_EQ(count("decoder.final_layernorm.weight"), 1U);
  EXPECT_EQ(count("optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight"), 16U);
}

TEST_F(GoldenReshard, BucketsAreKeptForJobsOfTheSameShape) {
  ReshardOptions options = to_shape(2, 1);
  options.target.optimizer = OptimizerLayout::kDpReshardable;
  const auto report = run("gpt_tp2dp2_bf16", options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(text_of("common.content_metadata.distrib_optim_sharding_type"), "\"dp_reshardable\"");
  EXPECT_NE(text_of("optimizer.distributed.dp_group_idx_0.optimizer/shard_0_1"), "absent");
}

TEST_F(GoldenReshard, DamageInGatheredBuffersIsFound) {
  const auto ckpt = exec::test::golden_directory("megatron_reshard") / "gpt_dp2_buckets_zero";
  const auto copy = std::filesystem::path(directory_.path()) / "copy";
  std::filesystem::copy(ckpt / "ckpt", copy, std::filesystem::copy_options::recursive);
  // A byte of the last state: the weights prove nothing about it.
  const format::Location place{storage::make_posix_storage(copy), "", copy.string(), copy.string()};
  {
    const auto opened = exec::Checkpoint::open(*reading_, place);
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    const auto object =
        (*opened)->find_object("optimizer.distributed.dp_group_idx_0.param_state/shard_0_1", -1);
    ASSERT_TRUE(object.ok());
    const auto extent = (*opened)->opened().object_extent(*object);
    ASSERT_TRUE(extent.ok());
    const auto file = copy / (*opened)->opened().files()[extent->file].key;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(extent->offset + extent->size_bytes / 10 * 9);
    stream.seekg(at);
    const int byte = stream.get();
    stream.seekp(at);
    stream.put(static_cast<char>(byte ^ 1));
  }
  const auto report =
      reshard(*reading_, *writing_, place, target(), to_shape(1), exec::CallContext());
  EXPECT_EQ(report.status().code(), StatusCode::kDataLoss) << report.status().to_string();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory_.path()) / "target"));
}

TEST_F(GoldenReshard, ADryRunWritesNothing) {
  ReshardOptions options = to_shape(1);
  options.dry_run = true;
  const auto report = run("gpt_tp2dp2_bf16", options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->tensors, 52U);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory_.path()) / "target"));
}

TEST_F(GoldenReshard, WhatWasMadeIsLeftAsItIs) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", to_shape(1)).ok());
  const auto again = run("gpt_tp2dp2_bf16", to_shape(1));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_NE(again->to_json().find("nothing was written"), std::string::npos);
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", to_shape(4)).status(), StatusCode::kAlreadyExists);
}

TEST_F(GoldenReshard, SizesThatDoNotDivideAreRefusedByName) {
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", to_shape(3)).status(), StatusCode::kInvalidArgument,
                 "linear_", "3 tensor-parallel");
  EXPECT_FAILURE(run("gpt_tp2pp2", to_shape(2, 5)).status(), StatusCode::kInvalidArgument,
                 "5 pipeline stages");
  EXPECT_FAILURE(run("moe_ep2", to_shape(1, 1, 3)).status(), StatusCode::kInvalidArgument,
                 "experts");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory_.path()) / "target"));
}

TEST_F(GoldenReshard, OnlyCheckpointsOfMegatronHaveShapes) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", to_shape(1)).ok());
  std::filesystem::remove(std::filesystem::path(directory_.path()) / "target" / "metadata.json");
  std::filesystem::remove(std::filesystem::path(directory_.path()) / "target" / "common.pt");
  EXPECT_FAILURE(
      reshard(*reading_, *writing_, target(), target("other"), to_shape(1), exec::CallContext())
          .status(),
      StatusCode::kInvalidArgument, "torch-dcp", "Megatron");
}

}  // namespace
}  // namespace shardwright::reshard::test
