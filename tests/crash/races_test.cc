// SPDX-License-Identifier: Apache-2.0
//
// Processes that save, read and collect garbage with no grace at one path at once. Reads never meet
// damage, and the newest committed checkpoint always opens. Two of them are led through each other
// step by step: one stops, the other goes as far as it is told, or to a lock that the first one
// holds. Then all run as they like, for a number of operations; no clock decides.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/crash/crew.h"
#include "tests/crash/state_checker.h"
#include "tests/crash/victim/seam.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using shardwright::test::is_soak;

namespace fs = std::filesystem;
using shardwright::test::TemporaryDirectory;

constexpr int kSaves = 40;  // of each of two processes that run freely
constexpr int kSoakSaves = 4000;
constexpr uint64_t kLeastSteps = 10;  // of any of these operations

class RacesTest : public testing::Test {
 protected:
  void SetUp() override {
    Crew crew;
    crew.start({{path_, "save:1"}});
    crew.run();
    ASSERT_EQ(crew.trouble(), "");
    stored_ = 1;
  }

  // Something for gc to remove, where it has removed all: copies of the generation that is there,
  // under new names.
  void leave_orphans() {
    std::vector<fs::path> generations;
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.is_directory()) generations.push_back(entry.path());
    }
    if (generations.size() != 1) return;
    for (const char digit : {'0', 'f'}) {
      std::string name = generations[0].filename().string();
      name.replace(16, 6, fmt::format("{:06x}", orphans_++));
      name[0] = digit;
      fs::copy(generations[0], path_ + "/" + name, fs::copy_options::recursive);
    }
  }

  // What all victims may end with here; the numbers of saves that succeeded join the possible ones.
  void expect_fair(const Crew& crew, size_t victims, const std::string& what) {
    Expected expected{{stored_}, false};
    for (size_t i = 0; i < victims; ++i) {
      EXPECT_TRUE(crew.outcome(i).steps.has_value()) << what;
      for (const OperationReport& each : crew.outcome(i).reports) {
        EXPECT_TRUE(each.status == SHW_OK || each.status == SHW_ABORTED)
            << what << ": " << shw_status_name(each.status) << ": " << each.text;
        if (each.status == SHW_OK && each.number > stored_) expected.numbers.push_back(each.number);
      }
    }
    if (expected.numbers.size() > 1) expected.numbers.erase(expected.numbers.begin());
    uint64_t found = 0;
    EXPECT_EQ(checker_.violation_at(path_, expected, &found), "") << what;
    stored_ = found;
  }

  // One process stops before this step and before its first call of a kind, the other before its
  // first call of another kind (0 = nowhere). Each goes on when the other has stopped, ended, or
  // met a lock that is held. False when the first has no such step.
  bool lead(const std::string& first, uint64_t step, uint32_t first_kind, const std::string& second,
            uint32_t second_kind) {
    leave_orphans();
    Crew crew;
    crew.start({{path_,
                 first,
                 {fmt::format("stop_at={}", step), fmt::format("stop_kind={}", first_kind)}}});
    if (!crew.run_until_stopped(0)) {
      crew.run();
      return false;
    }
    crew.start({{path_, second, {fmt::format("stop_kind={}", second_kind)}}});
    crew.run_in_turns(0, 1);
    const std::string what = fmt::format("'{}' stops at {} and call {}, '{}' at call {}", first,
                                         step, first_kind, second, second_kind);
    EXPECT_EQ(crew.trouble(), "") << what;
    expect_fair(crew, 2, what);
    return crew.outcome(0).steps.value_or(0) >= step;
  }

  std::string save() { return fmt::format("save:{}", next_++); }

  // The same for every step of the first.
  void lead_through(const std::string& first, uint32_t first_kind, const std::string& second,
                    uint32_t second_kind) {
    uint64_t step = 1;
    const auto script = [this](const std::string& each) { return each == "save" ? save() : each; };
    while (lead(script(first), step, first_kind, script(second), second_kind) && !HasFailure())
      ++step;
    EXPECT_GT(step, kLeastSteps) << first;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_ / "ckpt";
  StateChecker checker_;
  uint64_t stored_ = 0;
  uint64_t next_ = 1 << 20;
  unsigned orphans_ = 0;
};

constexpr uint32_t kNowhere = 0;

TEST_F(RacesTest, GcAndASave) {
  lead_through("gc", kNowhere, "save", kNowhere);
  lead_through("gc", kNowhere, "save", SEAM_RENAME);
  lead_through("gc", SEAM_REMOVE, "save", SEAM_WRITE);
}

TEST_F(RacesTest, ASaveAndGc) {
  lead_through("save", kNowhere, "gc", kNowhere);
  lead_through("save", kNowhere, "gc", SEAM_REMOVE);
}

TEST_F(RacesTest, AReaderAndASave) {
  lead_through("read", kNowhere, "save", kNowhere);
}

TEST_F(RacesTest, TwoSaves) {
  lead_through("save", kNowhere, "save", kNowhere);
}

TEST_F(RacesTest, SavesReadsAndGcAtOnce) {
  const int saves = is_soak() ? kSoakSaves : kSaves;
  std::string saver[2];
  std::string reader;
  std::string collector;
  for (int i = 0; i < saves; ++i) {
    for (std::string& each : saver) each += save() + " ";
    reader += "read read read ";
    collector += "gc gc ";
  }
  Crew crew;
  for (const std::string& script : {saver[0], saver[1], reader, reader, collector})
    crew.start({{path_, script}});
  crew.run();
  EXPECT_EQ(crew.trouble(), "");
  expect_fair(crew, 5, "all at once");
  size_t counts[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    for (const OperationReport& each : crew.outcome(i).reports)
      if (each.status == SHW_OK) ++counts[i];
  }
  fmt::print("{} and {} of {} saves were committed\n", counts[0], counts[1], saves);
  EXPECT_GT(counts[0] + counts[1], 0U);
}

}  // namespace
}  // namespace shardwright::crash
