// SPDX-License-Identifier: Apache-2.0
//
// The states of crash_states.h for directories of Megatron-core, where the commit is not the end:
// what it names is put in place behind it. Readers of ours and readers that know Megatron's files
// alone look at each state. Then the log is spoiled, and each mutant must be found.
#include "tests/crash/crash_states.h"

namespace shardwright::crash {
namespace {

using Log = std::vector<LoggedCall>;

class MegatronTest : public CrashStatesTest {
 protected:
  MegatronTest() {
    options_.format = "megatron";
    commit_ = ".shardwright.publish";
  }
  std::vector<World> two_worlds(int32_t ranks) const override {
    std::vector<World> worlds;
    worlds.push_back(exec::test::make_megatron_world(ranks, 1));
    worlds.push_back(exec::test::make_megatron_world(ranks, 2));
    return worlds;
  }
};

TEST_F(MegatronTest, NoStateAfterACrashLosesWhatWasCommittedOrIsAMixture) {
  std::vector<Workload> workloads;
  for (const int32_t ranks : {1, 2, 3})
    workloads.push_back(record(fmt::format("overwrite by {}", ranks), two_worlds(ranks)));
  std::vector<World> sizes;
  sizes.push_back(sizes_world(2, 5));
  sizes.push_back(sizes_world(3, 6));
  workloads.push_back(record("sizes", std::move(sizes)));
  workloads.push_back(record_failure_and_gc());
  for (const Workload& workload : workloads) EXPECT_EQ(check(workload, 4096), "");
  RecordProperty("states", static_cast<int>(states_));
  EXPECT_GE(states_, 250U);
}

// With integrity.json: what the marker vouches for has the digests that stand there.
TEST_F(MegatronTest, NoStateAfterACrashHasDigestsOfOtherFiles) {
  options_.lists_digests = true;
  for (const int32_t ranks : {1, 2}) {
    const Workload workload = record(fmt::format("overwrite by {}", ranks), two_worlds(ranks));
    EXPECT_EQ(check(workload, 4096), "");
  }
  EXPECT_GE(states_, 100U);
  const Spoil integrity_too_late = [](Log* log, size_t after) {
    const size_t commit = find_call(*log, after, Operation::kCommit, "publish");
    const size_t put = find_call(*log, commit, Operation::kCommit, "ckpt/integrity.json");
    move_before(log, find_call(*log, put, Operation::kCommit, "metadata.json"), put);
  };
  const Mutants mutants = {
      {"the copy of the digests is not synced",
       [](Log* log, size_t after) { drop(log, after, Operation::kSync, "integrity.json."); }},
      {"the marker is there before the digests", integrity_too_late},
  };
  expect_found(mutants, "publish");
}

// Takes the sync of names away that follows a call.
void drop_sync_behind(Log* log, size_t after, Operation operation, std::string_view part) {
  const size_t call = find_call(*log, after, operation, part);
  const size_t sync = find_call(*log, call, Operation::kSyncPrefix, "ckpt");
  ASSERT_LT(sync, log->size()) << "the mutant changes nothing";
  log->erase(log->begin() + static_cast<ptrdiff_t>(sync));
}

TEST_F(MegatronTest, EveryMutantOfTheProtocolIsFound) {
  const auto unsynced = [](const char* part) -> Spoil {
    return [part](Log* log, size_t after) { drop(log, after, Operation::kSync, part); };
  };
  const auto names_unsynced = [](Operation operation, const char* part) -> Spoil {
    return [operation, part](Log* log, size_t after) {
      drop_sync_behind(log, find_call(*log, after, Operation::kCommit, "publish"), operation, part);
    };
  };
  const auto too_early = [](Operation what, const char* part, Operation than,
                            const char* than_part) -> Spoil {
    return [=](Log* log, size_t after) {
      const size_t from = find_call(*log, after, Operation::kOpen, ".distcp");
      const size_t to = find_call(*log, from, than, than_part);
      move_before(log, find_call(*log, to, what, part), to);
    };
  };
  const Mutants mutants = {
      {"files are not synced", unsynced(".distcp")},
      {"names are not synced",
       [](Log* log, size_t after) { drop(log, after, Operation::kSyncPrefix, "ckpt"); }},
      {"the copy of the index is not synced", unsynced(".metadata.")},
      {"the copy of the common state is not synced", unsynced("common.pt.")},
      {"the journal is not synced", unsynced("publish")},
      {"the journal is there before the copies are synced",
       too_early(Operation::kCommit, "publish", Operation::kSync, ".metadata.")},
      {"old files go before the commit",
       too_early(Operation::kRemove, ".distcp", Operation::kCommit, "publish")},
      {"the marker stays",
       [](Log* log, size_t after) { drop(log, after, Operation::kRemove, "metadata.json"); }},
      {"the marker goes before the commit",
       [](Log* log, size_t after) {
         const size_t commit = find_call(*log, after, Operation::kCommit, "publish");
         move_before(log, find_call(*log, commit, Operation::kRemove, "metadata.json"), commit);
       }},
      {"that the marker has gone is not durable",
       names_unsynced(Operation::kRemove, "metadata.json")},
      {"the marker is there before the index",
       [](Log* log, size_t after) {
         const size_t commit = find_call(*log, after, Operation::kCommit, "publish");
         const size_t index = find_call(*log, commit, Operation::kCommit, "ckpt/.metadata");
         move_before(log, find_call(*log, index, Operation::kCommit, "metadata.json"), index);
       }},
      {"the journal goes before the marker is there",
       [](Log* log, size_t after) {
         const size_t commit = find_call(*log, after, Operation::kCommit, "publish");
         const size_t marker = find_call(*log, commit, Operation::kCommit, "metadata.json");
         move_before(log, find_call(*log, marker, Operation::kRemove, "publish"), marker);
       }},
      {"that the journal has gone is not durable", names_unsynced(Operation::kRemove, "publish")},
      {"the new index is not synced",
       [](Log* log, size_t after) {
         const size_t commit = find_call(*log, after, Operation::kCommit, "publish");
         for (size_t i = commit; i < log->size(); ++i) {
           if ((*log)[i].operation != Operation::kSync || !(*log)[i].key.ends_with(".metadata"))
             continue;
           log->erase(log->begin() + static_cast<ptrdiff_t>(i));
           return;
         }
         FAIL() << "the mutant changes nothing";
       }},
  };
  expect_found(mutants, "publish");
}

}  // namespace
}  // namespace shardwright::crash
