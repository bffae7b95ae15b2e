// SPDX-License-Identifier: Apache-2.0
//
// What gc removes and, above all, what it leaves; and the steps of a run.
#include "core/exec/housekeeping.h"

#include <gtest/gtest.h>

#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

const std::string kOrphan = "00000000000000000000000000000abc";

struct GcTest : testing::Test {
  RandomSource random;
  CheckpointFixture fixture;
  Dense truth = random_dense(random, "w", DType::kUint8, {1000});

  void SetUp() override {
    Holding holding;
    add_whole(&holding, truth, true);
    fixture.save_one(holding);
  }

  void add_orphan() {
    const std::vector<std::byte> bytes(300);
    fixture.put("ckpt/" + kOrphan + "/rank-00000.shw", bytes);
  }

  Report collect(bool apply, int64_t grace_ns) {
    Result<Report> report =
        collect_garbage(fixture.runtime(), fixture.location(), {apply, grace_ns});
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? *report : Report();
  }
  bool orphan_is_there() { return !fixture.keys("ckpt/" + kOrphan).empty(); }
};

TEST_F(GcTest, OnlySaysWhatWouldGoUnlessTold) {
  add_orphan();
  const Report report = collect(false, -1);
  ASSERT_EQ(report.removed.size(), 1U);
  EXPECT_EQ(report.removed[0].name, kOrphan);
  EXPECT_EQ(report.removed[0].bytes, 300U);
  EXPECT_TRUE(orphan_is_there());
}

TEST_F(GcTest, RemovesWhatNobodyNamesAndKeepsTheCheckpoint) {
  add_orphan();
  const std::string temporary = "ckpt/" + format::native::temporary_manifest_name(kOrphan);
  fixture.put(temporary, std::vector<std::byte>(10));
  const std::vector<std::string> before = fixture.keys("ckpt/");
  const Report report = collect(true, -1);
  ASSERT_EQ(report.removed.size(), 1U);
  EXPECT_FALSE(orphan_is_there());
  EXPECT_EQ(fixture.keys("ckpt/").size(), before.size() - 2);
  Holding target;
  add_whole(&target, truth, false);
  EXPECT_TRUE(fixture.load_one(target).ok());
  EXPECT_TRUE(holds(target, 0, truth));
  EXPECT_TRUE(collect(true, -1).removed.empty());
}

TEST_F(GcTest, LeavesYoungGenerations) {
  add_orphan();
  EXPECT_TRUE(collect(true, 0).removed.empty());
  EXPECT_TRUE(orphan_is_there());
}

TEST_F(GcTest, LeavesKeptGenerations) {
  Holding holding;
  add_whole(&holding, truth, true);
  SaveOptions options;
  options.keep_generations = 2;
  fixture.save_one(holding, options);
  const std::vector<std::string> before = fixture.keys("ckpt/");
  EXPECT_TRUE(collect(true, -1).removed.empty());
  EXPECT_EQ(fixture.keys("ckpt/"), before);
}

TEST_F(GcTest, RemovesNothingBesideADamagedManifest) {
  add_orphan();
  std::vector<std::byte> manifest = fixture.get("ckpt/manifest.shw");
  manifest[manifest.size() / 2] ^= std::byte{1};
  fixture.put("ckpt/manifest.shw", manifest);
  const std::vector<std::string> before = fixture.keys("ckpt/");
  const Result<Report> report = collect_garbage(fixture.runtime(), fixture.location(), {true, -1});
  EXPECT_EQ(report.status().code(), StatusCode::kDataLoss) << report.status().to_string();
  EXPECT_EQ(fixture.keys("ckpt/"), before);
}

TEST_F(GcTest, SaysWhenThereIsNothing) {
  EXPECT_EQ(collect_garbage(fixture.runtime(), fixture.location("nowhere"), {}).status().code(),
            StatusCode::kNotFound);
}

TEST_F(GcTest, LeavesOtherFilesAlone) {
  fixture.put("ckpt/notes.txt", std::vector<std::byte>(3));
  fixture.put("ckpt/not-a-generation/rank-00000.shw", std::vector<std::byte>(3));
  EXPECT_TRUE(collect(true, -1).removed.empty());
  EXPECT_FALSE(fixture.keys("ckpt/notes.txt").empty());
}

TEST_F(GcTest, ListsTheStepsOfARunAndNamesTheNewestWholeOne) {
  Holding holding;
  add_whole(&holding, truth, true);
  for (const char* step :
       {"run/step-00000200", "run/step-00000030", "run/step-00000400", "run/step-00000500"}) {
    fixture.save({holding.state}, {}, step);
  }
  ASSERT_TRUE(
      fixture.store()->remove("run/step-00000500/manifest.shw").ok());  // crashed before its commit
  for (const std::string& key : fixture.keys("run/step-00000400/")) {
    if (!key.ends_with("rank-00000.shw")) continue;
    std::vector<std::byte> bytes = fixture.get(key);
    bytes.resize(bytes.size() - 1);
    fixture.put(key, bytes);
  }
  const Result<RunInfo> run = list_run(fixture.runtime(), fixture.location("run"));
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  ASSERT_EQ(run->steps.size(), 4U);
  EXPECT_EQ(run->steps[0].step, 30);
  EXPECT_EQ(run->steps[0].state, "whole");
  EXPECT_EQ(run->steps[1].state, "whole");
  EXPECT_EQ(run->steps[2].state, "damaged");
  EXPECT_EQ(run->steps[3].state, "uncommitted");
  EXPECT_NE(run->steps[3].message, "");
  EXPECT_EQ(run->newest_whole, "step-00000200");
  const Result<std::string> newest = newest_whole_step(fixture.runtime(), fixture.location("run"));
  ASSERT_TRUE(newest.ok()) << newest.status().to_string();
  EXPECT_EQ(*newest, "step-00000200");
}

TEST_F(GcTest, NoOlderStepStandsInForOneThatCannotBeLookedAt) {
  Holding holding;
  add_whole(&holding, truth, true);
  for (const char* step : {"run/step-1", "run/step-2", "run/step-3"})
    fixture.save({holding.state}, {}, step);
  ASSERT_TRUE(fixture.store()->remove("run/step-3/manifest.shw").ok());
  const std::shared_ptr<storage::Storage> away = storage::make_fault_storage(
      *fixture.store(), [](const storage::StorageEvent& event, uint64_t*) {
        const bool read = event.key.ends_with("step-2/manifest.shw");
        return read ? unavailable("the storage is away") : Status();
      });
  const Result<std::string> newest = newest_whole_step(fixture.runtime(), {away, "run"});
  EXPECT_EQ(newest.status().code(), StatusCode::kUnavailable) << newest.status().to_string();
  EXPECT_NE(newest.status().to_string().find("step-2"), std::string::npos);
}

TEST_F(GcTest, ARunWithoutAWholeStepSaysWhatIsWrongWithTheNewest) {
  Holding holding;
  add_whole(&holding, truth, true);
  for (const char* step : {"run/step-1", "run/step-2"}) {
    fixture.save({holding.state}, {}, step);
    ASSERT_TRUE(fixture.store()->remove(std::string(step) + "/manifest.shw").ok());
  }
  const Result<std::string> newest = newest_whole_step(fixture.runtime(), fixture.location("run"));
  EXPECT_EQ(newest.status().code(), StatusCode::kNotFound);
  EXPECT_NE(newest.status().to_string().find("none of the 2 steps"), std::string::npos);
  EXPECT_NE(newest.status().to_string().find("the newest, step-2"), std::string::npos);
}

TEST_F(GcTest, ListsStepsOfOneNumberSideBySide) {
  Holding holding;
  add_whole(&holding, truth, true);
  for (const char* step : {"run/step-1", "run/step-00000001"})
    fixture.save({holding.state}, {}, step);
  const Result<RunInfo> run = list_run(fixture.runtime(), fixture.location("run"));
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run->steps.size(), 2U);
}

TEST_F(GcTest, SaysThatADirectoryIsNoRun) {
  EXPECT_EQ(list_run(fixture.runtime(), fixture.location("ckpt")).status().code(),
            StatusCode::kNotFound);
}

}  // namespace
}  // namespace shardwright::exec::test
