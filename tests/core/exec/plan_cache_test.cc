// SPDX-License-Identifier: Apache-2.0
//
// Saves that repeat what was saved before: 16 bytes per rank, the same plan, and every change seen.
#include "core/exec/plan_cache.h"

#include <gtest/gtest.h>

#include "core/exec/plan_request_internal.h"
#include "core/exec/save_steps_internal.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

constexpr size_t kBatchBytes = 16;

// Sanitizers are slow; there a smaller job shows as much.
constexpr int32_t kManyRanks = shardwright::test::kSanitized ? 512 : 16384;

// All ranks of a job in one thread, moved from exchange to exchange as save() does.
class Job {
 public:
  using States = std::vector<std::shared_ptr<const State>>;
  Job(Runtime& runtime, const States& states, const SaveOptions& options = {}) {
    const auto world_size = static_cast<int32_t>(states.size());
    for (int32_t rank = 0; rank < world_size; ++rank) {
      auto steps = internal::make_save_steps(runtime, states[static_cast<size_t>(rank)], options,
                                             {rank, world_size});
      EXPECT_TRUE(steps.ok()) << steps.status().to_string();
      ranks_.push_back(std::move(*steps));
    }
  }

  // Bytes that the ranks sent, round by round, until each has its reply.
  Result<std::vector<uint64_t>> plan() {
    std::vector<Bytes> requests;
    for (const auto& rank : ranks_) {
      SHW_ASSIGN_OR_RETURN(Bytes request, rank->request(call_));
      requests.push_back(std::move(request));
    }
    std::vector<uint64_t> brought{total(requests)};
    SHW_ASSIGN_OR_RETURN(std::vector<Bytes> replies, ranks_[0]->reply(requests, location_, call_));
    while (internal::asks_again(replies[0])) {
      for (size_t r = 0; r < ranks_.size(); ++r) {
        SHW_ASSIGN_OR_RETURN(requests[r], ranks_[r]->next_request(replies[r]));
      }
      brought.push_back(total(requests));
      SHW_ASSIGN_OR_RETURN(replies, ranks_[0]->reply(requests, location_, call_));
    }
    for (size_t r = 0; r < ranks_.size(); ++r) SHW_RETURN_IF_ERROR(ranks_[r]->take(replies[r]));
    return brought;
  }

  Result<Report> write_and_commit() {
    std::vector<Bytes> results;
    for (const auto& rank : ranks_) {
      SHW_ASSIGN_OR_RETURN(Bytes result, rank->execute(location_, call_));
      results.push_back(std::move(result));
    }
    return ranks_[0]->commit(results, location_, call_);
  }

  format::Location& location() { return location_; }

 private:
  static uint64_t total(const std::vector<Bytes>& parts) {
    uint64_t bytes = 0;
    for (const Bytes& part : parts) bytes += part.size();
    return bytes;
  }

  std::vector<std::unique_ptr<internal::SaveSteps>> ranks_;
  format::Location location_{storage::make_memory_storage(), "ckpt"};
  CallContext call_;
};

TensorView view_of_floats(float* values, int64_t count) {
  TensorView view;
  view.data = reinterpret_cast<std::byte*>(values);
  view.dtype = DType::kFloat32;
  view.shape = Dims{count};
  return view;
}

class PlanCacheTest : public testing::Test {
 protected:
  // Saves and returns what the ranks brought to the meetings.
  std::vector<uint64_t> save(const Job::States& states, const SaveOptions& options = {}) {
    Job job(*runtime_, states, options);
    const auto brought = job.plan();
    EXPECT_TRUE(brought.ok()) << brought.status().to_string();
    const auto report = job.write_and_commit();
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    last_ = job.location();
    return brought.ok() ? *brought : std::vector<uint64_t>();
  }
  testing::AssertionResult last_save_stores(const World& world) {
    return stores(*runtime_, last_, world);
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime();
  format::Location last_;
};

TEST_F(PlanCacheTest, RanksThatSaveTheSameAgainBringSixteenBytesEach) {
  const World world = make_world(4, 1);
  const std::vector<uint64_t> first = save(world.states());
  ASSERT_EQ(first.size(), 1U);
  EXPECT_GT(first[0], 4 * kBatchBytes);
  EXPECT_EQ(save(world.states()), std::vector<uint64_t>{4 * kBatchBytes});
  EXPECT_TRUE(last_save_stores(world));
}

TEST_F(PlanCacheTest, ContentsMayChangeWhenReplicasStayEqual) {
  save(make_world(3, 1).states());
  const World next = make_world(3, 2);  // other values everywhere, of the same sizes
  EXPECT_EQ(save(next.states()), std::vector<uint64_t>{3 * kBatchBytes});
  EXPECT_TRUE(last_save_stores(next));
}

TEST_F(PlanCacheTest, AReplicaThatDiffersIsFoundAndNamed) {
  const World world = make_world(4, 1);
  save(world.states());
  World changed = make_world(4, 1);
  Holding& third = changed.ranks[2];
  const TensorRef bias = third.state->tensors()[1];
  ASSERT_EQ(bias.name, "bias");
  bias.local.data[0] ^= std::byte{1};
  Job job(*runtime_, changed.states());
  const auto brought = job.plan();
  ASSERT_EQ(brought.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(brought.status().message().find("'bias'"), std::string::npos)
      << brought.status().to_string();
  EXPECT_NE(brought.status().message().find("rank 2"), std::string::npos);
}

TEST_F(PlanCacheTest, ADescriptionThatChangedOnOneRankIsPlannedAnew) {
  World world = make_small_world(3, 1);
  save(world.states());
  add_object(&world.ranks[1], "new", "text", EntryKind::kRankLocal);
  const std::vector<uint64_t> brought = save(world.states());
  ASSERT_EQ(brought.size(), 3U);  // checksums, then what ranks add, then the new description
  EXPECT_GT(brought[1], brought[0]);
  EXPECT_TRUE(last_save_stores(world));
  EXPECT_EQ(save(world.states()), std::vector<uint64_t>{3 * kBatchBytes});
}

TEST_F(PlanCacheTest, AnotherDtypeOptionOrWorldSizeIsAnotherPlan) {
  const World world = make_small_world(2, 1);
  save(world.states());
  SaveOptions options;
  options.rules.owner = plan::OwnerRule::kLowestRank;
  EXPECT_GT(save(world.states(), options)[0], 2 * kBatchBytes);
  EXPECT_GT(save(make_small_world(3, 1).states())[0], 3 * kBatchBytes);
  EXPECT_EQ(save(world.states()), std::vector<uint64_t>{2 * kBatchBytes});
}

TEST_F(PlanCacheTest, AWorldThatAFailedSaveLeftIsAsGoodAsAnyOther) {
  const World world = make_small_world(2, 1);
  {
    Job dropped(*runtime_, world.states());
    ASSERT_TRUE(dropped.plan().ok());  // never written: the coordinator keeps nothing, the ranks do
  }
  EXPECT_EQ(save(world.states()).size(), 2U);
  EXPECT_EQ(save(world.states()).size(), 1U);
  EXPECT_TRUE(last_save_stores(world));
}

TEST_F(PlanCacheTest, RemembersEightWorlds) {
  for (uint64_t extra = 0; extra <= PlanCache::kWorldsMax; ++extra)
    save(make_small_world(1 + static_cast<int32_t>(extra), 1).states());
  EXPECT_EQ(save(make_small_world(9, 1).states()), std::vector<uint64_t>{9 * kBatchBytes});
  EXPECT_GT(save(make_small_world(1, 1).states())[0], kBatchBytes);
}

TEST_F(PlanCacheTest, ManyRanksBringSixteenBytesEach) {
  std::vector<float> values(static_cast<size_t>(kManyRanks) + 4);
  Job::States states;
  for (int32_t rank = 0; rank < kManyRanks; ++rank) {
    TensorEntry shard = plain_tensor_entry("w", {});
    shard.kind = EntryKind::kSharded;
    shard.local = view_of_floats(&values[static_cast<size_t>(rank)], 1);
    shard.global_shape = Dims{kManyRanks};
    shard.pieces = {{Box{Dims{rank}, Dims{1}}, 0}};
    TensorEntry bias = plain_tensor_entry("bias", view_of_floats(&values[kManyRanks], 4));
    auto state = std::make_shared<State>();
    ASSERT_TRUE(state->add_tensors({shard, bias}).ok());
    states.push_back(std::move(state));
  }
  EXPECT_GT(save(states)[0], uint64_t{kManyRanks} * 100);
  EXPECT_EQ(save(states), std::vector<uint64_t>{uint64_t{kManyRanks} * kBatchBytes});
}

}  // namespace
}  // namespace shardwright::exec::test
