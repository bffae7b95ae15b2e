// SPDX-License-Identifier: Apache-2.0
//
// Plans survive their encoding.
#include <algorithm>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/save/global_plan.h"
#include "tests/core/plan/random_world.h"
#include "tests/core/plan/wire/plan_samples.h"

namespace shardwright::plan::test {
namespace {

void expect_equal(const Catalog& a, const Catalog& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    EXPECT_EQ(a.tensor_name(t), b.tensor_name(t));
    EXPECT_EQ(a.texts.at(a.tensors[t].path), b.texts.at(b.tensors[t].path));
    EXPECT_EQ(a.tensors[t].dtype, b.tensors[t].dtype);
    EXPECT_EQ(a.tensors[t].kind, b.tensors[t].kind);
    EXPECT_EQ(a.tensors[t].rank, b.tensors[t].rank);
    EXPECT_TRUE(std::ranges::equal(a.shape(t), b.shape(t)));
    EXPECT_EQ(a.tensors[t].chunk_count, b.tensors[t].chunk_count);
  }
  ASSERT_EQ(a.chunk_count(), b.chunk_count());
  for (size_t c = 0; c < a.chunk_count(); ++c) {
    EXPECT_EQ(a.chunk_box(c), b.chunk_box(c));
    EXPECT_EQ(a.place_of(c), b.place_of(c));
  }
  EXPECT_EQ(a.boxes.size(), b.boxes.size());
  EXPECT_EQ(a.splits, b.splits);
  EXPECT_EQ(a.grids, b.grids);
  EXPECT_EQ(a.rank_maps, b.rank_maps);
  ASSERT_EQ(a.objects.size(), b.objects.size());
  for (size_t i = 0; i < a.objects.size(); ++i) {
    EXPECT_EQ(a.object_name(i), b.object_name(i));
    EXPECT_EQ(a.texts.at(a.objects[i].content_type), b.texts.at(b.objects[i].content_type));
    EXPECT_EQ(a.objects[i].kind, b.objects[i].kind);
    EXPECT_EQ(a.objects[i].rank, b.objects[i].rank);
    EXPECT_EQ(a.objects[i].place, b.objects[i].place);
    EXPECT_EQ(a.objects[i].size_bytes, b.objects[i].size_bytes);
  }
}

TEST(PlanBuffer, LocalSaveComesBack) {
  const LocalPlan plan = sample_local_save();
  const Result<LocalPlan> back = decode<LocalPlan>(encoded(plan));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->part.rank, 1);
  EXPECT_EQ(back->part.world_size, 2);
  EXPECT_EQ(back->part.lists, plan.part.lists);
  EXPECT_EQ(back->part.object_sizes, plan.part.object_sizes);
  EXPECT_EQ(back->part.digest_tensors, plan.part.digest_tensors);
  EXPECT_EQ(back->part.tensor_digests, plan.part.tensor_digests);
  EXPECT_EQ(back->description.options_text, plan.description.options_text);
  EXPECT_EQ(back->description.options_digest, plan.description.options_digest);
  EXPECT_EQ(back->description.object_digests, plan.description.object_digests);
  EXPECT_EQ(back->description.forms, plan.description.forms);
  expect_equal(back->description.catalog, plan.description.catalog);
  EXPECT_EQ(encoded(*back), encoded(plan));
}

TEST(PlanBuffer, WriteListComesBack) {
  const WriteList list = sample_write_list();
  ASSERT_FALSE(list.items.empty());
  const Result<WriteList> back = decode<WriteList>(encoded(list));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->rank, list.rank);
  EXPECT_EQ(back->world_size, list.world_size);
  EXPECT_EQ(back->generation, list.generation);
  EXPECT_EQ(back->plan_digest, list.plan_digest);
  ASSERT_EQ(back->items.size(), list.items.size());
  for (size_t i = 0; i < list.items.size(); ++i) {
    EXPECT_EQ(back->items[i].entry, list.items[i].entry);
    EXPECT_EQ(back->items[i].piece, list.items[i].piece);
    EXPECT_EQ(back->items[i].size_bytes, list.items[i].size_bytes);
  }
}

TEST(PlanBuffer, LoadComesBack) {
  const LoadPlan plan = sample_load();
  const Result<LoadPlan> back = decode<LoadPlan>(encoded(plan));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->generation, plan.generation);
  EXPECT_EQ(back->loaded, plan.loaded);
  EXPECT_EQ(back->missing, (std::vector<std::string>{"new"}));
  EXPECT_EQ(back->unexpected, plan.unexpected);
  ASSERT_EQ(back->reads.size(), plan.reads.size());
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    EXPECT_EQ(back->reads[i].box, plan.reads[i].box);
    EXPECT_EQ(back->reads[i].chunk, plan.reads[i].chunk);
    EXPECT_EQ(back->reads[i].entry, plan.reads[i].entry);
    EXPECT_EQ(back->reads[i].piece, plan.reads[i].piece);
  }
  ASSERT_EQ(back->objects.size(), 1U);
  EXPECT_EQ(back->objects[0].object, plan.objects[0].object);
  ASSERT_EQ(back->casts.size(), 1U);
  EXPECT_EQ(back->casts[0].stored, DType::kBfloat16);
  EXPECT_EQ(back->casts[0].wanted, DType::kFloat32);
}

TEST(PlanBuffer, PlansOfAnExchangeComeBack) {
  const WantList list = sample_want_list();
  const Result<WantList> listed = decode<WantList>(encoded(list));
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  EXPECT_EQ(listed->rank, list.rank);
  EXPECT_EQ(listed->world_size, list.world_size);
  EXPECT_EQ(listed->node, list.node);
  EXPECT_EQ(listed->generation, list.generation);
  EXPECT_EQ(listed->round_bytes, list.round_bytes);
  EXPECT_EQ(listed->blocks, list.blocks);
  const ExchangePlan plan = sample_exchange();
  const Result<ExchangePlan> back = decode<ExchangePlan>(encoded(plan));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->rank, plan.rank);
  EXPECT_EQ(back->world_size, plan.world_size);
  EXPECT_EQ(back->generation, plan.generation);
  EXPECT_EQ(back->span_bytes, plan.span_bytes);
  EXPECT_EQ(back->routes, plan.routes);
  EXPECT_EQ(back->targets, plan.targets);
  EXPECT_EQ(back->rounds, plan.rounds);
}

TEST(PlanBuffer, WriteResultComesBack) {
  const WriteResult result = sample_write_result();
  const Result<WriteResult> back = decode<WriteResult>(encoded(result));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->plan_digest, result.plan_digest);
  EXPECT_EQ(back->file_bytes, 9000U);
  EXPECT_EQ(back->index_position, 8192U);
  EXPECT_EQ(back->index_bytes, 680U);
  EXPECT_EQ(back->index_digest, result.index_digest);
  EXPECT_EQ(back->payload_bytes, 8000U);
  EXPECT_TRUE(back->has_file);
  EXPECT_FALSE(back->directory_sync_supported);
}

TEST(PlanBuffer, MergedSaveComesBackWithoutLists) {
  const GlobalSavePlan plan = sample_global_save();
  const Result<GlobalSavePlan> back = decode<GlobalSavePlan>(encoded(plan));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->generation, plan.generation);
  EXPECT_EQ(back->plan_digest, plan.plan_digest);
  EXPECT_EQ(back->rank_count(), 0U);
  expect_equal(back->catalog, plan.catalog);
}

TEST(PlanBuffer, RandomWorldsPlanTheSameAfterATrip) {
  shardwright::test::RandomSource random;
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    const std::vector<State> states =
        random_states(random, random_tensors(random), static_cast<int32_t>(random.between(1, 5)));
    std::vector<LocalPlan> travelled;
    for (const LocalPlan& local : local_plans(states)) {
      Result<LocalPlan> back = decode<LocalPlan>(encoded(local));
      ASSERT_TRUE(back.ok()) << back.status().to_string();
      travelled.push_back(*std::move(back));
    }
    const Result<PlannedSave> plan = plan_locals(travelled, {});
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_EQ(plan->plan_digest, planned(states).plan_digest);
    const RankPlans ranks = *gather(travelled);
    for (uint32_t r = 0; r < states.size(); ++r)
      EXPECT_TRUE(decode<WriteList>(encoded(write_list_of(*plan, ranks.of(r)))).ok());
    EXPECT_TRUE(decode<GlobalSavePlan>(encoded(*plan)).ok());
  }
}

TEST(PlanBuffer, AChunkTakes48Bytes) {
  std::vector<Box> few;
  std::vector<Box> many;
  for (int64_t i = 0; i < 1000; ++i) (i < 500 ? few : many).push_back(box({i, 0}, {1, 3}));
  std::vector<Box> all = few;
  all.insert(all.end(), many.begin(), many.end());
  many = few;
  many.push_back(box({500, 0}, {500, 3}));
  const auto size = [](const std::vector<Box>& boxes) {
    const State state = state_of({{"w", DType::kInt8, {1000, 3}, boxes}});
    return encoded(*make_local_plan(state, {}, {0, 1}, {})).size();
  };
  EXPECT_EQ(size(all) - size(many), 499U * 40U);
}

TEST(PlanBuffer, KindsAreToldApart) {
  for (const Sample& sample : all_samples()) {
    const Result<PlanKind> kind = plan_kind(sample.bytes);
    ASSERT_TRUE(kind.ok()) << kind.status().to_string();
    EXPECT_EQ(*kind, sample.kind);
    EXPECT_TRUE(validate_plan(sample.bytes).empty()) << validate_plan(sample.bytes)[0];
    for (const PlanKind wanted :
         {PlanKind::kLocalSave, PlanKind::kWriteList, PlanKind::kLoad, PlanKind::kWriteResult,
          PlanKind::kMergedSave, PlanKind::kDescription, PlanKind::kLocalPart, PlanKind::kWantList,
          PlanKind::kExchange}) {
      const Status status = decode_status(wanted, sample.bytes);
      if (wanted == sample.kind) {
        EXPECT_TRUE(status.ok()) << status.to_string();
      } else {
        EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "not a ");
      }
    }
  }
}

TEST(PlanJson, ShowsEveryKindAndRespectsTheLimit) {
  for (const Sample& sample : all_samples()) {
    const Result<std::string> json = plan_json(sample.bytes, 100);
    ASSERT_TRUE(json.ok()) << json.status().to_string();
    EXPECT_EQ(
        json->rfind(
            "{\"schema\":1,\"kind\":\"" + sample.name.substr(0, sample.name.find('.')) + "\"", 0),
        0U)
        << *json;
  }
  const std::string none = *plan_json(encoded(sample_global_save()), 0);
  EXPECT_NE(none.find("\"tensors\":[],\"chunks\":[],\"objects\":[]"), std::string::npos) << none;
  EXPECT_NE(none.find("\"chunk_count\":11"), std::string::npos) << none;
  const std::string one = *plan_json(encoded(sample_global_save()), 1);
  EXPECT_NE(one.find("\"name\":\"w\",\"dtype\":\"bfloat16\""), std::string::npos) << one;
  EXPECT_EQ(one.find("\"cube\""), std::string::npos) << one;
  EXPECT_FALSE(plan_json(std::vector<std::byte>(5), 1).ok());
}

}  // namespace
}  // namespace shardwright::plan::test
