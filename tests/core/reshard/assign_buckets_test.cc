// SPDX-License-Identifier: Apache-2.0
//
// Buckets whose contents are letters: what is proved, what the order of declaration decides, and
// what is refused.
#include "core/reshard/assign_buckets.h"

#include <map>

#include <gtest/gtest.h>

#include "core/reshard/declared_order.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

ContentDigest digest_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What each parameter and each run holds, as texts.
class Letters final : public Contents {
 public:
  std::vector<std::string> parameters;
  std::map<std::pair<size_t, int64_t>, std::string> runs;  // by tensor and begin
  int asked = 0;

  Result<ContentDigest> of_parameter(size_t number) override {
    return digest_of(parameters[number]);
  }
  Result<ContentDigest> of_run(const StoredRun& run, DType) override {
    ++asked;
    const auto found = runs.find({run.tensor, run.begin});
    return digest_of(found == runs.end() ? "other" : found->second);
  }
  Result<bool> are_zeros(const StoredRun& run) override {
    const auto found = runs.find({run.tensor, run.begin});
    return found != runs.end() && found->second == "pad";
  }
};

class AssignBuckets : public testing::Test {
 protected:
  // A parameter of the model, of so many elements, that holds the text.
  void parameter(const std::string& name, int64_t elements, const std::string& text) {
    plan::CatalogBuilder builder(&catalog_);
    const Dims shape{elements};
    plan::CatalogBuilder::Tensor tensor;
    tensor.name = name;
    tensor.dtype = DType::kFloat32;
    tensor.shape = shape;
    const plan::CatalogBuilder::Chunk chunk{whole_box(shape), 0};
    ASSERT_TRUE(builder.add_tensor(tensor, {&chunk, 1}).ok());
    contents_.parameters.push_back(text);
  }
  // A bucket of group whose runs are {begin, elements, text}; states besides "param" hold the same
  // everywhere unless `other` says what exp_avg has there.
  struct Run {
    int64_t begin;
    int64_t elements;
    std::string text;
    std::string other = "zero";
  };
  void bucket(uint32_t group, const std::vector<Run>& runs) {
    Bucket made;
    made.group = group;
    made.dtypes = "(torch.float32, torch.float32)";
    const size_t first = 100 + 2 * buckets_.size();
    made.states = {{"param", first}, {"exp_avg", first + 1}};
    for (const Run& run : runs) {
      made.bounds.push_back(run.begin);
      made.bounds.push_back(run.begin + run.elements);
      made.elements = run.begin + run.elements;
      contents_.runs[{first, run.begin}] = run.text;
      contents_.runs[{first + 1, run.begin}] = run.other;
    }
    std::ranges::sort(made.bounds);
    buckets_.push_back(made);
  }
  Result<std::vector<Assigned>> run() {
    parameters_ = find_local_parameters(catalog_);
    // The states' dtypes are looked up by their numbers.
    plan::Catalog wide = catalog_;
    while (wide.tensors.size() < 200) wide.tensors.push_back(catalog_.tensors[0]);
    return assign_buckets({wide, buckets_, parameters_, said_}, &contents_);
  }
  std::string name(const Assigned& each) {
    return std::string(parameters_[each.parameter].name(catalog_));
  }

  plan::Catalog catalog_;
  Letters contents_;
  std::vector<Bucket> buckets_;
  std::vector<LocalParameter> parameters_;
  std::vector<SaidPlace> said_;
};

TEST_F(AssignBuckets, ContentsSayWhatLiesWhere) {
  parameter("a", 64, "A");
  parameter("b", 64, "B");
  parameter("c", 32, "C");
  bucket(0, {{0, 32, "C"}, {32, 32, "pad"}, {64, 64, "B"}, {128, 64, "A"}});
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  ASSERT_EQ(assigned->size(), 3U);
  EXPECT_EQ(name((*assigned)[0]), "c");
  EXPECT_EQ((*assigned)[1].begin, 64);
  EXPECT_EQ(name((*assigned)[1]), "b");
  EXPECT_EQ(name((*assigned)[2]), "a");
}

TEST_F(AssignBuckets, OfBucketsInOneRunTheNextBeginsWhereTheLastParameterEnded) {
  parameter("a", 80, "A");
  parameter("b", 16, "B");
  parameter("c", 16, "C");
  bucket(0, {{0, 16, "C"}, {16, 48, "pad"}, {64, 80, "A"}, {144, 16, "B"}});
  buckets_[0].is_gathered = true;
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  ASSERT_EQ(assigned->size(), 3U);
  EXPECT_EQ((*assigned)[1].begin, 64);
  EXPECT_EQ((*assigned)[2].begin, 144);
  EXPECT_EQ(name((*assigned)[2]), "b");
}

TEST_F(AssignBuckets, ARunWhoseEndIsNoParameterLeavesItsBucket) {
  parameter("a", 80, "A");
  bucket(0, {{0, 64, "A"}});
  buckets_[0].is_gathered = true;
  EXPECT_FAILURE(run().status(), StatusCode::kFailedPrecondition, "element 0");
}

TEST_F(AssignBuckets, WhatIsNoStoredWeightIsRefusedByNameAndPlace) {
  parameter("a", 64, "A");
  bucket(3, {{0, 64, "A"}, {64, 64, "changed"}});
  EXPECT_FAILURE(run().status(), StatusCode::kFailedPrecondition, "dp_group_idx_3", "element 64",
                 "no stored weight");
}

TEST_F(AssignBuckets, APlaceWhoseSizeIsThatOfNothingIsRefused) {
  parameter("a", 64, "A");
  bucket(0, {{0, 48, "A"}});
  EXPECT_FAILURE(run().status(), StatusCode::kFailedPrecondition, "element 0");
}

TEST_F(AssignBuckets, EqualWeightsLieInTheReverseOrderOfTheirDeclaration) {
  parameter("decoder.layers.0.input_layernorm.weight", 64, "ones");
  parameter("decoder.layers.1.input_layernorm.weight", 64, "ones");
  parameter("decoder.layers.1.mlp.linear_fc1.layer_norm_weight", 64, "ones");
  bucket(0, {{0, 64, "ones", "x"}, {64, 64, "ones", "y"}, {128, 64, "ones", "z"}});
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  EXPECT_EQ(name((*assigned)[0]), "decoder.layers.1.mlp.linear_fc1.layer_norm_weight");
  EXPECT_EQ(name((*assigned)[1]), "decoder.layers.1.input_layernorm.weight");
  EXPECT_EQ(name((*assigned)[2]), "decoder.layers.0.input_layernorm.weight");
}

TEST_F(AssignBuckets, LayersOfOtherStagesAreNotAmongThem) {
  for (int layer = 0; layer < 2; ++layer) {
    const std::string front = "decoder.layers." + std::to_string(layer);
    parameter(front + ".input_layernorm.weight", 64, "ones");
    parameter(front + ".self_attention.linear_qkv.weight", 128, layer == 0 ? "Q0" : "Q1");
  }
  bucket(0, {{0, 128, "Q0"}, {128, 64, "ones", "x"}});
  bucket(1, {{0, 128, "Q1"}, {128, 64, "ones", "y"}});
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  EXPECT_EQ(name((*assigned)[1]), "decoder.layers.0.input_layernorm.weight");
  EXPECT_EQ(name((*assigned)[3]), "decoder.layers.1.input_layernorm.weight");
}

TEST_F(AssignBuckets, EqualWeightsOfUnknownNamesAreRefused) {
  parameter("first.scale", 64, "ones");
  parameter("second.scale", 64, "ones");
  bucket(0, {{0, 64, "ones", "x"}, {64, 64, "ones", "y"}});
  EXPECT_FAILURE(run().status(), StatusCode::kFailedPrecondition, "order is not known",
                 "first.scale", "second.scale", "map");
}

TEST_F(AssignBuckets, EqualWeightsWithEqualStatesMayLieInAnyOrder) {
  parameter("first.scale", 64, "ones");
  parameter("second.scale", 64, "ones");
  bucket(0, {{0, 64, "ones"}, {64, 64, "ones"}});
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  EXPECT_NE(name((*assigned)[0]), name((*assigned)[1]));
}

TEST_F(AssignBuckets, WhatAMapSaysWins) {
  parameter("first.scale", 64, "ones");
  parameter("second.scale", 64, "ones");
  bucket(0, {{0, 64, "ones", "x"}, {64, 64, "ones", "y"}});
  said_ = {{buckets_[0].name(), 0, {{"first.scale", whole_box(Dims{64})}}}};
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  EXPECT_EQ(name((*assigned)[0]), "first.scale");
  EXPECT_EQ(name((*assigned)[1]), "second.scale");
}

TEST_F(AssignBuckets, AMapOfAnotherBucketOrOfNoParameterIsRefused) {
  parameter("a", 64, "A");
  bucket(0, {{0, 64, "A"}});
  said_ = {{"nowhere", 0, {{"a", whole_box(Dims{64})}}}};
  EXPECT_FAILURE(run().status(), StatusCode::kInvalidArgument, "nowhere", "no such bucket");
  said_ = {{buckets_[0].name(), 0, {{"a", whole_box(Dims{32})}}}};
  EXPECT_FAILURE(run().status(), StatusCode::kInvalidArgument, "no parameter is stored");
}

TEST_F(AssignBuckets, APlaceThatIsTakenTwiceIsRefused) {
  parameter("a", 64, "A");
  bucket(0, {{0, 64, "A"}, {64, 64, "A"}});
  EXPECT_FAILURE(run().status(), StatusCode::kFailedPrecondition, "'a'", "another place");
}

TEST_F(AssignBuckets, GroupsMayHoldTheSameParameter) {
  parameter("a", 64, "A");
  bucket(0, {{0, 64, "A"}});
  bucket(1, {{0, 64, "A"}});
  const auto assigned = run();
  ASSERT_TRUE(assigned.ok()) << assigned.status().to_string();
  EXPECT_EQ(assigned->size(), 2U);
}

TEST(DeclaredOrder, ExpertsOfALayerFollowEachOther) {
  const std::string name = "decoder.layers.mlp.experts.experts.linear_fc1.weight";
  const auto at = [&](int64_t layer, int64_t expert) {
    return declared_place(name, {{layer, expert, 0, 0}, {1, 1, 4, 4}});
  };
  EXPECT_LT(at(0, 1), at(0, 2));
  EXPECT_LT(at(0, 2), at(1, 0));
  EXPECT_FALSE(declared_place("rotary.inv_freq", {{0}, {4}}).has_value());
}

}  // namespace
}  // namespace shardwright::reshard::test
