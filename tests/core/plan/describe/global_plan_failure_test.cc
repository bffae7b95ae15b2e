// SPDX-License-Identifier: Apache-2.0
//
// What a global plan refuses: the same as the explicit planner and in its words, and worlds
// that were not put together from what their ranks gave.
#include "tests/core/plan/describe/layout_jobs.h"

namespace shardwright::plan::test {
namespace {

JobEntry whole_entry(std::string name, Dims shape) {
  JobEntry entry;
  entry.name = std::move(name);
  entry.shape = std::move(shape);
  return entry;
}

JobEntry boxes_entry(std::string name, Dims shape, std::vector<Box> boxes) {
  JobEntry entry = whole_entry(std::move(name), std::move(shape));
  entry.form = JobEntry::Form::kBoxes;
  entry.kind = EntryKind::kSharded;
  entry.boxes = std::move(boxes);
  return entry;
}

JobEntry object_entry(std::string name, uint64_t bytes) {
  JobEntry entry;
  entry.name = std::move(name);
  entry.form = JobEntry::Form::kObject;
  entry.object_bytes = bytes;
  return entry;
}

// The job is refused both ways with one text, which holds all of these.
void expect_same_refusal(const Job& job, int32_t ranks,
                         const std::vector<std::string_view>& texts) {
  const Result<RankPlans> world = world_of(job, ranks);
  ASSERT_TRUE(world.ok()) << world.status().to_string();
  const Status expected = explicit_plan(*world, {}).status();
  const Status status = global_plan(*world, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.to_string(), expected.to_string());
  for (const std::string_view text : texts)
    EXPECT_TRUE(shardwright::test::mentions(status, text))
        << "no '" << text << "' in: " << status.to_string();
}

// Ranks 0 and 1 hold the first entry, the others the second.
Job two_sorts(JobEntry first, JobEntry second) {
  return [first = std::move(first), second = std::move(second)](int32_t rank) {
    return std::vector<JobEntry>{rank < 2 ? first : second};
  };
}

TEST(GlobalPlanFailure, RanksThatContradictEachOther) {
  const JobEntry good = whole_entry("w", {4});
  JobEntry other = good;
  other.dtype = DType::kInt8;
  expect_same_refusal(two_sorts(good, other), 4, {"tensor 'w'", "dtype", "rank 0", "rank 2"});
  other = whole_entry("w", {5});
  expect_same_refusal(two_sorts(good, other), 4, {"shape [4] on rank 0 and [5] on rank 2"});
  other = good;
  other.kind = EntryKind::kRankLocal;
  expect_same_refusal(two_sorts(good, other), 4, {"kind replicated", "rank_local on rank 2"});
  other = good;
  other.path = "[\"a\",\"w\"]";
  expect_same_refusal(two_sorts(good, other), 4, {"path"});
  expect_same_refusal(two_sorts(good, object_entry("w", 4)), 4, {"entry 'w'", "object on rank 2"});
}

TEST(GlobalPlanFailure, ReplicasThatDiffer) {
  JobEntry first = whole_entry("w", {4});
  first.digest[0] = std::byte{1};
  JobEntry second = first;
  second.digest[0] = std::byte{2};
  expect_same_refusal(two_sorts(first, second), 4, {"'w' is held by several", "content", "rank 2"});
  expect_same_refusal(two_sorts(object_entry("o", 4), object_entry("o", 5)), 4, {"'o'", "size"});
  JobEntry typed = object_entry("o", 4);
  typed.content_type = "application/json";
  expect_same_refusal(two_sorts(object_entry("o", 4), typed), 4, {"content type"});
  SaveRules off;
  off.verify_replicas = VerifyReplicas::kOff;
  expect_layouts_equal_boxes(two_sorts(first, second), 4, off);
  expect_layouts_equal_boxes(two_sorts(object_entry("o", 4), typed), 4, off);
  expect_layouts_equal_boxes(two_sorts(object_entry("o", 9), object_entry("o", 5)), 4, off);
}

TEST(GlobalPlanFailure, HolesAndOverlaps) {
  const auto half_a_mesh = layout_of({{4}, {}, {0, 1, 2, 3}}, {shard(0)});
  const JobEntry w = sharded("w", {10}, half_a_mesh);
  const Job hole = [&](int32_t rank) {
    return rank == 2 ? std::vector<JobEntry>() : std::vector<JobEntry>{w};
  };
  expect_same_refusal(hole, 4, {"tensor 'w' of shape [10]: no rank holds box"});
  const auto rows = [](int32_t rank, int64_t begin, int64_t count) {
    (void)rank;
    return boxes_entry("r", {6}, {box({begin}, {count})});
  };
  expect_same_refusal(
      [&](int32_t rank) { return std::vector<JobEntry>{rows(rank, 2 * rank, rank == 1 ? 3 : 2)}; },
      3, {"tensor 'r'", "rank 1", "overlaps"});
  expect_same_refusal(
      [&](int32_t rank) { return std::vector<JobEntry>{rows(rank, 2 * rank, rank == 1 ? 1 : 2)}; },
      3, {"no rank holds box [3:4]"});
  expect_same_refusal(
      [&](int32_t) {
        return std::vector<JobEntry>{
            boxes_entry("t", {4}, {box({0}, {2}), box({2}, {2}), box({0}, {2})})};
      },
      2, {"rank 0 lists box [0:2] twice"});
  expect_same_refusal(two_sorts(boxes_entry("n", {4}, {}), boxes_entry("n", {4}, {box({0}, {0})})),
                      4, {"no rank holds box [0:4]"});
}

TEST(GlobalPlanFailure, AReplicatedTensorIsHeldWhole) {
  JobEntry entry = boxes_entry("w", {4}, {box({0}, {2})});
  entry.kind = EntryKind::kReplicated;
  EXPECT_FAILURE(describe({entry}, {1, 2}).status(), StatusCode::kInvalidArgument,
                 "replicated tensor 'w' of rank 1, which must hold all of it", "[2:4]");
  entry.form = JobEntry::Form::kLayout;
  entry.layout = layout_of({{2}, {}, {}}, {shard(0)});
  EXPECT_FAILURE(describe({entry}, {1, 2}).status(), StatusCode::kInvalidArgument, "all of it");
  entry.kind = EntryKind::kRankLocal;
  EXPECT_FAILURE(describe({entry}, {0, 2}).status(), StatusCode::kInvalidArgument, "rank_local");
}

std::vector<LocalPlan> two_locals() {
  std::vector<LocalPlan> locals;
  for (int32_t r = 0; r < 2; ++r) {
    const int64_t at = 2 * r;
    Result<LocalPlan> local =
        describe({boxes_entry("b", {4}, {box({at}, {2})}), whole_entry("w", {3})}, {r, 2});
    EXPECT_TRUE(local.ok()) << local.status().to_string();
    locals.push_back(*std::move(local));
  }
  return locals;
}

Status world_status(const std::vector<LocalPlan>& locals) {
  return gather(locals).status();
}

TEST(GlobalPlanFailure, WorldsThatWereNotPutTogether) {
  EXPECT_TRUE(world_status(two_locals()).ok());
  EXPECT_FAILURE(world_status({}), StatusCode::kInvalidArgument, "0 ranks are not 1 to");
  auto locals = two_locals();
  EXPECT_FAILURE(make_rank_plans(std::vector<Digest128>(2), {}, {}).status(),
                 StatusCode::kInvalidArgument, "0 descriptions for 1 distinct");
  locals[1].part.description_digest[3] ^= std::byte{1};
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 1", "digest");
  locals = two_locals();
  locals[1].part.rank = 0;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 0 gives two parts");
  locals = two_locals();
  locals[1].part.world_size = 3;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 1 of 3");
  locals = two_locals();
  LocalPart nothing;
  nothing.rank = 1;
  nothing.world_size = 2;
  nothing.description_digest = locals[1].part.description_digest;
  locals[1].part = nothing;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "part of rank 1", "missing");
  locals = two_locals();
  locals[1].part.boxes[0].size0 = 3;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 1", "leaves its shape");
  locals = two_locals();
  locals[1].part.boxes[0].tensor = 1;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 1", "box 0");
  locals = two_locals();
  locals[1].part.boxes.push_back({});
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "2 boxes");
  locals = two_locals();
  locals[1].part.more.push_back({});
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "1 further pairs");
  locals = two_locals();
  locals[1].part.lists[0].count = 0xFFFFFFFF;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "rank 1");
  locals = two_locals();
  locals[1].part.lists[0].split_mask = 2;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "do not follow");
  locals = two_locals();
  locals[1].part.lists[0].begin = 1;
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "do not follow");
}

TEST(GlobalPlanFailure, OptionsThatDiffer) {
  std::vector<LocalPlan> locals;
  for (int32_t r = 0; r < 2; ++r) {
    SaveRules rules;
    if (r == 1) rules.owner = OwnerRule::kLowestRank;
    Result<LocalPlan> local = describe({whole_entry("w", {3})}, {r, 2}, rules);
    ASSERT_TRUE(local.ok());
    locals.push_back(*std::move(local));
  }
  EXPECT_FAILURE(world_status(locals), StatusCode::kInvalidArgument, "option 'owner'", "rank 1",
                 "lowest_rank");
}

TEST(GlobalPlan, DigestTellsCatalogsApart) {
  const auto digest_of = [](const Job& job, int32_t ranks, const SaveRules& rules = {}) {
    const Result<PlannedSave> plan = global_plan(job, ranks, rules);
    EXPECT_TRUE(plan.ok()) << plan.status().to_string();
    return plan.ok() ? plan->plan_digest : Digest128{};
  };
  const Job job = two_sorts(whole_entry("w", {4}), whole_entry("w", {4}));
  const auto rows = [](int64_t first) {
    return [first](int32_t rank) {
      return std::vector<JobEntry>{
          boxes_entry("r", {6}, {rank == 0 ? box({0}, {first}) : box({first}, {6 - first})})};
    };
  };
  EXPECT_EQ(digest_of(job, 4), digest_of(job, 4));
  EXPECT_NE(digest_of(rows(2), 2), digest_of(rows(3), 2)) << "only the parts differ";
}

}  // namespace
}  // namespace shardwright::plan::test
