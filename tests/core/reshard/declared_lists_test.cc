// SPDX-License-Identifier: Apache-2.0
//
// Buckets of several ranks: in which order one rank declares what comes together.
#include "core/reshard/declared_lists.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

class Lists : public testing::Test {
 protected:
  // A bucket that holds these parameters of 64 elements, of {layer, expert, ...} where they say it.
  struct Named {
    std::string name;
    Dims leading = {};
  };
  void bucket(const std::string& prefix, uint32_t group, const std::vector<Named>& parameters) {
    Bucket made;
    made.prefix = prefix;
    made.group = group;
    made.dtypes = "(torch.float32, torch.float32)";
    made.states = {{"param", 0}};
    for (size_t i = 0; i < parameters.size(); ++i) {
      LocalParameter parameter;
      Box box = whole_box(Dims{64});
      if (!parameters[i].leading.empty()) {
        box.offsets = Dims(parameters[i].leading.size() + 1, 0);
        box.sizes = Dims(box.offsets.size(), 1);
        box.sizes[box.sizes.size() - 1] = 64;
        std::ranges::copy(parameters[i].leading, box.offsets.begin());
      }
      parameter.parts.push_back({tensor(parameters[i].name), box});
      parameter.elements = 64;
      parameters_.push_back(std::move(parameter));
      assigned_.push_back({buckets_.size(), static_cast<int64_t>(64 * i), parameters_.size() - 1});
    }
    buckets_.push_back(std::move(made));
  }
  size_t tensor(const std::string& name) {
    for (size_t i = 0; i < catalog_.tensors.size(); ++i) {
      if (catalog_.tensor_name(i) == name) return i;
    }
    const Dims shape{64};
    plan::CatalogBuilder::Tensor made;
    made.name = name;
    made.dtype = DType::kFloat32;
    made.shape = shape;
    const plan::CatalogBuilder::Chunk chunk{whole_box(shape), 0};
    EXPECT_TRUE(plan::CatalogBuilder(&catalog_).add_tensor(made, {&chunk, 1}).ok());
    return catalog_.tensors.size() - 1;
  }
  Result<std::vector<std::string>> in_order(std::optional<bool> grouped = {},
                                            const JobShape& shape = {}) {
    const AssignInput known{catalog_, buckets_, parameters_, said_};
    const DeclaredLists lists({known, assigned_, shape, grouped});
    const std::vector<bool> all(lists.parameters().size(), true);
    SHW_ASSIGN_OR_RETURN(const std::vector<size_t> order, lists.in_order(all));
    std::vector<std::string> names;
    for (const size_t each : order) {
      const DeclaredParameter& parameter = lists.parameters()[each];
      std::string name(catalog_.tensor_name(parameter.tensors[0]));
      if (parameter.box.sizes.size() > 1) name += box_text(parameter.box).substr(0, 8);
      names.push_back(std::move(name));
    }
    return names;
  }

  plan::Catalog catalog_;
  std::vector<Bucket> buckets_;
  std::vector<LocalParameter> parameters_;
  std::vector<Assigned> assigned_;
  const std::vector<SaidPlace> said_;
};

using Names = std::vector<std::string>;

TEST_F(Lists, OneIsReversed) {
  bucket("", 0, {{"b"}, {"a"}});
  EXPECT_EQ(*in_order(), (Names{"a", "b"}));
}

TEST_F(Lists, TensorParallelRanksDeclareTheSame) {
  bucket("", 0, {{"b"}, {"a"}});
  bucket("", 1, {{"b"}, {"a"}});
  EXPECT_EQ(*in_order({}, {.tensor = 2}), (Names{"a", "b"}));
}

TEST_F(Lists, StagesComeTogetherByTheirLayers) {
  bucket("", 0, {{"decoder.layers.0.odd"}, {"embedding.word_embeddings.weight"}});
  bucket("", 1, {{"output_layer.weight"}, {"decoder.layers.1.odd"}});
  EXPECT_EQ(*in_order(), (Names{"embedding.word_embeddings.weight", "decoder.layers.0.odd",
                                "decoder.layers.1.odd", "output_layer.weight"}));
}

TEST_F(Lists, AnEmbeddingThatIsSharedIsThereOnce) {
  bucket("", 0, {{"decoder.layers.0.odd"}, {"embedding.word_embeddings.weight"}});
  bucket("", 1, {{"embedding.word_embeddings.weight"}, {"decoder.layers.1.odd"}});
  EXPECT_EQ(in_order()->size(), 3U);
}

TEST_F(Lists, SequentialExpertsAreDeclaredOneByOne) {
  const std::string front = "decoder.layers.mlp.experts.experts.linear_fc";
  bucket("chained_1.", 0,
         {{front + "2.weight", {0, 1}},
          {front + "1.weight", {0, 1}},
          {front + "2.weight", {0, 0}},
          {front + "1.weight", {0, 0}}});
  bucket("chained_1.", 1, {{front + "2.weight", {0, 2}}, {front + "1.weight", {0, 2}}});
  bucket("chained_0.", 0, {{"decoder.layers.mlp.router.weight", {0}}});
  const auto order = in_order();
  ASSERT_TRUE(order.ok()) << order.status().to_string();
  EXPECT_EQ((*order)[0].substr(0, 24), "decoder.layers.mlp.route");
  EXPECT_EQ((*order)[1].substr(0, front.size() + 1), front + "1");
  EXPECT_EQ((*order)[2].substr(0, front.size() + 1), front + "2");
  EXPECT_EQ((*order)[6].substr(0, front.size() + 1), front + "2");
}

TEST_F(Lists, GroupedExpertsAreDeclaredParameterByParameter) {
  const std::string front = "decoder.layers.mlp.experts.experts.linear_fc";
  bucket("chained_1.", 0,
         {{front + "2.weight", {0, 1}},
          {front + "2.weight", {0, 0}},
          {front + "1.weight", {0, 1}},
          {front + "1.weight", {0, 0}}});
  bucket("chained_1.", 1, {{front + "2.weight", {0, 2}}, {front + "1.weight", {0, 2}}});
  const auto order = in_order();
  ASSERT_TRUE(order.ok()) << order.status().to_string();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*order)[i].substr(0, front.size() + 1), front + "1");
    EXPECT_EQ((*order)[i + 3].substr(0, front.size() + 1), front + "2");
  }
}

TEST_F(Lists, SingleExpertsDoNotTellWhetherTheyAreGrouped) {
  const std::string name = "decoder.layers.mlp.experts.experts.linear_fc";
  bucket("chained_1.", 0, {{name + "2.weight", {0, 0}}, {name + "1.weight", {0, 0}}});
  bucket("chained_1.", 1, {{name + "2.weight", {0, 1}}, {name + "1.weight", {0, 1}}});
  EXPECT_FAILURE(in_order().status(), StatusCode::kFailedPrecondition, "grouped_experts", name);
  ASSERT_TRUE(in_order(true).ok());
  EXPECT_NE(*in_order(true), *in_order(false));
}

TEST_F(Lists, UnknownNamesOfOneLayerAreRefused) {
  bucket("chained_0.", 0, {{"decoder.layers.0.odd"}});
  bucket("chained_1.", 0, {{"decoder.layers.0.other"}});
  EXPECT_FAILURE(in_order().status(), StatusCode::kFailedPrecondition, "decoder.layers.0.odd",
                 "decoder.layers.0.other", "fully_reshardable");
}

// The order of names is that of a model which buckets show to be another one.
TEST_F(Lists, LayersInAnotherOrderThanIsKnownAreRefused) {
  bucket("chained_0.", 0,
         {{"decoder.layers.0.input_layernorm.weight"}, {"decoder.layers.0.mlp.router.weight"}});
  bucket("chained_1.", 0, {{"decoder.layers.0.mlp.experts.local_experts.0.w"}});
  EXPECT_FAILURE(in_order().status(), StatusCode::kFailedPrecondition, "router", "layernorm");
}

}  // namespace
}  // namespace shardwright::reshard::test
