// SPDX-License-Identifier: Apache-2.0
//
// What a rank describes: kinds, pieces, digests that are wanted, refusals.
#include "core/plan/describe/replica_digests.h"

#include "core/base/limits.h"
#include "core/plan/options_text.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

Result<LocalPlan> local_plan(const State& state, const SaveRules& rules = {}) {
  return describe_state(state, rules, {0, 2}, {}, save_rules_text(rules));
}

EntryKind kind_of(const Holding& holding, const SaveRules& rules = {}) {
  const Result<LocalPlan> plan = local_plan(state_of({holding}), rules);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? plan->description.catalog.tensors[0].kind : EntryKind::kAuto;
}

TEST(LocalPlan, ListsEntriesInStateOrderAndNoEmptyBox) {
  const State state =
      state_of({{"b", DType::kFloat32, {4}, {box({0}, {0}), box({0}, {2}), box({3}, {1})}},
                {"a", DType::kInt8, {2}, {}},
                whole("c", {0, 3})},
               {{"step", "12345"}});
  const Result<LocalPlan> plan = local_plan(state);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_TRUE(description_findings(plan->description, 1).empty());
  EXPECT_TRUE(part_findings(view_of(plan->part), &plan->description, 1).empty());
  ASSERT_EQ(plan->description.catalog.tensors.size(), 3U);
  EXPECT_EQ(plan->description.catalog.tensor_name(0), "b");
  EXPECT_EQ(plan->description.catalog.tensor_name(1), "a");
  ASSERT_EQ(plan->part.boxes.size(), 2U);
  EXPECT_EQ(plan->part.boxes[0].place, 1U);
  EXPECT_EQ(plan->part.boxes[1].place, 2U);
  EXPECT_EQ(plan->description.catalog.objects[0].size_bytes, 5U);
  EXPECT_EQ(plan->part.world_size, 2);
  EXPECT_EQ(plan->description.options_digest, options_text_digest(plan->description.options_text));
}

TEST(LocalPlan, SettlesKinds) {
  EXPECT_EQ(kind_of(whole("w", {3})), EntryKind::kReplicated);
  EXPECT_EQ(kind_of(whole("w", {})), EntryKind::kReplicated);
  EXPECT_EQ(kind_of({"w", DType::kInt8, {3}, {box({0}, {2})}, EntryKind::kAuto}),
            EntryKind::kSharded);
  EXPECT_EQ(kind_of({"w", DType::kInt8, {3}, {}, EntryKind::kAuto}), EntryKind::kSharded);
  EXPECT_EQ(kind_of(whole("w", {3}, EntryKind::kSharded)), EntryKind::kSharded);
  SaveRules rules;
  rules.kinds = {
      {"x*", EntryKind::kReplicated}, {"w*", EntryKind::kRankLocal}, {"*", EntryKind::kSharded}};
  EXPECT_EQ(kind_of(whole("w", {3}), rules), EntryKind::kRankLocal);
  EXPECT_EQ(kind_of(whole("v", {3}, EntryKind::kReplicated), rules), EntryKind::kSharded);
}

TEST(LocalPlan, PatternsThatSayShardedPassObjectsBy) {
  SaveRules rules;
  rules.kinds = {{"*", EntryKind::kSharded}, {"rng", EntryKind::kRankLocal}};
  const Result<LocalPlan> plan = local_plan(state_of({}, {{"rng", "1"}, {"step", "2"}}), rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->description.catalog.objects[0].kind, EntryKind::kRankLocal);
  EXPECT_EQ(plan->part.object_sizes, std::vector<uint64_t>{1});
  EXPECT_EQ(plan->description.catalog.objects[1].kind, EntryKind::kReplicated);
}

TEST(LocalPlan, RefusesReplicatedAndRankLocalTensorsThatAreNotWhole) {
  for (const EntryKind kind : {EntryKind::kReplicated, EntryKind::kRankLocal}) {
    const State state = state_of({{"w", DType::kInt8, {4}, {box({0}, {3})}, kind}});
    EXPECT_FAILURE(local_plan(state).status(), StatusCode::kInvalidArgument, "'w'",
                   entry_kind_name(kind), "[3:4]", "rank 0");
  }
}

TEST(LocalPlan, RefusesPositionsAndDigestCountsThatCannotBe) {
  const State state = state_of({whole("w", {3})});
  for (const RankPosition position : {RankPosition{-1, 2}, RankPosition{2, 2}, RankPosition{0, 0},
                                      RankPosition{0, kMaxWorldSize + 1}}) {
    EXPECT_FAILURE(describe_state(state, {}, position, {}, "").status(),
                   StatusCode::kInvalidArgument, "rank");
  }
  ReplicaDigests digests;
  digests.tensors.resize(2);
  EXPECT_FAILURE(describe_state(state, {}, {0, 1}, digests, "").status(),
                 StatusCode::kInvalidArgument, "2 tensor");
}

TEST(LocalPlan, RefusesAShardedObject) {
  const State state = state_of({}, {{"o", "1", EntryKind::kSharded}});
  EXPECT_FAILURE(local_plan(state).status(), StatusCode::kInvalidArgument, "'o'", "sharded");
}

TEST(ReplicaDigestNeeds, FollowsTheRule) {
  using Need = DigestNeeds::Tensor;
  const State state = state_of({whole("small", {4}),
                                whole("large", {(1 << 20) / 4 + 1}),
                                {"part", DType::kInt8, {4}, {box({0}, {2})}},
                                whole("own", {4}, EntryKind::kRankLocal),
                                whole("by_layout", {4}, EntryKind::kSharded)},
                               {{"shared", "1"}, {"own_object", "2", EntryKind::kRankLocal}});
  SaveRules rules;
  EXPECT_EQ(replica_digest_needs(state, rules).tensors, (std::vector<Need>{{0, false}, {4, true}}));
  EXPECT_EQ(replica_digest_needs(state, rules).objects, (std::vector<size_t>{0}));
  rules.verify_replicas = VerifyReplicas::kAll;
  EXPECT_EQ(replica_digest_needs(state, rules).tensors,
            (std::vector<Need>{{0, false}, {1, false}, {2, true}, {4, true}}));
  rules.verify_replicas = VerifyReplicas::kOff;
  EXPECT_TRUE(replica_digest_needs(state, rules).tensors.empty());
  EXPECT_TRUE(replica_digest_needs(state, rules).objects.empty());
}

TEST(SaveRulesText, DiffersWithEachRule) {
  SaveRules rules;
  const std::string plain = save_rules_text(rules);
  EXPECT_EQ(plain, "owner=balanced\nverify_replicas=auto\npreset=native\n");
  rules.kinds.push_back({"rng*", EntryKind::kRankLocal});
  EXPECT_EQ(save_rules_text(rules), plain + "kind[0]=rng* -> rank_local\n");
  rules.owner = OwnerRule::kLowestRank;
  EXPECT_NE(save_rules_text(rules).find("owner=lowest_rank"), std::string::npos);
}

}  // namespace
}  // namespace shardwright::plan::test
