// SPDX-License-Identifier: Apache-2.0
//
// The mappings that are shipped, on the shards of a rank that has tensor rank 1 of 2.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/state/mapping.h"
#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

using Lines = std::vector<std::string>;

// "name[8, 3] [2:4, 0:3] <- [0:2, 0:3]" of each box that the second half of the rows becomes.
Lines half(const Mapping& mapping, std::string_view name, Dims shape) {
  Box box{Dims(shape.size(), 0), shape};
  box.sizes[0] /= 2;
  box.offsets[0] = box.sizes[0];
  const auto boxes = mapping.apply({name, DType::kFloat32, shape, {}, box});
  if (!boxes.ok()) return {boxes.status().to_string()};
  Lines lines;
  for (const MappedBox& each : *boxes) {
    if (each.role == BoxRole::kLeftOut) {
      lines.push_back(fmt::format("left out {}", box_text(each.source)));
      continue;
    }
    lines.push_back(fmt::format("{}[{}] {} <- {}", each.name, fmt::join(each.global_shape, ", "),
                                box_text(each.box), box_text(each.source)));
  }
  return lines;
}

Mapping shipped(std::string_view name, std::vector<MappingParameter> parameters) {
  auto mapping = Mapping::shipped(name, parameters);
  EXPECT_TRUE(mapping.ok()) << mapping.status().to_string();
  return mapping.ok() ? *std::move(mapping) : Mapping();
}

TEST(MappingSets, SwigluHalves) {
  const Mapping mapping = shipped("swiglu", {});
  EXPECT_EQ(half(mapping, "decoder.layers.3.mlp.linear_fc1.weight", {8, 3}),
            (Lines{"decoder.layers.3.mlp.linear_fc1.weight[8, 3] [2:4, 0:3] <- [0:2, 0:3]",
                   "decoder.layers.3.mlp.linear_fc1.weight[8, 3] [6:8, 0:3] <- [2:4, 0:3]"}));
  EXPECT_EQ(
      half(mapping, "optimizer.state.exp_avg.decoder.layers.3.mlp.linear_fc1.bias", {8}),
      (Lines{"optimizer.state.exp_avg.decoder.layers.3.mlp.linear_fc1.bias[8] [2:4] <- [0:2]",
             "optimizer.state.exp_avg.decoder.layers.3.mlp.linear_fc1.bias[8] [6:8] <- [2:4]"}));
  EXPECT_EQ(half(mapping, "decoder.layers.3.mlp.linear_fc2.weight", {8}),
            (Lines{"decoder.layers.3.mlp.linear_fc2.weight[8] [4:8] <- [0:4]"}));
}

TEST(MappingSets, LayersOfGptAreAnAxis) {
  const std::vector<MappingParameter> parameters{
      {"layers", 24}, {"first_layer", 12}, {"vocabulary", 10}};
  const Mapping plain = shipped("gpt", parameters);
  EXPECT_EQ(half(plain, "decoder.layers.3.mlp.linear_fc1.weight", {8, 3}),
            (Lines{"decoder.layers.mlp.linear_fc1.weight[24, 8, 3] [15:16, 4:8, 0:3] <- "
                   "[0:4, 0:3]"}));
  EXPECT_EQ(half(plain, "embedding.word_embeddings.weight", {16, 3}),
            (Lines{"embedding.word_embeddings.weight[10, 3] [8:10, 0:3] <- [0:2, 0:3]",
                   "left out [2:8, 0:3]"}));
  EXPECT_EQ(half(plain, "decoder.final_layernorm.weight", {4}),
            (Lines{"decoder.final_layernorm.weight[4] [2:4] <- [0:2]"}));
  const Mapping gated = shipped("gpt_swiglu", parameters);
  const std::string state = "chained_1.optimizer.state.fp32_param.";
  EXPECT_EQ(half(gated, state + "decoder.layers.3.mlp.linear_fc1.weight", {8, 3}),
            (Lines{state + "decoder.layers.mlp.linear_fc1.weight[24, 8, 3] [15:16, 2:4, 0:3] <- "
                           "[0:2, 0:3]",
                   state + "decoder.layers.mlp.linear_fc1.weight[24, 8, 3] [15:16, 6:8, 0:3] <- "
                           "[2:4, 0:3]"}));
  EXPECT_EQ(half(gated, "decoder.layers.3.mlp.linear_fc2.weight", {8, 3}),
            (Lines{"decoder.layers.mlp.linear_fc2.weight[24, 8, 3] [15:16, 4:8, 0:3] <- "
                   "[0:4, 0:3]"}));
}

TEST(MappingSets, ExpertsAreAnAxisWhetherGroupedOrNot) {
  const Mapping mapping = shipped(
      "moe",
      {{"layers", 2}, {"first_layer", 0}, {"experts", 8}, {"first_expert", 4}, {"vocabulary", 10}});
  const Lines halves{
      "decoder.layers.mlp.experts.experts.linear_fc1.weight[2, 8, 8, 3] [1:2, 5:6, 2:4, 0:3] <- "
      "[0:2, 0:3]",
      "decoder.layers.mlp.experts.experts.linear_fc1.weight[2, 8, 8, 3] [1:2, 5:6, 6:8, 0:3] <- "
      "[2:4, 0:3]"};
  const std::string experts = "decoder.layers.1.mlp.experts.";
  EXPECT_EQ(half(mapping, experts + "local_experts.1.linear_fc1.weight", {8, 3}), halves);
  EXPECT_EQ(half(mapping, experts + "linear_fc1.weight1", {8, 3}), halves);
  const Lines down{
      "decoder.layers.mlp.experts.experts.linear_fc2.weight[2, 8, 8, 3] "
      "[1:2, 5:6, 4:8, 0:3] <- [0:4, 0:3]"};
  EXPECT_EQ(half(mapping, experts + "local_experts.1.linear_fc2.weight", {8, 3}), down);
  EXPECT_EQ(half(mapping, experts + "linear_fc2.weight1", {8, 3}), down);
  EXPECT_EQ(half(mapping, "decoder.layers.1.mlp.router.weight", {8}),
            (Lines{"decoder.layers.mlp.router.weight[2, 8] [1:2, 4:8] <- [0:4]"}));
  EXPECT_EQ(half(mapping, "decoder.layers.1.mlp.shared_experts.linear_fc1.weight", {8}),
            (Lines{"decoder.layers.mlp.shared_experts.linear_fc1.weight[2, 8] [1:2, 2:4] <- [0:2]",
                   "decoder.layers.mlp.shared_experts.linear_fc1.weight[2, 8] [1:2, 6:8] <- "
                   "[2:4]"}));
}

TEST(MappingSets, PartsOfMambaAreApart) {
  const Mapping mapping = shipped("mamba", {{"inner", 8}, {"state", 4}, {"heads", 2}});
  EXPECT_EQ(half(mapping, "decoder.layers.0.mixer.in_proj.weight", {26, 3}),
            (Lines{"decoder.layers.0.mixer.in_proj.weight.z[8, 3] [4:8, 0:3] <- [0:4, 0:3]",
                   "decoder.layers.0.mixer.in_proj.weight.x[8, 3] [4:8, 0:3] <- [4:8, 0:3]",
                   "decoder.layers.0.mixer.in_proj.weight.B[4, 3] [2:4, 0:3] <- [8:10, 0:3]",
                   "decoder.layers.0.mixer.in_proj.weight.C[4, 3] [2:4, 0:3] <- [10:12, 0:3]",
                   "decoder.layers.0.mixer.in_proj.weight.dt[2, 3] [1:2, 0:3] <- [12:13, 0:3]"}));
  EXPECT_EQ(half(mapping, "decoder.layers.0.mixer.conv1d.bias", {16}),
            (Lines{"decoder.layers.0.mixer.conv1d.bias.x[8] [4:8] <- [0:4]",
                   "decoder.layers.0.mixer.conv1d.bias.B[4] [2:4] <- [4:6]",
                   "decoder.layers.0.mixer.conv1d.bias.C[4] [2:4] <- [6:8]"}));
}

TEST(MappingSets, EveryOneIsReadAndOthersAreNotFound) {
  for (const ShippedMapping& each : shipped_mappings()) {
    const Status status = Mapping::shipped(each.name).status();
    if (status.ok()) continue;
    EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "was not given");
  }
  EXPECT_EQ(shipped_mappings().size(), 5U);
  EXPECT_FAILURE(Mapping::shipped("bert").status(), StatusCode::kNotFound, "'bert'",
                 "gpt, gpt_swiglu, mamba, moe, swiglu");
}

}  // namespace
}  // namespace shardwright
