// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a target hold which rows of experts, and which stages which layers.
#include "core/reshard/target_grid.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/reshard/stage_layers.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

const std::string kExperts = "decoder.layers.mlp.experts.experts.linear_fc";

class Grid : public testing::Test {
 protected:
  // counts: of equal chunks in each dimension.
  void tensor(const std::string& name, const Dims& shape, const Dims& counts) {
    std::vector<plan::CatalogBuilder::Chunk> chunks{{whole_box(shape), 0}};
    for (size_t d = 0; d < shape.size(); ++d) {
      std::vector<plan::CatalogBuilder::Chunk> next;
      for (const auto& chunk : chunks) {
        for (int64_t i = 0; i < counts[d]; ++i) {
          next.push_back(chunk);
          next.back().box.sizes[d] = shape[d] / counts[d];
          next.back().box.offsets[d] = i * next.back().box.sizes[d];
        }
      }
      chunks = std::move(next);
    }
    plan::CatalogBuilder::Tensor made;
    made.name = name;
    made.dtype = DType::kFloat32;
    made.shape = shape;
    ASSERT_TRUE(plan::CatalogBuilder(&catalog_).add_tensor(made, chunks).ok());
  }
  // Two layers of four experts, whose rows this many ranks share out.
  void experts(int64_t ranks) {
    tensor(kExperts + "1.weight", {2, 4, 16, 3}, {2, 4, 2 * ranks, 1});
    tensor(kExperts + "2.weight", {2, 4, 3, 8}, {2, 4, 1, ranks});
  }
  Result<TargetGrid> to(const TargetJob& job) {
    return TargetGrid::create(catalog_, shape_of_source(catalog_, buckets_), job);
  }
  Bucket bucket(const char* prefix, uint32_t group) {
    Bucket made;
    made.prefix = prefix;
    made.group = group;
    return made;
  }

  plan::Catalog catalog_;
  std::vector<Bucket> buckets_;
};

TEST_F(Grid, ExpertsShowTheirRanks) {
  tensor("embedding.word_embeddings.weight", {64, 3}, {2, 1});
  experts(4);
  for (uint32_t group = 0; group < 4; ++group) buckets_.push_back(bucket("chained_0.", group));
  for (uint32_t group = 0; group < 16; ++group) buckets_.push_back(bucket("chained_1.", group));
  const JobShape shape = shape_of_source(catalog_, buckets_);
  EXPECT_EQ(shape.tensor, 2);
  EXPECT_EQ(shape.pipeline, 2);
  EXPECT_EQ(shape.expert_tensor, 4);
  EXPECT_EQ(shape.expert, 2);
}

TEST_F(Grid, WithoutExpertsTheirRanksAreThoseOfTheRest) {
  tensor("output_layer.weight", {64, 3}, {4, 1});
  EXPECT_EQ(shape_of_source(catalog_, buckets_).expert_tensor, 4);
}

TEST_F(Grid, RanksOfExpertsHaveRowsOfBothHalves) {
  experts(1);
  TargetJob job;
  job.shape = {.tensor = 4, .expert = 2, .expert_tensor = 2};
  const auto grid = to(job);
  ASSERT_TRUE(grid.ok()) << grid.status().to_string();
  const std::vector<HeldBox> first = grid->held(catalog_, 0);
  ASSERT_EQ(first.size(), 2U * 4U * 4U);  // layers, experts, halves of two ranks
  EXPECT_EQ(first[1].place, 1);
  EXPECT_EQ(first[1].box, (Box{{0, 0, 4, 0}, {1, 1, 4, 3}}));
  EXPECT_EQ(first[2].place, 0);
  EXPECT_EQ(first[2].box, (Box{{0, 0, 8, 0}, {1, 1, 4, 3}}));
  const std::vector<HeldBox> second = grid->held(catalog_, 1);
  ASSERT_EQ(second.size(), 2U * 4U * 2U);
  EXPECT_EQ(second[3].box, (Box{{0, 1, 0, 4}, {1, 1, 3, 4}}));
  EXPECT_EQ(second[3].place, 1);
}

TEST_F(Grid, RowsOfExpertsComeTogether) {
  experts(4);
  TargetJob job;
  job.shape.tensor = 2;
  const auto grid = to(job);
  ASSERT_TRUE(grid.ok()) << grid.status().to_string();
  EXPECT_EQ(grid->held(catalog_, 1)[0].box, (Box{{0, 0, 0, 0}, {1, 1, 3, 8}}));
}

TEST_F(Grid, RowsThatRanksDoNotShareOutAreRefused) {
  experts(1);
  TargetJob job;
  job.shape.expert_tensor = 3;
  EXPECT_FAILURE(to(job).status(), StatusCode::kInvalidArgument, "linear_fc",
                 "3 tensor-parallel ranks");
}

// Of names that have the number of a layer the first dimension counts experts.
TEST_F(Grid, ExpertsAreNoLayers) {
  for (const char* layer : {"0", "1", "2"})
    tensor("decoder.layers." + std::string(layer) + ".mlp.experts.experts.linear_fc2.weight",
           {8, 3, 8}, {8, 1, 1});
  TargetJob job;
  job.shape.pipeline = 3;
  const auto grid = to(job);
  ASSERT_TRUE(grid.ok()) << grid.status().to_string();
  EXPECT_EQ(grid->layers(), 3);
  for (const HeldBox& each : grid->held(catalog_, 2)) EXPECT_EQ(each.stage, 2);
}

class Stages : public Grid {
 protected:
  void SetUp() override { tensor("decoder.layers.input_layernorm.weight", {5, 8}, {5, 1}); }
  Result<std::vector<int64_t>> stages(std::vector<int64_t> layers) {
    TargetJob job;
    job.shape.pipeline = static_cast<int64_t>(layers.size());
    job.pipeline_layers = std::move(layers);
    SHW_ASSIGN_OR_RETURN(const TargetGrid grid, to(job));
    std::vector<int64_t> found;
    for (const HeldBox& each : grid.held(catalog_, 0)) found.push_back(each.stage);
    return found;
  }
};

TEST_F(Stages, HaveAsManyLayersAsIsSaid) {
  EXPECT_EQ(*stages({4, 1}), (std::vector<int64_t>{0, 0, 0, 0, 1}));
  EXPECT_EQ(*stages({0, 2, 3}), (std::vector<int64_t>{1, 1, 2, 2, 2}));
  EXPECT_EQ(*stages({1, 0, 4}), (std::vector<int64_t>{0, 2, 2, 2, 2}));
}

TEST_F(Stages, HaveAllLayersOfTheModel) {
  EXPECT_FAILURE(stages({4, 2}).status(), StatusCode::kInvalidArgument, "6 layers (4, 2)",
                 "the model 5");
  EXPECT_EQ(stages({4, 2}).status().detail("parameter"), "pipeline_layers");
  EXPECT_FAILURE(stages({2, 2}).status(), StatusCode::kInvalidArgument, "4 layers (2, 2)");
}

// What lies in the bucket of a group of tensor-parallel ranks: a layer.
class StagesOfTheSource : public testing::Test {
 protected:
  std::vector<int64_t> found(const std::vector<std::pair<uint32_t, int64_t>>& layers,
                             const JobShape& shape, const char* prefix = "") {
    plan::Catalog catalog;
    const Dims whole{9, 8};
    plan::CatalogBuilder::Tensor made;
    made.name = "decoder.layers.input_layernorm.weight";
    made.dtype = DType::kFloat32;
    made.shape = whole;
    const plan::CatalogBuilder::Chunk chunk{whole_box(whole), 0};
    EXPECT_TRUE(plan::CatalogBuilder(&catalog).add_tensor(made, {&chunk, 1}).ok());
    std::vector<Bucket> buckets;
    std::vector<LocalParameter> parameters;
    std::vector<Assigned> assigned;
    for (const auto& [group, layer] : layers) {
      Bucket bucket;
      bucket.prefix = prefix;
      bucket.group = group;
      assigned.push_back({buckets.size(), 0, parameters.size()});
      buckets.push_back(std::move(bucket));
      parameters.push_back({{{0, Box{{layer, 0}, {1, 8}}}}, 8, DType::kFloat32});
    }
    return stage_layers_of({catalog, buckets, parameters, {}}, assigned, shape);
  }
};

TEST_F(StagesOfTheSource, AreThoseOfItsBuckets) {
  const JobShape shape{.tensor = 2, .pipeline = 2};
  EXPECT_EQ(found({{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 3}, {3, 3}}, shape),
            (std::vector<int64_t>{3, 1}));
  const JobShape of_experts{.pipeline = 2, .expert = 2, .expert_tensor = 2};
  EXPECT_EQ(found({{0, 0}, {4, 1}, {7, 2}}, of_experts, "chained_1."),
            (std::vector<int64_t>{1, 2}));
}

TEST_F(StagesOfTheSource, AreNotKnownWhereLayersDoNotFollowEachOther) {
  EXPECT_TRUE(found({{0, 0}, {1, 1}, {0, 2}, {1, 3}}, {.pipeline = 2}).empty());
  EXPECT_TRUE(found({{0, 0}, {5, 1}}, {.pipeline = 2}).empty());
}

}  // namespace
}  // namespace shardwright::reshard::test
