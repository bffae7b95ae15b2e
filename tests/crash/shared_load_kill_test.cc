// SPDX-License-Identifier: Apache-2.0
//
// Victims that load together on one machine, and share what they read, or on a machine each, and
// exchange it, are killed before a step that is drawn: one of them, or all. Whoever lives on ends,
// with the bytes that are stored or with an error that names the one that is gone; the next load
// finds everything as it was. Their shared memory has no name, so nothing of it can stay behind.
// SHW_SOAK=1 kills 5,000 times in place of 200.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <shardwright/shardwright.h>

#include "tests/crash/crew.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using shardwright::test::is_soak;
using shardwright::test::RandomSource;
using shardwright::test::TemporaryDirectory;

constexpr size_t kKills = 200;
constexpr size_t kSoakKills = 5'000;
constexpr size_t kRanks = 3;
constexpr const char* kShare = "share:7";  // a number with a large tensor

class SharedLoadKillTest : public testing::Test {
 protected:
  void run(Crew* crew, const char* script, size_t killed,
           const std::vector<std::string>& settings) {
    std::vector<VictimSettings> all(kRanks, {path_, script});
    for (VictimSettings& each : all) each.settings = of_all_;
    all[killed].settings.insert(all[killed].settings.end(), settings.begin(), settings.end());
    crew->start(all);
    crew->run();
    ASSERT_EQ(crew->trouble(), "");
  }

  // Steps of each rank of a load in which nobody is killed.
  std::vector<uint64_t> whole_load() {
    Crew crew;
    run(&crew, kShare, 0, {});
    std::vector<uint64_t> steps;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const VictimOutcome& outcome = crew.outcome(rank);
      EXPECT_EQ(outcome.reports.size(), 1U);
      for (const OperationReport& each : outcome.reports)
        EXPECT_EQ(each.status, SHW_OK) << each.text;
      steps.push_back(outcome.steps.value_or(0));
    }
    return steps;
  }

  static void expect_told(const Crew& crew, size_t killed, const std::string& what) {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      if (rank == killed) continue;
      EXPECT_TRUE(crew.outcome(rank).steps.has_value()) << what;
      for (const OperationReport& each : crew.outcome(rank).reports) {
        const bool is_told = each.status == SHW_ABORTED || each.status == SHW_UNAVAILABLE;
        const bool names_it = each.text.find(fmt::format("rank {}", killed)) != std::string::npos;
        EXPECT_TRUE(each.status == SHW_OK || (is_told && names_it))
            << what << ": rank " << rank << " ends with " << shw_status_name(each.status) << ": "
            << each.text;
        told_ += each.status == SHW_UNAVAILABLE ? 1 : 0;
        failed_ += each.status == SHW_OK ? 0 : 1;
      }
    }
  }

  // Loads of what was saved, of which each has a rank killed.
  void kill_loads(size_t wanted) {
    {
      Crew crew;
      run(&crew, "save:7", 0, {});
    }
    const std::vector<uint64_t> steps = whole_load();
    RandomSource random;
    for (size_t kills = 0; kills < wanted && !HasFailure(); ++kills) {
      const auto killed = static_cast<size_t>(random.between(0, kRanks - 1));
      const auto step =
          static_cast<uint64_t>(random.between(1, static_cast<int64_t>(steps[killed])));
      const bool all = random.chance(10);
      const std::string what =
          fmt::format("{} killed at step {} of {}", all ? "all" : fmt::format("rank {}", killed),
                      step, steps[killed]);
      Crew crew;
      run(&crew, kShare, killed,
          {fmt::format("kill_at={}", step), fmt::format("kill_all={}", all ? 1 : 0)});
      if (!all) expect_told(crew, killed, what);
      if (kills % 20 == 0) {
        EXPECT_EQ(whole_load().size(), kRanks);
      }
    }
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "ckpt";
  std::vector<std::string> of_all_;  // settings of all ranks
  static inline size_t told_ = 0;    // by the end of a process, not by the collective
  static inline size_t failed_ = 0;  // in all
};

TEST_F(SharedLoadKillTest, WhoeverLivesOnHasTheBytesOrNamesTheOneThatIsGone) {
  kill_loads(is_soak() ? kSoakKills : kKills);
  EXPECT_GT(told_, 0U) << "ranks that wait for each other's blocks see the end of a process";
  fmt::print("{} ranks told of the end of a process themselves\n", told_);
}

TEST_F(SharedLoadKillTest, RanksOfSeveralMachinesLikewise) {
  of_all_ = {"apart=1"};
  failed_ = 0;
  kill_loads(is_soak() ? kSoakKills : kKills);
  EXPECT_GT(failed_, 0U) << "ranks that exchange blocks hear of the end of one of them";
  fmt::print("{} ranks of several machines failed\n", failed_);
}

}  // namespace
}  // namespace shardwright::crash
