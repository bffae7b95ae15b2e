// SPDX-License-Identifier: Apache-2.0
//
// Saves and gc of one path: gc that meets a save removes nothing, a save that meets gc waits, and
// neither goes on without its part of the fence.
#include "core/exec/path_fence_internal.h"

#include <cerrno>
#include <filesystem>
#include <mutex>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/exec/housekeeping.h"
#include "core/format/native/native_checkpoint.h"
#include "core/storage/posix/system_calls.h"
#include "tests/core/exec/save_world.h"
#include "tests/core/exec/serial_storage.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::FakeClock;
using storage::LockMode;

const std::string kLockKey = "ckpt/.lock";
const std::string kOrphans[] = {"00000000000000000000000000000aaa",
                                "00000000000000000000000000000bbb"};

// Keeps what is logged.
class HeardLog final : public LogSink {
 public:
  LogLevel level() const override { return LogLevel::kInfo; }
  void write(LogLevel, std::string_view, std::string_view message) override {
    const std::lock_guard lock(mutex_);
    text_ += std::string(message) + "\n";
  }
  bool said(std::string_view words) const {
    const std::lock_guard lock(mutex_);
    return text_.find(words) != std::string::npos;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

class PathFence : public testing::Test {
 protected:
  PathFence() {
    RuntimeOptions options;
    options.log = &log_;
    options.threads = 2;
    options.clock = &clock_;
    runtime_ = std::move(*Runtime::create(options));
  }

  Status save(uint64_t number, const SaveOptions& options = {}) {
    return save_world(*runtime_, make_small_world(1, number), location_, options)[0].status();
  }
  Result<Report> collect(bool apply, int64_t grace_ns = -1) {
    return collect_garbage(*runtime_, location_, {apply, grace_ns});
  }
  void put(const std::string& key, std::span<const std::byte> bytes) {
    ASSERT_TRUE(location_.storage->remove(key).ok());
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreate;
    auto object = location_.storage->open(key, create);
    ASSERT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok());
    ASSERT_TRUE((*object)->commit(storage::CommitCondition::kNone, {}).ok());
  }
  void put_orphans() {
    for (const std::string& orphan : kOrphans)
      put("ckpt/" + orphan + "/rank-00000.shw", std::vector<std::byte>(10));
  }
  bool there(const std::string& generation) {
    const std::vector<std::string> keys = keys_at(location_);
    return std::ranges::any_of(
        keys, [&](const std::string& key) { return key.find(generation) != std::string::npos; });
  }
  std::unique_ptr<storage::StorageLock> hold(LockMode mode) {
    auto lock = location_.storage->try_lock(kLockKey, mode);
    EXPECT_TRUE(lock.ok() && *lock != nullptr);
    return std::move(*lock);
  }
  // The rest of the test sees the storage through a hook that is told of each call.
  void watch(std::function<void(const storage::StorageEvent&)> hook) {
    inner_ = location_.storage;
    location_.storage = storage::make_recording_storage(*inner_, std::move(hook));
  }

  FakeClock clock_;
  HeardLog log_;
  std::unique_ptr<Runtime> runtime_;
  shardwright::test::TemporaryDirectory directory_;
  std::shared_ptr<storage::Storage> inner_;
  format::Location location_{storage::make_memory_storage(), "ckpt"};
};

TEST_F(PathFence, ASaveThatMeetsGcWaitsForIt) {
  auto gc = hold(LockMode::kExclusive);
  int waits = 0;
  clock_.on_wait = [&] {
    if (++waits == 3) gc.reset();
  };
  EXPECT_TRUE(save(1).ok());
  EXPECT_EQ(waits, 3);
  EXPECT_TRUE(log_.said("somebody works on it, the save waits"));
  EXPECT_TRUE(log_.said("it is free again, the save goes on"));
  EXPECT_TRUE(stores(*runtime_, location_, make_small_world(1, 1)));
}

TEST_F(PathFence, ASaveThatWaitsForGcEndsWithItsDeadlineAndHasWrittenNothing) {
  const auto gc = hold(LockMode::kExclusive);
  SaveOptions options;
  options.deadline_ns = 3 * kFencePollNs;
  const Status status = save(1, options);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_NE(status.to_string().find("gc"), std::string::npos) << status.to_string();
  EXPECT_TRUE(keys_at(location_).empty());
}

TEST_F(PathFence, ASaveThatWaitsForGcCanBeCancelled) {
  const auto gc = hold(LockMode::kExclusive);
  CancellationFlag flag;
  clock_.on_wait = [&] { flag.cancel(); };
  const World world = make_small_world(1, 1);
  const auto results = save_world(*runtime_, world, [&](int32_t) {
    RankCall call{SaveOptions(), location_, CallContext()};
    call.call.control.cancellation = &flag;
    return call;
  });
  EXPECT_EQ(results[0].status().code(), StatusCode::kCancelled) << texts(results);
}

TEST_F(PathFence, ASaveDoesNotWaitForGcForEver) {
  const auto gc = hold(LockMode::kExclusive);
  const int64_t begin = clock_.monotonic_ns();
  const Status status = save(1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
  EXPECT_TRUE(status.retryable());
  EXPECT_LE(clock_.monotonic_ns() - begin, kMaxFenceWaitNs + kFencePollNs);
}

TEST_F(PathFence, ALockThatCannotBeTakenFailsTheSave) {
  const auto memory = location_.storage;
  location_.storage =
      storage::make_fault_storage(*memory, [](const storage::StorageEvent& event, uint64_t*) {
        return event.operation == storage::StorageEvent::Operation::kLock
                   ? unavailable("the lock service is away")
                   : Status();
      });
  const Status status = save(1);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
  EXPECT_TRUE(keys_at({memory, "ckpt"}).empty());
}

TEST_F(PathFence, GcRemovesNothingWhileASaveRuns) {
  ASSERT_TRUE(save(1).ok());
  put_orphans();
  std::vector<Report> beside;
  watch([&, runs = false](const storage::StorageEvent& event) mutable {
    if (runs || event.operation != storage::StorageEvent::Operation::kCommit) return;
    runs = true;
    const format::Location seen{inner_, "ckpt"};
    beside.push_back(*collect_garbage(*runtime_, seen, {true, -1}));
  });
  ASSERT_TRUE(save(2).ok());
  ASSERT_EQ(beside.size(), 1U);
  EXPECT_TRUE(beside[0].removed.empty());
  EXPECT_NE(beside[0].notes.back().find("a save is running"), std::string::npos);
  EXPECT_TRUE(stores(*runtime_, location_, make_small_world(1, 2)));
  EXPECT_EQ(collect(true)->removed.size(), 2U);
}

TEST_F(PathFence, SavesShareThePath) {
  const auto other = hold(LockMode::kShared);
  EXPECT_TRUE(save(1).ok());
  EXPECT_TRUE(save(2).ok());
  EXPECT_EQ(format::native::list_generations(location_)->size(), 1U)
      << "what a save replaced goes, whoever else saves";
}

TEST_F(PathFence, GcRefusesToRemoveWithoutAManifest) {
  put_orphans();
  for (const bool apply : {false, true}) {
    const Status status = collect(apply).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
    EXPECT_FALSE(status.detail("hint").empty());
  }
  EXPECT_TRUE(there(kOrphans[0]) && there(kOrphans[1]));
}

TEST_F(PathFence, GcStopsWhenTheManifestGoesWhileItWorks) {
  ASSERT_TRUE(save(1).ok());
  put_orphans();
  watch([&](const storage::StorageEvent& event) {
    if (event.operation != storage::StorageEvent::Operation::kRemove) return;
    ASSERT_TRUE(inner_->remove("ckpt/manifest.shw").ok());
  });
  EXPECT_EQ(collect(true).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(there(kOrphans[0]));
  EXPECT_TRUE(there(kOrphans[1]));
}

TEST_F(PathFence, GcLeavesWhatIsCommittedOrAppearsWhileItWorks) {
  ASSERT_TRUE(save(1).ok());
  const auto first = contents(location_);
  const std::string generation = format::native::list_generations(location_)->front().generation;
  ASSERT_TRUE(save(2).ok());
  for (const auto& [key, bytes] : first) {
    if (key.find("manifest") == std::string::npos) put(key, bytes);
  }
  put("ckpt/" + kOrphans[0] + "/rank-00000.shw", std::vector<std::byte>(10));
  ASSERT_EQ(collect(false)->removed.size(), 2U) << "before: nothing is named but the second save";
  watch([&](const storage::StorageEvent& event) {
    if (event.operation != storage::StorageEvent::Operation::kRemove) return;
    std::swap(location_.storage, inner_);
    for (const auto& [key, bytes] : first) {
      if (key.find("manifest") != std::string::npos) put(key, bytes);
    }
    put("ckpt/" + kOrphans[1] + "/rank-00000.shw", std::vector<std::byte>(10));
    std::swap(location_.storage, inner_);
  });
  const Result<Report> report = collect(true);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(there(generation)) << "it was committed before gc came to it";
  EXPECT_TRUE(there(kOrphans[1])) << "it was not there when gc looked";
  EXPECT_FALSE(there(kOrphans[0]));
  EXPECT_TRUE(stores(*runtime_, location_, make_small_world(1, 1)));
}

TEST_F(PathFence, WithoutLocksGcNeedsItsFullGracePeriod) {
  location_.storage = std::make_shared<SerialStorage>();
  ASSERT_TRUE(save(1).ok());
  put_orphans();
  for (const int64_t grace_ns : {int64_t{-1}, int64_t{1}, kGcGraceNs - 1}) {
    const Status status = collect(true, grace_ns).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
    EXPECT_TRUE(there(kOrphans[0]));
  }
  EXPECT_TRUE(collect(false, -1).ok()) << "looking is free";
  EXPECT_TRUE(collect(true, 0).ok());
  EXPECT_TRUE(there(kOrphans[0])) << "it is young";
}

TEST_F(PathFence, ALockFileThatIsRemovedFailsTheCommit) {
  location_.storage = storage::make_posix_storage(directory_.path());
  ASSERT_TRUE(save(1).ok());
  watch([&](const storage::StorageEvent& event) {
    if (event.operation == storage::StorageEvent::Operation::kWrite)
      std::filesystem::remove(directory_ / kLockKey);
  });
  const Status status = save(2);
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  EXPECT_NE(status.to_string().find(".lock"), std::string::npos) << status.to_string();
  EXPECT_TRUE(stores(*runtime_, location_, make_small_world(1, 1)));
  EXPECT_EQ(format::native::list_generations(location_)->size(), 1U);
}

// A server that says of an open file that it is not there.
class LosingCalls final : public storage::KernelCalls {
 public:
  int stat_file(const storage::OpenFile& file, struct stat* out) override {
    if (loses && file.key == "ckpt/manifest.shw") return -ENOENT;
    return KernelCalls::stat_file(file, out);
  }
  bool loses = false;
};

TEST_F(PathFence, AManifestThatCannotBeLookedAtIsNotAMissingOne) {
  const auto calls = std::make_shared<LosingCalls>();
  location_.storage = storage::make_posix_storage(directory_.path(), calls);
  ASSERT_TRUE(save(1).ok());
  put_orphans();
  const auto before = keys_at(location_);
  calls->loses = true;
  EXPECT_EQ(collect(true).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(save(2).code(), StatusCode::kUnavailable);
  calls->loses = false;
  EXPECT_EQ(keys_at(location_), before);
}

}  // namespace
}  // namespace shardwright::exec::test
