// SPDX-License-Identifier: Apache-2.0
//
// A writer process is killed at random moments of an overwriting save and at each of its steps.
// After every kill the old or the new checkpoint opens, whole, and never an older one than the
// writer has reported as saved. SHW_TEST_KILLS sets the number of random kills (200).
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "core/format/native/native_checkpoint.h"
#include "tests/crash/numbered_world.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;
using shardwright::test::TemporaryDirectory;

// A running writer with the text that it has said so far.
class Writer {
 public:
  Writer(const std::string& directory, int32_t ranks, uint64_t first, const char* pause_at) {
    int output[2];
    int paused[2];
    EXPECT_EQ(pipe(output), 0);
    EXPECT_EQ(pipe(paused), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(output[1], STDOUT_FILENO);
      if (pause_at != nullptr) setenv("SHW_TEST_PAUSE_AT", pause_at, 1);
      setenv("SHW_TEST_PAUSE_FD", fmt::to_string(paused[1]).c_str(), 1);
      const char* program = std::getenv("SHW_SAVE_WRITER");
      execl(program, program, directory.c_str(), fmt::to_string(ranks).c_str(),
            fmt::to_string(first).c_str(), pause_at != nullptr ? "2" : "1000000", nullptr);
      _exit(127);
    }
    close(output[1]);
    close(paused[1]);
    output_ = output[0];
    paused_ = paused[0];
  }
  ~Writer() {
    end();
    close(output_);
    close(paused_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Reads until the writer has said the line; false at its end.
  bool wait_for(std::string_view line) {
    while (text_.find(line) == std::string::npos) {
      if (!read_some(output_)) return false;
    }
    return true;
  }
  // Waits until the writer stands at its pause point; false when it ended before.
  bool wait_for_pause() {
    char byte = 0;
    return read(paused_, &byte, 1) == 1;
  }
  // Kills after a time that begins now; what it says until then is kept.
  void kill_after_ns(int64_t delay_ns) {
    const auto end_time = std::chrono::steady_clock::now() + std::chrono::nanoseconds(delay_ns);
    while (std::chrono::steady_clock::now() < end_time) {
      const auto left = end_time - std::chrono::steady_clock::now();
      const timespec most{0, std::clamp<int64_t>(left.count(), 0, 999'999'999)};
      pollfd ready{output_, POLLIN, 0};
      if (ppoll(&ready, 1, &most, nullptr) > 0 && !read_some(output_)) break;
    }
    end();
  }
  // Kills now, reads the rest.
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    process_ = 0;
    while (read_some(output_)) {
    }
  }
  // Number of the last world that was reported as saved.
  std::optional<uint64_t> last_done() const {
    const size_t found = text_.rfind("done ");
    if (found == std::string::npos) return std::nullopt;
    return std::strtoull(text_.c_str() + found + 5, nullptr, 10);
  }
  const std::string& text() const { return text_; }

 private:
  bool read_some(int descriptor) {
    char buffer[4096];
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count > 0) text_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }
  pid_t process_ = 0;
  int output_ = -1;
  int paused_ = -1;
  std::string text_;
};

class KillTest : public testing::Test {
 protected:
  static constexpr int32_t kRanks = 2;

  // Number of the world at the path, nullopt when there is none; fails the test when it is not whole.
  std::optional<uint64_t> stored_world() {
    const auto opened = Checkpoint::open(*runtime_, location_);
    if (opened.status().code() == StatusCode::kNotFound) return std::nullopt;
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    if (!opened.ok()) return std::nullopt;
    const auto& metadata = (*opened)->opened().metadata();
    const uint64_t number = std::strtoull(metadata.at("number").c_str(), nullptr, 10);
    EXPECT_TRUE(stores(*runtime_, location_, numbered_world(kRanks, number))) << number;
    return number;
  }

  void expect_only_named_files_after_gc() {
    GcOptions collect;
    collect.apply = true;
    collect.grace_ns = -1;
    ASSERT_TRUE(collect_garbage(*runtime_, location_, collect).ok());
    const auto generations = format::native::list_generations(location_);
    ASSERT_TRUE(generations.ok()) << generations.status().to_string();
    ASSERT_EQ(generations->size(), 1U);
    EXPECT_TRUE(generations->front().named);
    EXPECT_TRUE(stored_world().has_value());
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Runtime> runtime_ = make_runtime();
  format::Location location_{storage::make_posix_storage(directory_.path()), "ckpt"};
};

TEST_F(KillTest, RandomKillsDuringOverwriteLoseNothing) {
  const char* wanted = std::getenv("SHW_TEST_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 200;
  RandomSource random;
  // How long three saves take here and now, the large one among them.
  const auto begin = std::chrono::steady_clock::now();
  {
    Writer writer(directory_.path(), kRanks, 1, nullptr);
    ASSERT_TRUE(writer.wait_for("done 4\n")) << writer.text();
  }
  const int64_t span_ns = (std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1);
  uint64_t stored = stored_world().value_or(0);
  ASSERT_GE(stored, 4U);
  int in_flight = 0;
  for (int kill = 0; kill < kills; ++kill) {
    Writer writer(directory_.path(), kRanks, stored + 1, nullptr);
    ASSERT_TRUE(writer.wait_for("ready\n")) << writer.text();
    writer.kill_after_ns(random.between(0, span_ns));
    const uint64_t least = writer.last_done().value_or(stored);
    ASSERT_EQ(writer.text().find("failed"), std::string::npos) << writer.text();
    const std::optional<uint64_t> found = stored_world();
    ASSERT_TRUE(found.has_value()) << "kill " << kill;
    ASSERT_TRUE(*found == least || *found == least + 1)
        << "kill " << kill << ": found " << *found << ", reported " << least;
    if (*found == least + 1) ++in_flight;
    stored = *found;
  }
  RecordProperty("kills", kills);
  RecordProperty("committed_but_not_reported", in_flight);
  expect_only_named_files_after_gc();
}

TEST_F(KillTest, AKillAtAnyStepLeavesTheOldOrTheNewCheckpoint) {
  struct Step {
    const char* name;
    bool committed;
  };
  const Step steps[] = {
      {"target", false},      {"generation", false},     {"create", false},
      {"write", false},       {"index", false},          {"sync", false},
      {"sync_prefix", false}, {"results", false},        {"files", false},
      {"manifest", false},    {"manifest_write", false}, {"commit", false},
      {"outcome", true},      {"cleanup", true},         {"done", true},
  };
  uint64_t stored = 1;
  const auto first = save_world(*runtime_, numbered_world(kRanks, stored), location_, [] {
    SaveOptions options;
    options.metadata["number"] = "1";
    return options;
  }());
  ASSERT_EQ(agreed_code(first), StatusCode::kOk) << texts(first);
  for (const Step& step : steps) {
    Writer writer(directory_.path(), kRanks, stored + 1, step.name);
    ASSERT_TRUE(writer.wait_for_pause()) << step.name << " is never reached: " << writer.text();
    writer.end();
    const std::optional<uint64_t> found = stored_world();
    ASSERT_TRUE(found.has_value()) << step.name;
    EXPECT_EQ(*found, step.committed ? stored + 1 : stored) << step.name;
    stored = *found;
  }
  expect_only_named_files_after_gc();
}

TEST_F(KillTest, AKillDuringTheFirstSaveLeavesNothingOrAll) {
  for (const char* step : {"generation", "create", "sync", "manifest_write", "commit", "outcome"}) {
    Writer writer(directory_.path(), kRanks, 1, step);
    ASSERT_TRUE(writer.wait_for_pause()) << step;
    writer.end();
    EXPECT_EQ(stored_world().has_value(), std::string_view(step) == "outcome") << step;
  }
}

}  // namespace
}  // namespace shardwright::exec::test
