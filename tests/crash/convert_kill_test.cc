// SPDX-License-Identifier: Apache-2.0
//
// Processes that are killed while they convert, before a call of the target's storage that is drawn
// from the number of calls that the same conversion takes otherwise; no clock decides. Afterwards
// the source is as it was, the target holds nothing or all, and the same conversion ends what was
// begun. This program is its own victim.
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/exec/convert.h"
#include "core/storage/backends.h"
#include "tests/core/exec/save_world.h"
#include "tests/crash/own_victim.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using exec::Report;
using exec::test::World;
using shardwright::test::is_soak;
using shardwright::test::kSanitized;

constexpr int64_t kKills = 60;
constexpr int64_t kSanitizedKills = 6;  // a process takes long to begin there
constexpr uint64_t kShardBytes = 5'000;
constexpr const char* kVictim = "SHW_CONVERT_VICTIM";  // directory, format, number of the last call

World model() {
  World world;
  world.ranks.resize(2);
  shardwright::test::RandomSource random(3);
  for (const int64_t rows : {40, 1, 7, 90}) {
    world.tensors.push_back(exec::test::random_dense(random, fmt::format("w{}", rows),
                                                     DType::kFloat32, Dims{rows, 33}));
    exec::test::add_whole(&world.ranks[static_cast<size_t>(rows % 2)], world.tensors.back(), true,
                          EntryKind::kSharded);
  }
  return world;
}

// Calls: receives how many calls the target's storage got. The process dies before call `last`.
Result<Report> convert(const std::string& directory, const char* format, int64_t last,
                       int64_t* calls = nullptr) {
  const auto runtime = exec::test::make_runtime(1);
  const std::shared_ptr<storage::Storage> files = storage::make_posix_storage(directory);
  std::atomic<int64_t> count = 0;
  const std::shared_ptr<storage::Storage> target =
      storage::make_fault_storage(*files, [&count, last](const storage::StorageEvent&, uint64_t*) {
        if (++count == last) static_cast<void>(raise(SIGKILL));
        return Status();
      });
  exec::ConvertOptions options;
  options.format = format;
  options.max_shard_bytes = kShardBytes;
  Result<Report> report = exec::convert(*runtime, *runtime, {files, "source"}, {target, "target"},
                                        options, exec::CallContext());
  if (calls != nullptr) *calls = count;
  return report;
}

// Runs the test below in another process. Whether it was killed.
bool dies(const std::string& directory, const char* format, int64_t last) {
  return is_killed_in("ConvertVictim.IsKilled",
                      fmt::format("{}={} {} {}", kVictim, format, last, directory));
}

TEST(ConvertVictim, IsKilled) {
  const char* const settings = std::getenv(kVictim);
  if (settings == nullptr) return;  // in the process that checks there is nothing to do
  const std::string text = settings;
  const size_t first = text.find(' ');
  const size_t second = text.find(' ', first + 1);
  static_cast<void>(convert(text.substr(second + 1), text.substr(0, first).c_str(),
                            std::strtoll(text.c_str() + first, nullptr, 10)));
}

class ConvertKill : public testing::TestWithParam<const char*> {};

TEST_P(ConvertKill, LosesNothingAndGoesOn) {
  const shardwright::test::TemporaryDirectory directory;
  const auto runtime = exec::test::make_runtime(1);
  const World world = model();
  const std::shared_ptr<storage::Storage> files = storage::make_posix_storage(directory.path());
  const format::Location source{files, "source"};
  const format::Location target{files, "target"};
  ASSERT_EQ(exec::test::agreed_code(exec::test::save_world(*runtime, world, source)),
            StatusCode::kOk);
  const auto before = exec::test::contents(source);
  int64_t calls = 0;
  ASSERT_TRUE(convert(directory.path(), GetParam(), 0, &calls).ok());
  const size_t keys = exec::test::keys_at(target).size();
  int64_t went_on = 0;
  const int64_t kills = is_soak() ? calls : std::min(calls, kSanitized ? kSanitizedKills : kKills);
  for (int64_t kill = 0; kill < kills; ++kill) {
    const int64_t last = 1 + kill * calls / kills;
    std::filesystem::remove_all(directory.path() + "/target");
    ASSERT_TRUE(dies(directory.path(), GetParam(), last)) << last;
    const Status opened = exec::Checkpoint::open(*runtime, target).status();
    EXPECT_TRUE(opened.code() == StatusCode::kNotFound ||
                exec::test::stores(*runtime, target, world))
        << last << ": " << opened.to_string();
    const Result<Report> again = convert(directory.path(), GetParam(), 0);
    ASSERT_TRUE(again.ok()) << last << ": " << again.status().to_string();
    for (const std::string& note : again->notes)
      went_on += note.find("earlier") != note.npos ? 1 : 0;
    EXPECT_TRUE(exec::test::stores(*runtime, target, world)) << last;
    // Copies that a journal named may stay until the next save.
    const size_t copies = GetParam() == std::string_view("megatron") ? 2 : 0;
    EXPECT_GE(exec::test::keys_at(target).size(), keys) << last;
    EXPECT_LE(exec::test::keys_at(target).size(), keys + copies) << last;
    EXPECT_TRUE(exec::test::contents(source) == before) << last;
  }
  EXPECT_GT(went_on, kills / 10);
  RecordProperty("kills", static_cast<int>(kills));
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvertKill,
                         testing::Values("native", "safetensors", "torch-dcp", "megatron"),
                         [](const auto& each) {
                           return std::string(each.param == std::string("torch-dcp") ? "torch_dcp"
                                                                                     : each.param);
                         });

}  // namespace
}  // namespace shardwright::crash
