// SPDX-License-Identifier: Apache-2.0
//
// The states of crash_states.h while entries are taken out of a checkpoint: it has them or has them
// not, whole, and the next save finds nothing in its way. Then the log is spoiled.
#include "tests/crash/crash_states.h"

#include "tests/core/exec/removal_world.h"

namespace shardwright::crash {
namespace {

using Log = std::vector<LoggedCall>;

class RemovalStatesTest : public CrashStatesTest,
                          public testing::WithParamInterface<std::pair<const char*, const char*>> {
 protected:
  RemovalStatesTest() {
    options_.format = GetParam().first;
    options_.lists_digests = options_.format == "megatron";
    commit_ = GetParam().second;
    follow_up_every_ = 1;
  }

  Workload record_removal() {
    Recorder recorder;
    Workload workload{"removal", {}, {std::make_shared<const World>()}, ""};
    World world = exec::test::removal_world(1);
    World left = exec::test::left_of(world);
    left.ranks.resize(world.ranks.size());  // of which none holds anything
    const format::Location location{recorder.storage(), "ckpt"};
    const auto saved = exec::test::save_world(*runtime_, world, location, options_);
    EXPECT_EQ(exec::test::agreed_code(saved), StatusCode::kOk) << exec::test::texts(saved);
    recorder.mark_commits(commit_);
    const auto removed = exec::test::remove_optimizer(*runtime_, location);
    EXPECT_TRUE(removed.ok()) << removed.status().to_string();
    recorder.mark_commits("ckpt/.metadata");
    workload.worlds.push_back(std::make_shared<const World>(std::move(world)));
    workload.worlds.push_back(std::make_shared<const World>(std::move(left)));
    workload.log = recorder.take();
    return workload;
  }
};

TEST_P(RemovalStatesTest, NoStateAfterACrashLosesMoreThanTheEntries) {
  EXPECT_EQ(check(record_removal(), 4096), "");
  RecordProperty("states", static_cast<int>(states_));
  EXPECT_GE(states_, 20U);
}

TEST_P(RemovalStatesTest, EveryMutantOfTheProtocolIsFound) {
  const Workload sound = record_removal();
  const size_t after = find_call(sound.log, 0, Operation::kCommit, ".shardwright.removal");
  ASSERT_LT(after, sound.log.size());
  const Mutants mutants = {
      {"the new index is not synced",
       [](Log* log, size_t from) { drop(log, from, Operation::kSync, "ckpt/.metadata"); }},
      {"files go before the new index is there",
       [](Log* log, size_t from) {
         const size_t index = find_call(*log, from, Operation::kCommit, "ckpt/.metadata");
         move_before(log, find_call(*log, index, Operation::kRemove, ".distcp"), index);
       }},
  };
  expect_found(mutants, sound, after);
}

INSTANTIATE_TEST_SUITE_P(Formats, RemovalStatesTest,
                         testing::Values(std::pair("torch-dcp", ".metadata"),
                                         std::pair("megatron", ".shardwright.publish")),
                         [](const auto& each) {
                           return std::string(each.index == 0 ? "torch_dcp" : "megatron");
                         });

}  // namespace
}  // namespace shardwright::crash
