// SPDX-License-Identifier: Apache-2.0
//
// Processes that are killed while they take entries out of a checkpoint, before each call of its
// storage; no clock decides. Afterwards the checkpoint is whole, with the entries or without, and
// the same removal ends what was begun. This program is its own victim.
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/core/exec/removal_world.h"
#include "tests/crash/own_victim.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using exec::test::World;
using shardwright::test::kSanitized;

constexpr int64_t kSanitizedKills = 6;                // a process takes long to begin there
constexpr const char* kVictim = "SHW_REMOVE_VICTIM";  // directory, number of the last call

// Calls of the storage. The process dies before call `last`.
int64_t remove_optimizer_of(const std::string& directory, int64_t last) {
  const auto runtime = exec::test::make_runtime(1);
  const std::shared_ptr<storage::Storage> files = storage::make_posix_storage(directory);
  std::atomic<int64_t> count = 0;
  const std::shared_ptr<storage::Storage> counted =
      storage::make_fault_storage(*files, [&count, last](const storage::StorageEvent&, uint64_t*) {
        if (++count == last) static_cast<void>(raise(SIGKILL));
        return Status();
      });
  const auto removed = exec::test::remove_optimizer(*runtime, {counted, "ckpt"});
  EXPECT_TRUE(removed.ok() || removed.status().code() == StatusCode::kNotFound)
      << removed.status().to_string();
  return count;
}

TEST(RemoveVictim, IsKilled) {
  const char* const settings = std::getenv(kVictim);
  if (settings == nullptr) return;  // in the process that checks there is nothing to do
  const std::string text = settings;
  static_cast<void>(
      remove_optimizer_of(text.substr(text.find(' ') + 1), std::strtoll(settings, nullptr, 10)));
}

class RemoveKill : public testing::TestWithParam<const char*> {};

TEST_P(RemoveKill, LosesNothingAndGoesOn) {
  namespace fs = std::filesystem;
  const shardwright::test::TemporaryDirectory directory;
  const auto runtime = exec::test::make_runtime(1);
  const World world = exec::test::removal_world(1);
  const World left = exec::test::left_of(world);
  const std::string model = directory / "model";
  const std::string place = directory / "place";
  exec::SaveOptions options;
  options.format = GetParam();
  options.lists_digests = options.format == "megatron";
  fs::create_directory(model);
  ASSERT_EQ(exec::test::agreed_code(exec::test::save_world(
                *runtime, world, {storage::make_posix_storage(model), "ckpt"}, options)),
            StatusCode::kOk);
  fs::copy(model, place, fs::copy_options::recursive);
  const int64_t calls = remove_optimizer_of(place, 0);
  const format::Location at{storage::make_posix_storage(place), "ckpt"};
  const size_t keys = exec::test::keys_at(at).size();
  const int64_t kills = kSanitized ? std::min(calls, kSanitizedKills) : calls;
  int64_t removed = 0;
  for (int64_t kill = 0; kill < kills; ++kill) {
    const int64_t last = 1 + kill * calls / kills;
    fs::remove_all(place);
    fs::copy(model, place, fs::copy_options::recursive);
    ASSERT_TRUE(
        is_killed_in("RemoveVictim.IsKilled", fmt::format("{}={} {}", kVictim, last, place)));
    const bool is_before = exec::test::lists_optimizer(*runtime, at);
    removed += is_before ? 0 : 1;
    EXPECT_TRUE(exec::test::stores(*runtime, at, is_before ? world : left)) << last;
    static_cast<void>(remove_optimizer_of(place, 0));
    EXPECT_FALSE(exec::test::lists_optimizer(*runtime, at)) << last;
    EXPECT_TRUE(exec::test::stores(*runtime, at, left)) << last;
    EXPECT_EQ(exec::test::keys_at(at).size(), keys) << last;
  }
  EXPECT_GT(removed, 0);
  EXPECT_LT(removed, kills);
}

INSTANTIATE_TEST_SUITE_P(Formats, RemoveKill, testing::Values("torch-dcp", "megatron"),
                         [](const auto& each) {
                           return std::string(each.param == std::string("torch-dcp") ? "torch_dcp"
                                                                                     : each.param);
                         });

}  // namespace
}  // namespace shardwright::crash
