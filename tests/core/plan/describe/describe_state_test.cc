// SPDX-License-Identifier: Apache-2.0
//
// States with layouts: the plans, the failures and the sets of replicas are those of the same
// states described box by box.
#include "core/plan/describe/describe_state.h"
#include "core/plan/options_text.h"

#include "core/integrity/digest.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/local_plan.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/replica_sets.h"
#include "core/plan/wire/catalog_wire.h"
#include "tests/core/plan/describe/random_job.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

// A rank's state of a job, and digests of its entries.
struct RankState {
  State state;
  ReplicaDigests digests;
};

Holding holding_of(const JobEntry& entry, int32_t rank) {
  Holding holding{entry.name, entry.dtype, entry.shape, entry.boxes, entry.kind};
  if (entry.form == JobEntry::Form::kWhole) holding.boxes = {whole_box(entry.shape)};
  if (entry.form == JobEntry::Form::kLayout) {
    const auto pieces = entry.layout->pieces(entry.shape, rank);
    EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
    for (const Piece& piece : *pieces) holding.boxes.push_back(piece.box);
  }
  return holding;
}

// Content digests stand for the name and what the rank holds of it.
Digest128 digest_of(const JobEntry& entry, const Holding& holding) {
  std::string text = entry.name;
  for (const Box& box : holding.boxes) {
    if (entry.kind == EntryKind::kSharded && !box_is_empty(box)) text += box_text(box);
  }
  return integrity::xxh3_128(std::as_bytes(std::span(text)));
}

RankState state_of_rank(const std::vector<JobEntry>& entries, int32_t rank,
                        const SaveRules& rules) {
  RankState made;
  std::vector<TensorEntry> tensors;
  std::vector<ObjectEntry> objects;
  for (const JobEntry& entry : entries) {
    if (entry.form == JobEntry::Form::kObject) {
      objects.push_back(
          entry_of(Bytes{entry.name, std::string(entry.object_bytes, 'x'), entry.kind}));
      objects.back().path = entry.path;
      continue;
    }
    const Holding holding = holding_of(entry, rank);
    TensorEntry tensor = entry_of(holding);
    tensor.path = entry.path;
    tensor.layout = entry.layout;
    tensors.push_back(std::move(tensor));
    made.digests.tensors.push_back(digest_of(entry, holding));
  }
  Status status = made.state.add_tensors(tensors);
  EXPECT_TRUE(status.ok()) << status.to_string();
  status = made.state.add_objects(std::move(objects));
  EXPECT_TRUE(status.ok()) << status.to_string();
  // Only what is needed has a digest.
  ReplicaDigests wanted;
  wanted.tensors.resize(made.state.tensors().size());
  wanted.objects.resize(made.state.objects().size());
  const DigestNeeds needs = replica_digest_needs(made.state, rules);
  for (const DigestNeeds::Tensor& need : needs.tensors)
    wanted.tensors[need.index] = made.digests.tensors[need.index];
  for (const size_t i : needs.objects)
    wanted.objects[i] = integrity::xxh3_128(made.state.objects()[i].bytes);
  made.digests = std::move(wanted);
  return made;
}

// What all ranks of a job say, both ways.
struct BothWays {
  std::vector<LocalPlan> locals;
  std::vector<LocalPlan> by_layouts;
};

BothWays describe_both_ways(std::vector<RankState>& states, const SaveRules& rules) {
  BothWays made;
  for (size_t r = 0; r < states.size(); ++r) {
    const RankPosition position{static_cast<int32_t>(r), static_cast<int32_t>(states.size())};
    auto local = make_local_plan(states[r].state, rules, position, states[r].digests);
    auto local_of_layouts =
        describe_state(states[r].state, rules, position, states[r].digests, save_rules_text(rules));
    EXPECT_TRUE(local.ok()) << local.status().to_string();
    EXPECT_TRUE(local_of_layouts.ok()) << local_of_layouts.status().to_string();
    if (!local.ok() || !local_of_layouts.ok()) return made;
    made.locals.push_back(*std::move(local));
    made.by_layouts.push_back(*std::move(local_of_layouts));
  }
  return made;
}

void expect_same_sets(const std::vector<ReplicaSets>& found,
                      const std::vector<ReplicaSets>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t r = 0; r < found.size(); ++r) {
    ASSERT_EQ(found[r].size(), expected[r].size()) << "rank " << r;
    for (size_t i = 0; i < found[r].size(); ++i) {
      ASSERT_EQ(found[r][i].number, expected[r][i].number);
      ASSERT_EQ(found[r][i].position, expected[r][i].position);
      ASSERT_EQ(found[r][i].size, expected[r][i].size);
      ASSERT_EQ(found[r][i].tensors, expected[r][i].tensors);
      ASSERT_EQ(found[r][i].objects, expected[r][i].objects);
    }
  }
}

// Plans the states both ways; false when both were refused.
bool expect_same_plans(std::vector<RankState>& states, const SaveRules& rules) {
  const BothWays both = describe_both_ways(states, rules);
  if (testing::Test::HasFailure()) return false;
  const Result<RankPlans> ranks = gather(both.by_layouts);
  EXPECT_TRUE(ranks.ok()) << ranks.status().to_string();
  const Result<PlannedSave> expected = plan_locals(both.locals, rules);
  const Result<PlannedSave> plan = global_plan(*ranks, rules);
  EXPECT_EQ(plan.status().to_string(), expected.status().to_string());
  if (!expected.ok() || !plan.ok()) return false;
  expect_equal_plans(*plan, *expected);
  const auto expected_sets = replica_sets(*gather(both.locals));
  const auto sets = replica_sets(*ranks);
  EXPECT_TRUE(sets.ok() && expected_sets.ok());
  expect_same_sets(*sets, *expected_sets);
  return true;
}

std::vector<RankState> states_of(const RandomJob& job, const SaveRules& rules) {
  std::vector<RankState> states;
  for (int32_t r = 0; r < job.ranks; ++r)
    states.push_back(state_of_rank(job.entries[static_cast<size_t>(r)], r, rules));
  return states;
}

TEST(DescribeState, RandomStatesPlanAsTheExplicitPlannerDoes) {
  const int64_t jobs = shardwright::test::rounds(1500, 50000);
  RandomSource starts;
  int64_t planned = 0;
  int64_t refused = 0;
  for (int64_t i = 0; i < jobs && !testing::Test::HasFailure(); ++i) {
    const uint64_t start = starts.next();
    SCOPED_TRACE("job of start " + std::to_string(start));
    RandomSource random(start);
    const RandomJob job = random_job(random);
    SaveRules rules;
    rules.owner = random.chance(25) ? OwnerRule::kLowestRank : OwnerRule::kBalanced;
    if (random.chance(30)) {
      rules.owner = OwnerRule::kExact;
      rules.preset = Preset::kMegatron;
    }
    rules.verify_replicas = random.chance(50)   ? VerifyReplicas::kAll
                            : random.chance(50) ? VerifyReplicas::kAuto
                                                : VerifyReplicas::kOff;
    std::vector<RankState> states = states_of(job, rules);
    // At times one rank has other contents.
    RankState& odd = states[static_cast<size_t>(random.between(0, job.ranks - 1))];
    if (random.chance(20)) {
      for (Digest128& digest : odd.digests.tensors) {
        if (digest != Digest128{} && random.chance(50)) digest[0] ^= std::byte{1};
      }
    }
    (expect_same_plans(states, rules) ? planned : refused) += 1;
  }
  EXPECT_GT(planned, jobs / 2);
  EXPECT_GT(refused, 0);
}

TEST(DescribeState, RanksOfOneMeshSayTheSame) {
  const auto layout = layout_of({{4, 2}, {"dp", "tp"}, {}}, {shard(0), shard(1)});
  std::vector<Digest128> digests;
  for (int32_t r = 0; r < 8; ++r) {
    const RankState rank = state_of_rank({sharded("w", {16, 6}, layout)}, r, {});
    const auto plan = describe_state(rank.state, {}, {r, 8}, {}, "");
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    EXPECT_TRUE(view_of(plan->part).empty());
    digests.push_back(plan->part.description_digest);
  }
  EXPECT_EQ(representative_ranks(digests), std::vector<int32_t>{0});
}

TEST(DescribeState, ALayoutThatDoesNotGiveThePiecesIsNotBelieved) {
  const auto layout = layout_of({{4}, {}, {}}, {shard(0)});
  RankState rank = state_of_rank({sharded("w", {16, 6}, layout)}, 1, {});
  const auto plan = describe_state(rank.state, {}, {2, 4}, {}, "");  // not the rank of the pieces
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->description.forms, std::vector<uint32_t>{kBoxes});
  EXPECT_EQ(plan->part.boxes[0].offset0, 4);
}

// Layouts that contradict each other: both ranks are named.
TEST(DescribeState, ContradictionsNameTheRanks) {
  const auto rows = layout_of({{4}, {}, {}}, {shard(0)});
  const auto columns = layout_of({{4}, {}, {}}, {shard(1)});
  std::vector<RankState> states;
  for (int32_t r = 0; r < 4; ++r)
    states.push_back(state_of_rank({sharded("w", {8, 8}, r == 2 ? columns : rows)}, r, {}));
  const BothWays both = describe_both_ways(states, {});
  const Result<RankPlans> ranks = gather(both.by_layouts);
  ASSERT_TRUE(ranks.ok());
  const Status overlap = global_plan(*ranks, {}).status();
  EXPECT_FAILURE(overlap, StatusCode::kInvalidArgument, "'w'", "rank 2");
  EXPECT_EQ(overlap.to_string(), plan_locals(both.locals, {}).status().to_string());

  states[2] = state_of_rank({sharded("w", {8, 12}, rows)}, 2, {});
  const BothWays shapes = describe_both_ways(states, {});
  EXPECT_FAILURE(global_plan(*gather(shapes.by_layouts), {}).status(), StatusCode::kInvalidArgument,
                 "'w'", "shape", "rank 0", "rank 2");
}

}  // namespace
}  // namespace shardwright::plan::test
