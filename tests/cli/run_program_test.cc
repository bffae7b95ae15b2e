// SPDX-License-Identifier: Apache-2.0
//
// Directories of Megatron's runs: iterations, the tracker beside them, and one opened by its
// number.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli::test {
namespace {

class RunProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    save("run/iter_0000100");
    save("run/iter_0000200");
    tracker("200\n");
  }

  void tracker(const std::string& text) {
    std::ofstream(path("run/latest_checkpointed_iteration.txt")) << text;
  }
};

TEST_F(RunProgram, ListsIterationsAndWhatTheTrackerNames) {
  for (const std::string command : {"info run", "ls run"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_HAS(outcome.out, "iter_0000100  whole");
    EXPECT_HAS(outcome.out, "iter_0000200  whole, newest whole, latest by the tracker");
    EXPECT_EQ(outcome.out.find("note:"), std::string::npos) << outcome.out;
    const Json json = run_json(command);
    EXPECT_EQ(json["tracker"], "200");
    EXPECT_EQ(json["tracked"], "iter_0000200");
    EXPECT_EQ(json["steps"].size(), 2U);
  }
}

TEST_F(RunProgram, SaysThatTheTrackerNamesWhatIsMissing) {
  tracker("300");
  EXPECT_HAS(run("info run").out, "names iteration 300, which is not here");
  EXPECT_EQ(run_json("info run")["tracked"], "");
  tracker("100");
  EXPECT_HAS(run("info run").out, "goes on from iter_0000100, which is not the newest whole step");
  tracker("release");
  EXPECT_HAS(run("info run").out, "names the directory release");
  std::filesystem::remove_all(path("run/iter_0000100"));
  std::filesystem::remove_all(path("run/iter_0000200"));
  tracker("7");
  EXPECT_HAS(run("info run").out, "names iteration 7, which is not here");
}

TEST_F(RunProgram, AnIterationThatIsNotWholeIsSaidToBe) {
  std::filesystem::resize_file(data_file("run/iter_0000200"), 10);
  std::filesystem::create_directory(path("run/iter_0000300"));
  const Outcome outcome = run("info run");
  EXPECT_HAS(outcome.out, "iter_0000200  damaged, latest by the tracker");
  EXPECT_HAS(outcome.out, "iter_0000300  uncommitted");
  EXPECT_HAS(outcome.out, "newest whole step: iter_0000100");
}

TEST_F(RunProgram, ReadsCheckpointsThatMegatronWrote) {
  const char* const source = std::getenv("SHW_SOURCE_DIR");
  const std::string golden = std::string(source == nullptr ? "." : source) +
                             "/tests/golden/megatron_reshard/gpt_tp2dp2_bf16/ckpt";
  std::filesystem::copy(golden, path("run/iter_0000300"));
  tracker("300");
  EXPECT_HAS(run("info run").out, "iter_0000300  whole, newest whole, latest by the tracker");
  std::filesystem::remove(path("run/iter_0000300/metadata.json"));
  const Outcome cut = run("info run");
  EXPECT_HAS(cut.out, "newest whole step: iter_0000200");
}

TEST_F(RunProgram, ARunThatIsOpenedAsACheckpointIsNamedWithItsIterations) {
  const Outcome outcome = run("verify run");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_HAS(outcome.err, "iter_0000100, iter_0000200");
  EXPECT_HAS(outcome.err, "run/iter_0000200', which latest_checkpointed_iteration.txt names");
}

TEST_F(RunProgram, ATrackerThatIsTooLongIsNone) {
  tracker(std::string(10'000, '7'));
  const Outcome outcome = run("info run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "iter_0000200  whole, newest whole");
  EXPECT_HAS(outcome.out, "which is not here");
  EXPECT_EQ(run_json("info run")["tracked"], "");
}

TEST_F(RunProgram, OpensAStepByItsNumber) {
  EXPECT_HAS(run("info run --step 100").out, "6 in ");
  EXPECT_EQ(run("ls run --iteration 100").out, run("ls run/iter_0000100").out);
  EXPECT_EQ(run("digest run --step 200").out, run("digest ckpt").out);
  EXPECT_EQ(run("verify run/ --step 200").code, 0);
  for (const std::string command : {"info", "ls"}) {
    const Outcome missing = run(command + " run --step 300");
    EXPECT_EQ(missing.code, 2);
    EXPECT_HAS(missing.err, "the run has no step 300");
    EXPECT_HAS(missing.err, "its steps are iter_0000100, iter_0000200");
  }
}

}  // namespace
}  // namespace shardwright::cli::test
