// SPDX-License-Identifier: Apache-2.0
//
// Reshards under the rules of a mapping: what a mapping made and another one took back is what the
// job wrote.
#include <algorithm>
#include <ranges>
#include <string_view>
#include <vector>

#include "tests/core/reshard/golden_reshard.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

// Rules as a map has them.
std::string rules(const std::string& list) {
  return R"({"bucket_size": null, "mapping": {"schema": 1, "rules": [)" + list + "]}}";
}

std::string padded_to(const char* size) {
  return rules(std::string(R"({"match": "*word_embeddings.weight", "steps": [
      {"pad": {"axis": 0, "size": )") +
               size + R"(, "real": 128}}]},
      {"match": "output_layer.weight", "steps": [{"pad": {"axis": 0, "size": )" +
               size + R"(, "real": 128}}]})");
}

class GoldenMap : public GoldenReshard {
 protected:
  static ReshardOptions with(const std::string& map, JobShape shape = {1, 1, 1, 1}) {
    ReshardOptions options;
    options.target.shape = shape;
    auto read = read_map(map);
    EXPECT_TRUE(read.ok()) << read.status().to_string();
    if (read.ok()) options.map = *std::move(read);
    return options;
  }
  Dims shape_of(const std::string& tensor, const std::string& name = "target") {
    const auto made = opened(target(name));
    const auto number = made->find_tensor(tensor, -1);
    return number.ok() ? Dims(made->catalog().shape(*number)) : Dims();
  }
  void expect_back(const ReshardOptions& there, const ReshardOptions& back) {
    const auto made = run("gpt_tp2dp2_bf16", there);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    const auto again = run_again("target", back, "again");
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    expect_digests("gpt_tp2dp2_bf16", "again");
  }
};

TEST_F(GoldenMap, VocabulariesArePaddedWithTheirStates) {
  expect_back(with(padded_to("192"), {4, 1, 1, 1}), with(padded_to("128")));
}

TEST_F(GoldenMap, APadIsZeros) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", with(padded_to("192"))).ok());
  const auto made = opened(target());
  const auto stored = opened(source("gpt_tp2dp2_bf16"));
  const std::string weight = "embedding.word_embeddings.weight";
  for (const std::string& name : {weight, "optimizer.state.exp_avg." + weight}) {
    ASSERT_EQ(shape_of(name), (Dims{192, 16}));
    const std::vector<std::byte> pad =
        read(*made, *made->find_tensor(name, -1), {{128, 0}, {64, 16}});
    EXPECT_TRUE(std::ranges::all_of(pad, [](std::byte each) { return each == std::byte{0}; }));
  }
  const Box real{{0, 0}, {128, 16}};
  EXPECT_EQ(read(*made, *made->find_tensor(weight, -1), real),
            read(*stored, *stored->find_tensor(weight, -1), real));
}

TEST_F(GoldenMap, BucketsHaveThePaddedVocabulary) {
  ReshardOptions there = with(padded_to("192"), {1, 1, 1, 2});
  there.target.optimizer = OptimizerLayout::kDpReshardable;
  expect_back(there, with(padded_to("128")));
}

TEST_F(GoldenMap, LayersAndHalvesComeApartAndTogether) {
  const std::string apart = rules(R"({"match": "decoder.layers.mlp.linear_fc1.weight", "steps": [
      {"split": {"axis": 1, "suffixes": ["_w", "_v"]}},
      {"drop_axis": {"axis": 0, "name": "decoder.layers.{#}.mlp.linear_fc1.weight"}}]},
      {"match": "decoder.layers.*.weight", "except": ["*.linear_fc1.weight"], "steps": [
      {"drop_axis": {"axis": 0, "name": "decoder.layers.{#}.{1}.weight"}}]})");
  const std::string together =
      rules(R"({"match": "decoder.layers.#.mlp.linear_fc1.weight_w", "steps": [
      {"concat": {"axis": 0, "index": 0, "count": 2}},
      {"insert_axis": {"axis": 0, "index": "{1}", "count": 2}},
      {"rename": "decoder.layers.mlp.linear_fc1.weight"}]},
      {"match": "decoder.layers.#.mlp.linear_fc1.weight_v", "steps": [
      {"concat": {"axis": 0, "index": 1, "count": 2}},
      {"insert_axis": {"axis": 0, "index": "{1}", "count": 2}},
      {"rename": "decoder.layers.mlp.linear_fc1.weight"}]},
      {"match": "decoder.layers.#.*.weight", "steps": [
      {"insert_axis": {"axis": 0, "index": "{1}", "count": 2}},
      {"rename": "decoder.layers.{2}.weight"}]})");
  expect_back(with(apart), with(together));
  EXPECT_EQ(shape_of("decoder.layers.1.mlp.linear_fc1.weight_v"), (Dims{64, 16}));
  EXPECT_EQ(shape_of("optimizer.state.exp_avg_sq.decoder.layers.0.mlp.linear_fc2.weight"),
            (Dims{16, 64}));
}

TEST_F(GoldenMap, GroupedExpertsBecomeSequentialOnes) {
  const std::string front = "decoder.layers.mlp.experts.";
  const std::string apart = rules(R"({"match": "decoder.layers.mlp.experts.experts.*", "steps": [
      {"drop_axis": {"axis": 1, "name": "decoder.layers.mlp.experts.local_experts.{#}.{1}"}}]})");
  ASSERT_TRUE(run("moe_ep2", with(apart)).ok());
  EXPECT_EQ(shape_of(front + "local_experts.3.linear_fc2.weight").size(), 3U);
  const std::string grouped =
      rules(R"({"match": "decoder.layers.mlp.experts.local_experts.#.*", "steps": [
      {"insert_axis": {"axis": 1, "index": "{1}", "count": 4}},
      {"rename": "decoder.layers.mlp.experts.experts.{2}"}]})");
  const auto again = run_again("target", with(grouped), "again");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  expect_digests("moe_ep2", "again");
}

TEST_F(GoldenMap, ObjectsOfTheModelAreCells) {
  const auto path = exec::test::golden_directory("megatron") / "mc19_tp2_w2" / "ckpt";
  const format::Location newer{storage::make_posix_storage(path), "", path.string(), path.string()};
  const auto stored = opened(newer);
  std::string key;
  for (size_t i = 0; i < stored->catalog().objects.size() && key.empty(); ++i) {
    const std::string name(stored->catalog().object_name(i));
    const size_t end = name.find("/shard_");
    if (end != std::string::npos && !name.starts_with("common") && !name.starts_with("rng"))
      key = name.substr(0, end);
  }
  ASSERT_FALSE(key.empty()) << stored->info_json(true);
  const auto report =
      reshard(*reading_, *writing_, newer, target(),
              with(rules("{\"match\": \"" + key + "\", \"steps\": [{\"rename\": \"other\"}]}")),
              exec::CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto made = opened(target());
  EXPECT_TRUE(std::ranges::any_of(
      std::views::iota(size_t{0}, made->catalog().objects.size()),
      [&](size_t i) { return made->catalog().object_name(i).starts_with("other/shard_"); }));
}

struct Refusal {
  const char* list;
  std::vector<std::string_view> words;
};

TEST_F(GoldenMap, RulesThatDoNotFitAreRefusedByName) {
  const std::vector<Refusal> refusals = {
      {R"({"match": "decoder.nothing", "steps": []})", {"rule 1", "decoder.nothing", "none of"}},
      {R"({"match": "output_layer.*", "steps": []}, {"match": "*.weight", "steps": []})",
       {"rule 1", "rule 2", "output_layer.weight"}},
      {R"({"match": "output_layer.weight", "steps": [{"split": {"axis": 0, "count": 3}}]})",
       {"rule 1", "split.count", "3 equal parts"}},
      {R"({"match": "output_layer.weight", "steps": [{"pad": {"axis": 0, "size": 256}}]})",
       {"rule 1", "pad.size", "real"}},
      {R"({"match": "output_layer.weight", "steps": [{"rename": "embedding.word_embeddings.weight"}]})",
       {"rule 1", "output_layer.weight", "all of it"}},
      {R"({"match": "decoder.layers.mlp.#.weight", "optional": true, "steps": []},
          {"match": "output_layer.weight", "steps": [
             {"concat": {"axis": 0, "index": 0, "count": 2}}, {"rename": "both"}]})",
       {"both", "whole"}},
  };
  for (const auto& [list, words] : refusals) {
    const Status status = run("gpt_tp2dp2_bf16", with(rules(list))).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    for (const std::string_view word : words)
      EXPECT_TRUE(shardwright::test::mentions(status, word)) << word << ": " << status.to_string();
  }
  EXPECT_FALSE(is_there("target"));
}

TEST_F(GoldenMap, BucketsOfRenamedParametersAreRefused) {
  ReshardOptions options =
      with(rules(R"({"match": "output_layer.weight", "steps": [{"rename": "head.weight"}]})"));
  options.target.optimizer = OptimizerLayout::kDpReshardable;
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", options).status(), StatusCode::kFailedPrecondition,
                 "output_layer.weight", "name");
}

TEST_F(GoldenMap, AnotherMapIsAnotherTarget) {
  ASSERT_TRUE(run("gpt_tp2dp2_bf16", with(padded_to("192"))).ok());
  EXPECT_FAILURE(run("gpt_tp2dp2_bf16", with(padded_to("256"))).status(),
                 StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace shardwright::reshard::test
