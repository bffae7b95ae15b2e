// SPDX-License-Identifier: Apache-2.0
//
// The states of crash_states.h for the formats that a commit leaves done. Then the log is spoiled
// (a sync left out, steps swapped, a name used twice): each mutant must be found. SHW_SOAK=1
// repeats with other random choices.
#include "tests/crash/crash_states.h"

#include <cerrno>

#include "core/storage/posix/system_calls.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

constexpr int kSoakRounds = 20;

// A kernel without rings: threads carry what goes in batches.
class WithoutRing final : public storage::KernelCalls {
 public:
  std::unique_ptr<storage::Ring> open_ring(uint32_t, int* error) override {
    *error = -EPERM;
    return nullptr;
  }
};

TEST_F(CrashStatesTest, NoStateAfterACrashLosesWhatWasCommitted) {
  const int64_t count = is_soak() ? kSoakRounds : kSanitized ? 1 : 2;
  for (int64_t round = 0; round < count; ++round) {
    std::vector<Workload> workloads;
    for (const int32_t ranks : {1, 2, 3, 4})
      workloads.push_back(record(fmt::format("overwrite by {}", ranks), two_worlds(ranks)));
    std::vector<World> sizes;
    sizes.push_back(sizes_world(2, 5));
    sizes.push_back(sizes_world(3, 6));
    workloads.push_back(record("sizes", std::move(sizes)));
    std::vector<World> kept = two_worlds(1);
    kept.push_back(small(2, 3));
    workloads.push_back(record("keeps two generations", std::move(kept), 2));
    workloads.push_back(record_failure_and_gc());
    for (const Workload& workload : workloads) {
      for (const uint64_t sector_bytes : {512, 4096})
        EXPECT_EQ(check(workload, sector_bytes), "") << sector_bytes;
    }
  }
  RecordProperty("states", static_cast<int>(states_));
  EXPECT_GE(states_, kSanitized ? 4'000U : 10'000U);
}

std::vector<World> large_worlds() {
  std::vector<World> worlds;
  worlds.push_back(small(1, 1));
  worlds.push_back(exec::test::make_world(1, 2));
  return worlds;
}

TEST_F(CrashStatesTest, LargeChunksAreWholeOrNotNamed) {
  EXPECT_EQ(check(record("large", large_worlds()), uint64_t{1} << 20), "");
}

TEST_F(CrashStatesTest, LargeChunksAreWholeOrNotNamedThroughEachEngine) {
  constexpr uint64_t kBlockBytes = uint64_t{4} << 20;  // of a request
  const std::vector<std::pair<std::string, std::shared_ptr<storage::SystemCalls>>> engines = {
      {"rings", std::make_shared<storage::KernelCalls>()},
      {"threads", std::make_shared<WithoutRing>()}};
  for (const auto& [name, calls] : engines) {
    const test::TemporaryDirectory directory;
    Recorder recorder(storage::make_posix_storage(directory / "root", calls));
    const Workload workload = record(name, large_worlds(), 1, &recorder);
    EXPECT_FALSE(workload.io_engine.empty());
    EXPECT_TRUE(name == "rings" || workload.io_engine == "threads") << workload.io_engine;
    EXPECT_EQ(check(workload, kBlockBytes), "");
    Workload mutant = workload;
    drop(&mutant.log, find_call(mutant.log, 0, Operation::kCommit, "manifest") + 1,
         Operation::kSync, "rank-");
    EXPECT_NE(check(mutant, kBlockBytes), "")
        << name << ": no write was recorded in front of its sync";
  }
}

// Files that ranks share, made by the coordinator and named by an index.
class SharedFilesTest : public CrashStatesTest {
 protected:
  SharedFilesTest() {
    options_.format = "safetensors";
    options_.max_shard_bytes = 4000;
  }
};

TEST_F(SharedFilesTest, NoStateAfterACrashLosesWhatWasCommitted) {
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
  EXPECT_GE(states_, 400U);
}

// Files beside those of others, in one directory with the index that names them.
class TorchDcpTest : public CrashStatesTest {
 protected:
  TorchDcpTest() { options_.format = "torch-dcp"; }
};

TEST_F(TorchDcpTest, NoStateAfterACrashLosesWhatWasCommitted) {
  std::vector<Workload> workloads;
  for (const int32_t ranks : {1, 2, 3})
    workloads.push_back(record(fmt::format("overwrite by {}", ranks), two_worlds(ranks)));
  std::vector<World> sizes;
  sizes.push_back(sizes_world(2, 5));
  sizes.push_back(sizes_world(3, 6));
  workloads.push_back(record("sizes", std::move(sizes)));
  workloads.push_back(record_failure_and_gc());
  workloads.push_back(record("large", large_worlds()));
  for (const Workload& workload : workloads)
    EXPECT_EQ(check(workload, workload.name == "large" ? uint64_t{1} << 20 : 4096), "");
  RecordProperty("states", static_cast<int>(states_));
  EXPECT_GE(states_, 250U);
}

TEST_F(CrashStatesTest, EveryMutantOfTheProtocolIsFound) {
  const Mutants mutants = {
      {"rank files are not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, "rank-"); }},
      {"one rank's file is not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, "rank-00001"); }},
      {"prefixes are not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSyncPrefix, "ckpt/"); }},
      {"the manifest is not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, "manifest"); }},
      {"the manifest is committed before files are synced",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kCommit, "manifest"),
                     find_call(*log, after, Operation::kSync, "rank-"));
       }},
      {"the old generation goes before the commit",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kRemove, "rank-"),
                     find_call(*log, after, Operation::kCommit, "manifest"));
       }},
      {"the trailer is written after the sync",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kSync, "rank-00000"),
                     find_call(*log, after, Operation::kWrite, "rank-00000"));
       }},
      {"files of the old generation are written over",
       [](auto* log, size_t after) {
         const std::string old_key =
             (*log)[find_call(*log, 0, Operation::kWrite, "rank-00000")].key;
         const std::string new_key =
             (*log)[find_call(*log, after, Operation::kWrite, "rank-00000")].key;
         for (size_t i = after; i < log->size(); ++i) {
           if ((*log)[i].key == new_key) (*log)[i].key = old_key;
         }
       }},
  };
  expect_found(mutants, "manifest");
}

TEST_F(TorchDcpTest, EveryMutantOfTheProtocolIsFound) {
  const Mutants mutants = {
      {"files are not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, ".distcp"); }},
      {"names are not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSyncPrefix, "ckpt"); }},
      {"the index is not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, ".metadata"); }},
      {"the index is committed before files are synced",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kCommit, ".metadata"),
                     find_call(*log, after, Operation::kSync, ".distcp"));
       }},
      {"the old files go before the commit",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kRemove, ".distcp"),
                     find_call(*log, after, Operation::kCommit, ".metadata"));
       }},
  };
  expect_found(mutants, ".metadata");
}

TEST_F(SharedFilesTest, EveryMutantOfTheProtocolIsFound) {
  const Mutants mutants = {
      {"files are not synced",
       [](auto* log, size_t after) {
         // The index, whose name ends otherwise, has a sync of its own.
         const auto spoiled = std::remove_if(
             log->begin() + static_cast<ptrdiff_t>(after), log->end(), [](const LoggedCall& call) {
               return call.operation == Operation::kSync && call.key.ends_with(".safetensors");
             });
         ASSERT_NE(spoiled, log->end());
         log->erase(spoiled, log->end());
       }},
      {"names are not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSyncPrefix, "ckpt"); }},
      {"the index is not synced",
       [](auto* log, size_t after) { drop(log, after, Operation::kSync, "index.json"); }},
      {"the index is committed before files are synced",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kCommit, "index.json"),
                     find_call(*log, after, Operation::kSync, ".safetensors"));
       }},
      {"the old files go before the commit",
       [](auto* log, size_t after) {
         move_before(log, find_call(*log, after, Operation::kRemove, ".safetensors"),
                     find_call(*log, after, Operation::kCommit, "index.json"));
       }},
  };
  expect_found(mutants, "index.json");
}

}  // namespace
}  // namespace shardwright::crash
