// SPDX-License-Identifier: Apache-2.0
//
// Buckets that are made for jobs of another shape: those that megatron-core itself wrote where it
// did, and what is resharded from them once more.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "tests/core/reshard/golden_reshard.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

constexpr const char* kDense = "optimizer.distributed.dp_group_idx_";

class GoldenBuckets : public GoldenReshard {
 protected:
  static ReshardOptions in_buckets(JobShape shape, const char* map = R"({"bucket_size": null})",
                                   std::vector<int64_t> layers = {}) {
    ReshardOptions options;
    options.target = {shape, OptimizerLayout::kDpReshardable, std::move(layers)};
    options.map = *read_map(map);
    return options;
  }
  static std::set<Box> chunks(const exec::Checkpoint& from, size_t tensor) {
    const plan::TensorRecord& record = from.catalog().tensors[tensor];
    std::set<Box> boxes;
    for (uint64_t k = 0; k < record.chunk_count; ++k)
      boxes.insert(from.catalog().chunk_box(record.chunk_begin + k));
    return boxes;
  }
  // Whether any file of a checkpoint holds the text.
  bool is_in_files(const std::string& name, const std::string& text) const {
    const auto place = std::filesystem::path(directory_.path()) / name;
    return std::ranges::any_of(std::filesystem::directory_iterator(place), [&](const auto& entry) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
      return bytes.find(text) != std::string::npos;
    });
  }
};

// The same job wrote both kinds at the same step.
TEST_F(GoldenBuckets, AreThoseThatMegatronWrote) {
  const auto report = run("gpt_tp2dp2_bf16_zero", in_buckets({2, 1, 1, 2}));
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto made = opened(target());
  const auto original = opened(source("gpt_tp2dp2_bf16"));
  ASSERT_NE(made, nullptr);
  const plan::Catalog& catalog = original->catalog();
  EXPECT_EQ(made->catalog().tensors.size(), catalog.tensors.size());
  size_t same = 0;
  size_t pads = 0;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string name(catalog.tensor_name(i));
    const auto number = made->find_tensor(name, -1);
    ASSERT_TRUE(number.ok()) << number.status().to_string();
    EXPECT_EQ(Dims(made->catalog().shape(*number)), Dims(catalog.shape(i))) << name;
    if (!name.starts_with(kDense)) continue;
    EXPECT_EQ(chunks(*made, *number), chunks(*original, i)) << name;
    for (const Box& box : chunks(*original, i)) {
      const std::vector<std::byte> bytes = read(*made, *number, box);
      const bool is_zero =
          std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{0}; });
      pads += is_zero ? 1 : 0;
      if (is_zero) continue;  // Megatron writes there what its memory held
      EXPECT_EQ(bytes, read(*original, i, box)) << name << ' ' << box_text(box);
      ++same;
    }
  }
  EXPECT_GT(same, 50U);
  EXPECT_GT(pads, 5U);
  for (const char* sizes : {"per_bucket_numel", "per_bucket_numel_unpadded", "optimizer"}) {
    const std::string object = std::string(kDense) + "1." + sizes + "/shard_0_1";
    const auto number = original->find_object(object, -1);
    const auto bytes = original->read_object(*number, {});
    ASSERT_TRUE(bytes.ok());
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    const bool says_sizes = std::string(sizes) != "optimizer";
    EXPECT_EQ(text_of(object), says_sizes ? text : text_of(object));
    EXPECT_NE(text_of(object), "absent");
  }
}

struct Case {
  const char* name;
  JobShape shape;
  const char* map;
  std::vector<int64_t> layers = {};
};
class EveryTarget : public GoldenBuckets, public testing::WithParamInterface<Case> {};

TEST_P(EveryTarget, HoldsWhatTheJobWrote) {
  const auto& [name, shape, map, layers] = GetParam();
  const auto report = run(name, in_buckets(shape, map, layers));
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(text_of("common.content_metadata.distrib_optim_sharding_type"), "\"dp_reshardable\"");
  const auto again = run_again("target", to_shape(1, 1, 1), "again");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  expect_digests(name, "again");
}

constexpr const char* kOne = R"({"bucket_size": null})";
constexpr const char* kSmall = R"({"bucket_size": 1200})";
INSTANTIATE_TEST_SUITE_P(
    All, EveryTarget,
    testing::Values(
        Case{"gpt_tp2dp2_bf16", {1, 1, 1, 1}, kOne}, Case{"gpt_tp2dp2_bf16", {1, 1, 1, 3}, kSmall},
        Case{"gpt_tp2dp2_bf16", {4, 1, 1, 1}, kSmall}, Case{"gpt_tp2dp2_bf16", {1, 2, 1, 2}, kOne},
        Case{"gpt_tp2dp2_bf16_zero", {2, 2, 1, 1}, kSmall},
        Case{"gpt_dp2_buckets_zero", {2, 1, 1, 1}, kSmall},
        Case{"gpt_tp2pp2", {1, 1, 1, 2}, kSmall}, Case{"gpt_tp2pp2", {2, 1, 1, 1}, kOne},
        Case{"gpt_tp2pp2", {1, 2, 1, 1}, kOne}, Case{"gpt_tp2pp2", {1, 2, 1, 1}, kOne, {0, 2}},
        Case{"gpt_tp2pp2", {2, 2, 1, 1}, kSmall, {2, 0}}, Case{"moe_ep2", {1, 1, 1, 2}, kOne},
        Case{"moe_ep2", {1, 1, 4, 4}, kSmall}, Case{"moe_ep2", {2, 1, 1, 1, 2}, kSmall},
        Case{"moe_ep2", {2, 1, 2, 1, 1}, kOne}, Case{"moe_ep2", {2, 1, 2, 4, 2}, kSmall},
        Case{"moe_ep2", {1, 1, 2, 4, 2}, kOne}));

TEST_F(GoldenBuckets, AreFullAtTheirSize) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", in_buckets({1, 1, 1, 1}, kSmall)).ok());
  const auto made = opened(target());
  const std::string front = std::string(kDense) +
                            "0.gbuf_idx_0.dtype_(torch.bfloat16, "
                            "torch.bfloat16).bucket_idx_";
  // From behind: the output layer alone is as large.
  const auto number = made->find_tensor(front + "0.param", -1);
  ASSERT_TRUE(number.ok()) << made->info_json(true);
  EXPECT_EQ(made->catalog().shape(*number)[0], 2048);
  EXPECT_TRUE(made->find_tensor(front + "1.exp_avg", -1).ok());
}

TEST_F(GoldenBuckets, SayTheirSizesWithDtypesOfTorch) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", in_buckets({2, 1, 1, 4})).ok());  // those that stay, too
  EXPECT_TRUE(is_in_files("target", "ctorch\nbfloat16\n"));
}

TEST_F(GoldenBuckets, ThatStayCanBeReshardedAgain) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", in_buckets({2, 1, 1, 3})).ok());
  const auto again = run_again("target", to_shape(1), "again");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  expect_digests("gpt_tp2dp2_bf16", "again");
}

TEST_F(GoldenBuckets, OfExpertsAreInTheirOwnOptimizerOrInOne) {
  ASSERT_TRUE(run("moe_ep2", in_buckets({1, 1, 1, 2})).ok());
  EXPECT_EQ(text_of("common.optimizer.param_state_sharding_type"), "\"dp_reshardable\"");
  EXPECT_NE(text_of(std::string(kDense) + "0.optimizer/shard_0_1"), "absent");
  EXPECT_EQ(text_of("chained_0." + std::string(kDense) + "0.optimizer/shard_0_1"), "absent");
  ASSERT_TRUE(run("moe_ep2", in_buckets({1, 1, 4, 4}), "apart").ok());
  EXPECT_EQ(text_of("common.optimizer.1.param_state_sharding_type", "apart"), "\"dp_reshardable\"");
  EXPECT_NE(text_of("chained_1." + std::string(kDense) + "3.optimizer/shard_0_1", "apart"),
            "absent");
}

TEST_F(GoldenBuckets, OfWhichSomethingIsNotKnownAreRefused) {
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", in_buckets({1, 1, 1, 1}, "{}")).status(),
                 StatusCode::kFailedPrecondition, "bucket_size", "map");
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", in_buckets({1, 2, 1, 1}, kOne, {1})).status(),
                 StatusCode::kInvalidArgument, "1 pipeline stages", "pp is 2");
  EXPECT_FALSE(is_there("target"));
}

TEST_F(GoldenBuckets, OfJobsThatMegatronDoesNotTrainAreRefused) {
  for (const JobShape& shape : {JobShape{2, 1, 1, 2, 1}, JobShape{1, 1, 1, 2, 2}})
    EXPECT_FAILURE(run("moe_ep2", in_buckets(shape)).status(), StatusCode::kInvalidArgument,
                   shape.tensor == 2 ? "etp 1 and all else under tp 2 with ep 1"
                                     : "etp 2 and all else under tp 1 with ep 1");
  EXPECT_FAILURE(run("moe_ep2", in_buckets({1, 1, 4, 2})).status(), StatusCode::kInvalidArgument,
                 "tp 1, dp 2", "ep 4, etp 1");
  const auto without = run("moe_ep2", in_buckets({1, 2, 2, 2}, kOne, {1, 0}));
  EXPECT_FAILURE(without.status(), StatusCode::kInvalidArgument, "stage 1", "no experts");
  EXPECT_NE(without.status().detail("hint").find("'fully_reshardable'"), std::string_view::npos);
  EXPECT_FAILURE(run("gpt_tp2pp2", in_buckets({1, 3, 1, 1}, kOne, {1, 0, 1})).status(),
                 StatusCode::kInvalidArgument, "stage 1", "no parameters");
  EXPECT_FAILURE(run("gpt_tp2pp2", in_buckets({1, 3, 1, 1})).status(), StatusCode::kInvalidArgument,
                 "3 pipeline stages for 2 layers");
  EXPECT_FALSE(is_there("target"));
}

TEST_F(GoldenBuckets, CannotBeMadeOfAnOptimizerWithoutAny) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", to_shape(1)).ok());
  EXPECT_FAILURE(run_again("target", in_buckets({1, 1, 1, 2}), "again").status(),
                 StatusCode::kFailedPrecondition, "not stored in buckets");
}

}  // namespace
}  // namespace shardwright::reshard::test
