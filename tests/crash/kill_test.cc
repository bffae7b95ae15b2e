// SPDX-License-Identifier: Apache-2.0
//
// Victims, one process per rank, are killed while they save, overwrite, save in the background,
// load or collect garbage: a rank, the coordinator, or all of them, before a step that is drawn
// from the number of steps that the same work takes otherwise; no clock decides. Afterwards the
// invariants of state_checker.h hold of what lies there, and the ranks that live on have ended with
// ABORTED or DEADLINE_EXCEEDED and name the one that is gone. SHW_SOAK=1 kills 10,000 times in
// place of 200. Once in the native format; a quarter as often in torch's, whose commit has a file
// of digests more and a directory that it shares with files of others; 200 and 1,000 times in
// Megatron-core's, where what a journal names is put in place behind the commit. There an order
// that is broken on purpose must be found, too.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/crash/crew.h"
#include "tests/crash/state_checker.h"
#include "tests/crash/victim/seam.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using shardwright::test::is_soak;
using shardwright::test::RandomSource;
using shardwright::test::TemporaryDirectory;

constexpr size_t kKills = 200;
constexpr size_t kSoakKills = 10'000;
constexpr size_t kFollowUpEvery = 9;  // kills per I5
constexpr size_t kPartOfTorchs = 4;   // of the kills
constexpr size_t kSoakPartOfMegatrons = 10;
constexpr uint64_t kStrideBeforeCommit = 4;
constexpr uint64_t kStepsToPublish = 60;  // at least, with all that comes behind the commit

// A script with N in the place of the number of its first save, M of its second.
struct Work {
  const char* script;
  int saves;
  bool is_for_new_paths;  // has a meaning where no checkpoint is
  bool is_for_all_formats = true;
};
const std::vector<Work> kWorks = {
    {"save:N", 1, true},
    {"save:N save:M", 2, true},
    {"keep:2 save:N save:M", 2, true, false},
    {"async:N", 1, true},
    {"drop:N", 1, true},
    {"save:N gc", 1, false},
    {"cancel:N load", 1, false},
    {"load async:N load", 1, false},
    {"load", 0, false},
};

class KillTest : public testing::Test {
 protected:
  explicit KillTest(int32_t format = SHW_FORMAT_NATIVE) : format_(format), checker_(format) {}
  size_t wanted_kills() const {
    const size_t all = is_soak() ? kSoakKills : kKills;
    if (format_ == SHW_FORMAT_MEGATRON) return is_soak() ? all / kSoakPartOfMegatrons : all;
    return format_ == SHW_FORMAT_TORCH_DCP ? all / kPartOfTorchs : all;
  }

  // The script for saves from this number on.
  static std::string script_of(const Work& work, uint64_t first) {
    std::string script = work.script;
    for (const auto& [letter, number] : {std::pair{'N', first}, std::pair{'M', first + 1}}) {
      const size_t found = script.find(letter);
      if (found != std::string::npos) script.replace(found, 1, fmt::to_string(number));
    }
    return script;
  }

  // Runs ranks of one job; the settings are those of one rank.
  void run(Crew* crew, const std::string& script, size_t ranks, size_t killed,
           const std::vector<std::string>& settings) {
    std::vector<VictimSettings> all(ranks, {path_, script, {fmt::format("format={}", format_)}});
    all[killed].settings.insert(all[killed].settings.end(), settings.begin(), settings.end());
    crew->start(all);
    crew->run();
    ASSERT_EQ(crew->trouble(), "") << script;
  }

  // Steps of each rank when nobody is killed.
  std::vector<uint64_t> steps_of(const Work& work, size_t ranks) {
    const auto known = steps_.find({work.script, ranks});
    if (known != steps_.end()) return known->second;
    Crew crew;
    run(&crew, script_of(work, next_), ranks, 0, {});
    std::vector<uint64_t> steps;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const VictimOutcome& outcome = crew.outcome(rank);
      for (const OperationReport& each : outcome.reports) {
        const bool may_fail = each.status == SHW_CANCELLED || each.status == SHW_PENDING;
        EXPECT_TRUE(each.status == SHW_OK || may_fail) << work.script << ": " << each.text;
      }
      steps.push_back(outcome.steps.value_or(0));
      EXPECT_GT(steps.back(), 0U) << work.script;
    }
    expect_whole(crew, work, ranks, next_, work.script);
    steps_[{work.script, ranks}] = steps;
    return steps;
  }

  // I1 to I4 and I6 of what lies at the path after work that began with this number.
  void expect_whole(const Crew& crew, const Work& work, size_t ranks, uint64_t first,
                    const std::string& what) {
    Expected expected{{stored_}, stored_ == 0};
    for (int i = 0; i < work.saves; ++i)
      expected.numbers.push_back(first + static_cast<uint64_t>(i));
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (const OperationReport& each : crew.outcome(rank).reports) {
        if (each.status != SHW_OK || each.number < first) continue;
        std::erase_if(expected.numbers, [&](uint64_t other) { return other < each.number; });
        expected.may_be_missing = false;
      }
    }
    uint64_t found = 0;
    EXPECT_EQ(checker_.violation_at(path_, expected, &found), "") << what;
    stored_ = found;
    next_ = first + static_cast<uint64_t>(work.saves);
  }

  // The ranks that were not killed: whoever needed the one that is gone says so.
  static void expect_told(const Crew& crew, size_t ranks, size_t killed, const std::string& what) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (rank == killed) continue;
      EXPECT_TRUE(crew.outcome(rank).steps.has_value()) << what;
      for (const OperationReport& each : crew.outcome(rank).reports) {
        const bool is_told = each.status == SHW_ABORTED || each.status == SHW_DEADLINE_EXCEEDED;
        const bool names_it = each.text.find(fmt::format("rank {}", killed)) != std::string::npos;
        const bool is_other =
            each.status == SHW_OK || each.status == SHW_CANCELLED || each.status == SHW_PENDING;
        EXPECT_TRUE(is_other || (is_told && names_it))
            << what << ": rank " << rank << " ends with " << shw_status_name(each.status) << ": "
            << each.text;
      }
    }
  }

  // One kill; false when the work was done before its step came.
  bool kill_once(const Work& work, size_t ranks, size_t killed, uint64_t step, bool all,
                 bool tear) {
    const std::string script = script_of(work, next_);
    const std::string what = fmt::format("'{}' by {} ranks, {} killed at step {}{}", script, ranks,
                                         all ? "all" : fmt::format("rank {}", killed), step,
                                         tear ? ", its write torn" : "");
    Crew crew;
    run(&crew, script, ranks, killed,
        {fmt::format("kill_at={}", step), fmt::format("kill_all={}", all ? 1 : 0),
         fmt::format("tear={}", tear ? 1 : 0)});
    if (!all) expect_told(crew, ranks, killed, what);
    expect_whole(crew, work, ranks, next_, what);
    return crew.outcome(killed).was_killed;
  }

  void kill_at_random();
  void kill_at_each_step_of_an_overwrite();
  void kill_at_each_step_of_a_first_save();

  void follow_up() {
    EXPECT_EQ(checker_.follow_up_violation(path_, next_), "");
    stored_ = next_++;
  }

  const int32_t format_;
  TemporaryDirectory directory_;
  std::string path_ = directory_ / "a/ckpt";
  StateChecker checker_;
  std::map<std::pair<std::string, size_t>, std::vector<uint64_t>> steps_;
  uint64_t stored_ = 0;  // number at the path, 0 = none
  uint64_t next_ = 1;
};

void KillTest::kill_at_random() {
  RandomSource random;
  const size_t wanted = wanted_kills();
  size_t kills = 0;
  for (size_t tries = 0; kills < wanted && tries < 3 * wanted && !HasFailure(); ++tries) {
    // A first save is killed as well: the path is new from time to time.
    if (random.chance(4)) {
      path_ = directory_ / fmt::format("a{}/b/ckpt", tries);
      stored_ = 0;
    }
    const auto ranks = static_cast<size_t>(random.between(1, 3));
    const Work& work = random.pick(kWorks);
    if (stored_ == 0 && !work.is_for_new_paths) continue;
    if (format_ != SHW_FORMAT_NATIVE && !work.is_for_all_formats) continue;
    const std::vector<uint64_t> steps = steps_of(work, ranks);
    const auto killed = static_cast<size_t>(random.between(0, static_cast<int64_t>(ranks) - 1));
    const auto step = static_cast<uint64_t>(random.between(1, static_cast<int64_t>(steps[killed])));
    const bool all = random.chance(20);
    const bool tear = random.chance(50);
    const bool is_killed = kill_once(work, ranks, killed, step, all, tear);
    kills += is_killed && work.saves > 0 ? 1 : 0;
    if (tries % kFollowUpEvery == 0 && stored_ != 0) follow_up();
  }
  fmt::print("{} kills in saves\n", kills);
  RecordProperty("kills", static_cast<int>(kills));
  EXPECT_EQ(kills, wanted);
}

void KillTest::kill_at_each_step_of_an_overwrite() {
  const Work overwrite{"save:N", 1, true};
  (void)steps_of(overwrite, 1);
  uint64_t first_committed = 0;
  uint64_t step = 1;
  while (!HasFailure()) {
    const uint64_t before = stored_;
    if (!kill_once(overwrite, 1, 0, step, false, false)) break;
    const bool is_committed = stored_ != before;
    if (is_committed && first_committed == 0) first_committed = step;
    EXPECT_TRUE(is_committed || first_committed == 0) << "committed at a step, not at the next";
    // The next one finds nothing left to do, or no kill would come as far as the commit.
    follow_up();
    ++step;
  }
  EXPECT_GT(first_committed, 20U) << "a commit has more steps before it";
  EXPECT_LT(first_committed, step) << "and some after it";
  fmt::print("{} steps, the commit at {}\n", step - 1, first_committed);
}

// Each at a path of its own; in the end the save after the kill puts its checkpoint there.
void KillTest::kill_at_each_step_of_a_first_save() {
  const Work save{"save:N", 1, true};
  bool is_killed = true;
  size_t committed = 0;
  uint64_t stride = 1;
  for (uint64_t step = 1; is_killed && !HasFailure(); step += stride) {
    path_ = directory_ / fmt::format("first{}/ckpt", step);
    stored_ = 0;
    is_killed = kill_once(save, 1, 0, step, false, false);
    committed += stored_ != 0 && is_killed ? 1 : 0;
    stride = is_soak() || stored_ != 0 ? 1 : kStrideBeforeCommit;
    follow_up();
  }
  EXPECT_GT(committed, 0U) << "some steps come behind the commit";
}

TEST_F(KillTest, RandomKillsLoseNothing) {
  kill_at_random();
}

TEST_F(KillTest, AKillBeforeAnyStepOfAnOverwriteLeavesTheOldOrTheNewCheckpoint) {
  kill_at_each_step_of_an_overwrite();
}

class TorchDcpKillTest : public KillTest {
 protected:
  TorchDcpKillTest() : KillTest(SHW_FORMAT_TORCH_DCP) {}
};

TEST_F(TorchDcpKillTest, RandomKillsLoseNothing) {
  kill_at_random();
}

TEST_F(TorchDcpKillTest, AKillBeforeAnyStepOfAnOverwriteLeavesTheOldOrTheNewCheckpoint) {
  kill_at_each_step_of_an_overwrite();
}

// A protocol in another order: the call that is held is done behind another, or never.
struct Mutant {
  const char* name = "";
  uint32_t held = 0;  // SEAM_...
  const char* held_name = "";
  uint32_t until = 0;
  const char* until_name = "";
};

class MegatronKillTest : public KillTest {
 protected:
  MegatronKillTest() : KillTest(SHW_FORMAT_MEGATRON) {}

  // An overwrite in the mutant's order is killed at its last steps, the last one first, down to
  // what comes before the commit. What is wrong after the first kill that leaves something wrong.
  std::string violation_of(const Mutant& mutant) {
    const std::vector<std::string> order = {fmt::format("hold_kind={}", mutant.held),
                                            fmt::format("hold_name={}", mutant.held_name),
                                            fmt::format("until_kind={}", mutant.until),
                                            fmt::format("until_name={}", mutant.until_name)};
    uint64_t steps = 0;
    std::string broken = violation_after(order, 0, &steps);
    EXPECT_GT(steps, kStepsToPublish) << mutant.name;
    for (uint64_t back = 0; broken.empty() && back < std::min(steps, kStepsToPublish); ++back)
      broken = violation_after(order, steps - back, nullptr);
    return broken;
  }

 private:
  // At a path of its own; step 0 kills nothing.
  std::string violation_after(std::vector<std::string> settings, uint64_t step, uint64_t* steps) {
    const uint64_t number = next_;
    next_ += 2;
    path_ = directory_ / fmt::format("mutant{}/ckpt", number);
    const std::string before = checker_.follow_up_violation(path_, number);
    if (!before.empty()) return before;
    settings.push_back(fmt::format("kill_at={}", step));
    Crew crew;
    run(&crew, fmt::format("save:{}", number + 1), 1, 0, settings);
    if (steps != nullptr) *steps = crew.outcome(0).steps.value_or(0);
    uint64_t found = 0;
    return checker_.violation_at(path_, {{number, number + 1}, false}, &found);
  }
};

TEST_F(MegatronKillTest, RandomKillsLoseNothing) {
  kill_at_random();
}

TEST_F(MegatronKillTest, AKillBeforeAnyStepOfAnOverwriteLeavesTheOldOrTheNewCheckpoint) {
  kill_at_each_step_of_an_overwrite();
}

TEST_F(MegatronKillTest, AKillBeforeAnyStepOfAFirstSaveLeavesNothingOrAll) {
  kill_at_each_step_of_a_first_save();
}

TEST_F(MegatronKillTest, EveryMutantOfTheProtocolIsFound) {
  EXPECT_EQ(violation_of({}), "");
  const std::vector<Mutant> mutants = {
      {"the marker stays", SEAM_REMOVE, "*/metadata.json"},
      {"the marker goes when all is in place", SEAM_REMOVE, "*/metadata.json", SEAM_RENAME,
       "*/.metadata"},
      {"the marker is there before the index", SEAM_RENAME, "*/.metadata", SEAM_REMOVE,
       "*/.shardwright.publish"},
      {"the marker is there before the common state", SEAM_RENAME, "*/common.pt", SEAM_REMOVE,
       "*/.shardwright.publish"},
      {"the journal goes before the marker is there", SEAM_RENAME, "*/metadata.json", SEAM_REMOVE,
       "*.distcp"},
  };
  for (const Mutant& mutant : mutants) {
    const std::string broken = violation_of(mutant);
    EXPECT_NE(broken, "") << mutant.name << " was not found";
    fmt::print("{}: {}\n", mutant.name, broken);
  }
}

}  // namespace
}  // namespace shardwright::crash
