// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads whose blocks go in batches, through each engine of posix storage: what a sync
// covers has ended before it, failures of single transfers are those of the call, and the least
// budget of memory is enough.
#include <cerrno>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using Operation = storage::StorageEvent::Operation;

class WithoutRing final : public storage::KernelCalls {
 public:
  std::unique_ptr<storage::Ring> open_ring(uint32_t, int* error) override {
    *error = -EPERM;
    return nullptr;
  }
};

// Whether rings may be made or not.
class IoBatches : public testing::TestWithParam<bool> {
 protected:
  static std::shared_ptr<storage::SystemCalls> calls() {
    if (GetParam()) return std::make_shared<storage::KernelCalls>();
    return std::make_shared<WithoutRing>();
  }
  static World large_world(int32_t ranks, uint64_t number) {
    constexpr int64_t kBytes = (13 << 20) + 12345;
    World world;
    world.ranks.resize(static_cast<size_t>(ranks));
    shardwright::test::RandomSource random(number);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      world.tensors.push_back(
          random_dense(random, fmt::format("w{}", rank), DType::kUint8, Dims{kBytes}));
      add_whole(&world.ranks[static_cast<size_t>(rank)], world.tensors.back(), true,
                EntryKind::kSharded);
    }
    return world;
  }

  shardwright::test::TemporaryDirectory directory_;
  std::shared_ptr<storage::Storage> posix_ =
      storage::make_posix_storage(directory_ / "root", calls());
  std::unique_ptr<Runtime> runtime_ = make_runtime();
};

TEST_P(IoBatches, CarryACheckpointAndSayByWhichEngine) {
  const format::Location location{posix_, "ckpt"};
  const World world = large_world(2, 3);
  const auto results = save_world(*runtime_, world, location);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  for (const auto& result : results) {
    const bool known = result->io_engine == "threads" || result->io_engine == "io_uring";
    EXPECT_TRUE(known) << result->io_engine;
    EXPECT_TRUE(GetParam() || result->io_engine == "threads") << result->io_engine;
  }
  EXPECT_TRUE(stores(*runtime_, location, world));
}

TEST_P(IoBatches, NeedNoMoreMemoryThanTwoBlocks) {
  RuntimeOptions options;
  options.threads = 4;
  options.memory_budget = 2 * kWriteBlockBytes;
  const auto small = Runtime::create(options);
  ASSERT_TRUE(small.ok());
  const format::Location location{posix_, "ckpt"};
  const World world = large_world(3, 4);
  const auto results = save_world(**small, world, location);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_TRUE(stores(**small, location, world));
  EXPECT_LE((*small)->staging().peak_bytes(), options.memory_budget);
}

// The record tells of a write when it has ended.
TEST_P(IoBatches, EndBeforeTheSyncThatCoversThem) {
  std::mutex mutex;
  std::map<std::string, uint64_t> written;  // by key, until its sync
  std::map<std::string, uint64_t> synced;
  uint64_t late = 0;
  const std::shared_ptr<storage::Storage> recording =
      storage::make_recording_storage(*posix_, [&](const storage::StorageEvent& event) {
        const std::lock_guard lock(mutex);
        if (event.operation == Operation::kWrite) {
          written[event.key] += event.size_bytes;
          late += synced.contains(event.key) ? 1 : 0;
        }
        if (event.operation == Operation::kSync) synced[event.key] = written[event.key];
      });
  const auto results = save_world(*runtime_, large_world(1, 5), {recording, "ckpt"});
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_EQ(late, 0U);
  uint64_t largest = 0;
  for (const auto& [key, bytes] : synced) largest = std::max(largest, bytes);
  EXPECT_GT(largest, uint64_t{13} << 20) << "the file's blocks, before its sync";
}

TEST_P(IoBatches, FailASaveWithTheFailureOfAnyTransfer) {
  for (int failing = 0; failing < 5; ++failing) {
    std::atomic<int> writes = 0;
    const std::shared_ptr<storage::Storage> faulty = storage::make_fault_storage(
        *posix_, [&](const storage::StorageEvent& event, uint64_t* done_bytes) {
          if (event.operation != Operation::kWrite || writes++ != failing) return Status();
          *done_bytes = 4096;
          return resource_exhausted("disk", "no room");
        });
    const std::string path = fmt::format("ckpt-{}", failing);
    const auto results = save_world(*runtime_, large_world(1, 6), {faulty, path});
    EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted) << texts(results);
    for (const std::string& key : keys_at({posix_, path}))
      EXPECT_TRUE(key.ends_with(".lock")) << key << " was left behind";
  }
}

TEST_P(IoBatches, FailALoadWithTheFailureOfAnyTransfer) {
  const World world = large_world(1, 7);
  const auto saved = save_world(*runtime_, world, {posix_, "ckpt"});
  ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  for (int failing = 0; failing < 6; ++failing) {
    std::atomic<int> reads = 0;
    const std::shared_ptr<storage::Storage> faulty =
        storage::make_fault_storage(*posix_, [&](const storage::StorageEvent& event, uint64_t*) {
          if (event.operation != Operation::kRead || event.size_bytes < (1 << 20)) return Status();
          return reads++ == failing ? unavailable("the server is gone") : Status();
        });
    const testing::AssertionResult read = stores(*runtime_, {faulty, "ckpt"}, world);
    EXPECT_TRUE(reads <= failing || !read) << "read " << failing << " failed";
  }
  EXPECT_TRUE(stores(*runtime_, {posix_, "ckpt"}, world));
}

INSTANTIATE_TEST_SUITE_P(Engines, IoBatches, testing::Bool(), [](const auto& test) {
  return test.param ? "ring_where_allowed" : "threads";
});

}  // namespace
}  // namespace shardwright::exec::test
