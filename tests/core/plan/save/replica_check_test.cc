// SPDX-License-Identifier: Apache-2.0
//
// Replicas that differ are found, and the message says what to do.
#include "core/plan/describe/replica_digests.h"
#include "core/plan/save/global_plan.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

Digest128 digest(int value) {
  Digest128 bytes{};
  bytes[15] = static_cast<std::byte>(value);
  return bytes;
}

// Plans of ranks that hold tensor "w" and object "o" with these digests.
Result<PlannedSave> plan_of(const std::vector<int>& tensor_digests,
                            const std::vector<int>& object_digests, const SaveRules& rules = {}) {
  std::vector<LocalPlan> locals;
  for (size_t r = 0; r < tensor_digests.size(); ++r) {
    ReplicaDigests digests;
    digests.tensors = {digest(tensor_digests[r])};
    digests.objects = {digest(object_digests[r])};
    const RankPosition position{static_cast<int32_t>(r),
                                static_cast<int32_t>(tensor_digests.size())};
    locals.push_back(
        *make_local_plan(state_of({whole("w", {2})}, {{"o", "12"}}), rules, position, digests));
  }
  return plan_locals(locals, rules);
}

TEST(ReplicaCheck, TakesEqualReplicas) {
  EXPECT_TRUE(plan_of({1, 1, 1}, {2, 2, 2}).ok());
}

TEST(ReplicaCheck, SkipsWhatWasNotCompared) {
  EXPECT_TRUE(plan_of({0, 1, 0, 1}, {0, 0, 0, 0}).ok());
}

TEST(ReplicaCheck, NamesBothRanksAndTheWayOut) {
  EXPECT_FAILURE(plan_of({1, 1, 3}, {2, 2, 2}).status(), StatusCode::kInvalidArgument, "'w'",
                 "rank 0", "rank 2", "rank_local", "verify_replicas=off");
  EXPECT_FAILURE(plan_of({0, 1, 3}, {2, 2, 2}).status(), StatusCode::kInvalidArgument, "'w'",
                 "rank 1", "rank 2");
  const Status status = plan_of({1, 1}, {2, 4}).status();
  EXPECT_FAILURE(status, StatusCode::kInvalidArgument, "'o'", "rank 0", "rank 1", "rank_local");
  EXPECT_EQ(status.detail("tensor"), "o");
}

TEST(ReplicaCheck, IsOffWhenAskedFor) {
  SaveRules rules;
  rules.verify_replicas = VerifyReplicas::kOff;
  EXPECT_TRUE(plan_of({1, 5}, {2, 6}, rules).ok());
}

TEST(ReplicaCheck, ObjectsOfOtherSizeDifferWithoutADigest) {
  std::vector<State> states;
  states.push_back(state_of({}, {{"o", "short"}}));
  states.push_back(state_of({}, {{"o", "much longer"}}));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "'o'", "size", "rank 0",
                 "rank 1");
  SaveRules rules;
  rules.verify_replicas = VerifyReplicas::kOff;
  rules.owner = OwnerRule::kLowestRank;
  EXPECT_EQ(planned(states, rules).catalog.objects[0].size_bytes, 5U);
}

// The size of a state's object is known, 0 too.
TEST(ReplicaCheck, AnEmptyObjectIsNoReplicaOfOneWithBytes) {
  std::vector<State> states;
  states.push_back(state_of({}, {{"o", ""}}));
  states.push_back(state_of({}, {{"o", "12345"}}));
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "'o'", "size", "rank 0",
                 "rank 1");
  SaveRules rules;
  rules.verify_replicas = VerifyReplicas::kOff;
  rules.owner = OwnerRule::kLowestRank;
  EXPECT_EQ(planned(states, rules).catalog.objects[0].size_bytes, 0U);
}

TEST(ReplicaCheck, ObjectsOfOtherContentTypeDiffer) {
  std::vector<State> states;
  for (const char* type : {"application/json", "text/plain"}) {
    ObjectEntry entry = entry_of(Bytes{"o", "1"});
    entry.content_type = type;
    State state;
    ASSERT_TRUE(state.add_objects({entry}).ok());
    states.push_back(std::move(state));
  }
  EXPECT_FAILURE(plan_save(states).status(), StatusCode::kInvalidArgument, "'o'", "content type");
}

}  // namespace
}  // namespace shardwright::plan::test
