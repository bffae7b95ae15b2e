// SPDX-License-Identifier: Apache-2.0
//
// The two engines behind batches of posix storage: which is chosen for a mount, and that a ring
// that gives transfers back short, interrupted or failed ends as plain transfers do. Rings here are
// made of preadv and pwritev, so that the tests need neither io_uring nor direct transfers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/concurrency/buffer_pool.h"
#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::storage {
namespace {

constexpr uint64_t kBlockBytes = 4096;

// What the next transfers give: a part of their bytes, or an errno.
struct Script {
  std::deque<int64_t> answers;  // -errno, or how many bytes to leave out
  int wait_interrupts = 0;
  int transfers = 0;
};

class ScriptedRing final : public Ring {
 public:
  explicit ScriptedRing(Script* script) : script_(script) {}
  int submit(const RingTransfer& transfer) override {
    ++script_->transfers;
    waiting_.push_back(transfer);
    return 0;
  }
  int wait(std::vector<RingResult>* results) override {
    if (script_->wait_interrupts-- > 0) return -EINTR;
    const RingTransfer transfer = waiting_.back();  // the last first: in any order
    waiting_.pop_back();
    int64_t answer = 0;
    if (!script_->answers.empty()) {
      answer = script_->answers.front();
      script_->answers.pop_front();
    }
    results->push_back({transfer.tag, answer < 0 ? answer : carry(transfer, answer)});
    return 0;
  }

 private:
  static int64_t carry(const RingTransfer& transfer, int64_t left_out) {
    const size_t size = transfer.size_bytes - static_cast<size_t>(left_out);
    const auto offset = static_cast<off_t>(transfer.offset);
    const ssize_t done = transfer.is_write
                             ? ::pwrite(transfer.descriptor, transfer.data, size, offset)
                             : ::pread(transfer.descriptor, transfer.data, size, offset);
    return done < 0 ? -errno : done;
  }
  Script* script_;
  std::vector<RingTransfer> waiting_;
};

// Files look as if they could be transferred directly; rings are scripted.
class RingCalls : public KernelCalls {
 public:
  int open_file(const DirectoryName& target, int flags) override {
    return KernelCalls::open_file(target, flags & ~O_DIRECT);
  }
  int64_t read_at(const OpenFile& file, uint64_t offset, std::span<std::byte> data,
                  int flags) override {
    if (flags == RWF_NOWAIT) {
      ++probes;
      return probe_answer;
    }
    return KernelCalls::read_at(file, offset, data, flags);
  }
  std::unique_ptr<Ring> open_ring(uint32_t, int* error) override {
    ++rings;
    *error = ring_error;
    return ring_error == 0 ? std::make_unique<ScriptedRing>(&script) : nullptr;
  }
  Script script;
  int64_t probe_answer = 0;
  int ring_error = 0;
  int probes = 0;
  int rings = 0;
};

class RingTest : public testing::Test {
 protected:
  RingTest() : memory_(*pool_.acquire(4 * kBlockBytes, {})) {
    for (size_t i = 0; i < memory_.bytes().size(); ++i)
      memory_.bytes()[i] = static_cast<std::byte>(i * 7 + i / kBlockBytes);
  }
  std::unique_ptr<StorageObject> open(OpenMode mode) {
    OpenOptions options;
    options.mode = mode;
    options.direct = true;
    auto object = storage_->open("key", options);
    EXPECT_TRUE(object.ok()) << object.status().to_string();
    return std::move(*object);
  }
  std::string engine() {
    const auto object = open(OpenMode::kCreateVisible);
    const auto queue = storage_->open_queue(*object, 4);
    object->abort();
    return queue.ok() ? std::string((*queue)->engine()) : queue.status().to_string();
  }
  // All blocks in one batch; results by block.
  std::vector<Status> batch(StorageObject& object, IoRequest::Operation operation,
                            std::span<std::byte> bytes) {
    auto queue = storage_->open_queue(object, 4);
    EXPECT_TRUE(queue.ok());
    const uint64_t count = (bytes.size() + kBlockBytes - 1) / kBlockBytes;
    for (uint64_t i = 0; i < count; ++i) {
      const auto part = bytes.subspan(
          i * kBlockBytes, std::min<size_t>(kBlockBytes, bytes.size() - i * kBlockBytes));
      (*queue)->submit({operation, &object, i * kBlockBytes, part, i});
    }
    std::vector<IoCompletion> done;
    while (done.size() < count) (*queue)->complete(&done);
    std::vector<Status> results(count);
    for (IoCompletion& each : done) results[each.tag] = std::move(each.status);
    return results;
  }
  void write_all() {
    const auto object = open(OpenMode::kCreateVisible);
    for (const Status& each : batch(*object, IoRequest::Operation::kWrite, memory_.bytes()))
      EXPECT_TRUE(each.ok()) << each.to_string();
    ASSERT_TRUE(object->sync().ok());
    ASSERT_TRUE(object->close().ok());
    const auto found = read_all(*storage_, "key", 1 << 20);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_TRUE(std::ranges::equal(*found, memory_.bytes()));
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<RingCalls> calls_ = std::make_shared<RingCalls>();
  std::unique_ptr<Storage> storage_ = make_posix_storage(directory_ / "root", calls_);
  BufferPool pool_{1 << 20, {}};
  StagingBuffer memory_;
};

TEST_F(RingTest, IsChosenOncePerMountWhereTheFileSystemDoesNotBlock) {
  EXPECT_EQ(engine(), "io_uring");
  EXPECT_EQ(engine(), "io_uring");
  EXPECT_EQ(calls_->probes, 1);
  EXPECT_EQ(calls_->rings, 2);
}

TEST_F(RingTest, GivesWayToThreadsWhereTheFileSystemWouldBlock) {
  calls_->probe_answer = -EOPNOTSUPP;
  EXPECT_EQ(engine(), "threads");
  EXPECT_EQ(engine(), "threads");
  EXPECT_EQ(calls_->probes, 1);
  EXPECT_EQ(calls_->rings, 0);
}

TEST_F(RingTest, GivesWayToThreadsForGoodWhereItIsForbidden) {
  for (const int error : {-EPERM, -ENOSYS}) {
    calls_->rings = 0;
    calls_->ring_error = error;
    storage_ = make_posix_storage(directory_ / "root", calls_);
    EXPECT_EQ(engine(), "threads");
    EXPECT_EQ(engine(), "threads");
    EXPECT_EQ(calls_->rings, 1) << "asked again although it is forbidden";
  }
  write_all();
}

TEST_F(RingTest, IsTriedAgainWhereMemoryWasShort) {
  calls_->ring_error = -ENOMEM;
  EXPECT_EQ(engine(), "threads");
  calls_->ring_error = 0;
  EXPECT_EQ(engine(), "io_uring");
}

TEST_F(RingTest, CarriesAlignedTransfersAndFinishesShortAndInterruptedOnes) {
  calls_->script.answers = {1000, -EINTR, -EAGAIN, 4096};
  calls_->script.wait_interrupts = 2;
  write_all();
  EXPECT_EQ(calls_->script.transfers, 4);
  calls_->script.answers = {-EINVAL, 1, -EOPNOTSUPP, 0};
  const auto object = open(OpenMode::kRead);
  const StagingBuffer found = *pool_.acquire(4 * kBlockBytes, {});
  for (const Status& each : batch(*object, IoRequest::Operation::kRead, found.bytes()))
    EXPECT_TRUE(each.ok()) << each.to_string();
  EXPECT_TRUE(std::ranges::equal(found.bytes(), memory_.bytes()));
  EXPECT_EQ(calls_->script.transfers, 8);
}

TEST_F(RingTest, LeavesWhatIsNotAlignedToTheObject) {
  const auto object = open(OpenMode::kCreateVisible);
  auto queue = storage_->open_queue(*object, 2);
  ASSERT_TRUE(queue.ok());
  (*queue)->submit({IoRequest::Operation::kWrite, object.get(), 1, memory_.bytes().first(100), 9});
  (*queue)->submit(
      {IoRequest::Operation::kWrite, object.get(), 4096, memory_.bytes().subspan(1, 4096), 8});
  std::vector<IoCompletion> done;
  while (done.size() < 2) (*queue)->complete(&done);
  EXPECT_TRUE(done[0].status.ok() && done[1].status.ok());
  EXPECT_EQ(calls_->script.transfers, 0);
  EXPECT_EQ(object->stat()->size_bytes, 8192U);
}

TEST_F(RingTest, TellsFailuresAsPlainTransfersDo) {
  calls_->script.answers = {-ENOSPC};  // of the last, which ends first
  const auto object = open(OpenMode::kCreateVisible);
  const std::vector<Status> results = batch(*object, IoRequest::Operation::kWrite, memory_.bytes());
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[3].code(), StatusCode::kResourceExhausted) << results[3].to_string();
  EXPECT_EQ(results[3].detail("offset"), "12288");
  EXPECT_EQ(results[3].detail("file"), "key");
}

TEST_F(RingTest, SaysWhereAnObjectEnds) {
  write_all();
  const auto object = open(OpenMode::kRead);
  const StagingBuffer found = *pool_.acquire(5 * kBlockBytes, {});
  std::vector<Status> results;
  results = batch(*object, IoRequest::Operation::kRead, found.bytes().first(4 * kBlockBytes));
  EXPECT_TRUE(results[3].ok());
  auto queue = storage_->open_queue(*object, 1);
  (*queue)->submit({IoRequest::Operation::kRead, object.get(), 3 * kBlockBytes,
                    found.bytes().first(2 * kBlockBytes), 0});
  std::vector<IoCompletion> done;
  (*queue)->complete(&done);
  EXPECT_EQ(done[0].status.code(), StatusCode::kOutOfRange) << done[0].status.to_string();
}

TEST_F(RingTest, WritesNothingBehindAFailedSync) {
  class FailedSync final : public RingCalls {
   public:
    int sync_file(const OpenFile&) override { return -EIO; }
  };
  calls_ = std::make_shared<FailedSync>();
  storage_ = make_posix_storage(directory_ / "other", calls_);
  const auto object = open(OpenMode::kCreateVisible);
  EXPECT_TRUE(batch(*object, IoRequest::Operation::kWrite, memory_.bytes())[0].ok());
  EXPECT_FALSE(object->sync().ok());
  EXPECT_FALSE(batch(*object, IoRequest::Operation::kWrite, memory_.bytes())[0].ok());
  EXPECT_EQ(calls_->script.transfers, 4);
}

// Makes the system refuse one call to this process, as containers do.
bool forbid(uint32_t call) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What a batch comes to by the calls of the kernel itself: "" = well, by threads.
std::string write_by_threads(const std::string& path, std::span<std::byte> bytes) {
  const std::unique_ptr<Storage> storage = make_posix_storage(path);
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  options.direct = true;
  const auto object = storage->open("key", options);
  if (!object.ok()) return object.status().to_string();
  const auto queue = storage->open_queue(**object, 1);
  if (!queue.ok()) return queue.status().to_string();
  if ((*queue)->engine() != "threads") return std::string((*queue)->engine());
  (*queue)->submit({IoRequest::Operation::kWrite, object->get(), 0, bytes, 0});
  std::vector<IoCompletion> done;
  (*queue)->complete(&done);
  if (!done[0].status.ok()) return done[0].status.to_string();
  const Status synced = (*object)->sync();
  return synced.ok() ? "" : synced.to_string();
}

// In processes of their own: one may not make rings, the other not use those it has made.
TEST(Rings, ForbiddenByTheSystemMeanThreadsAndNoError) {
  for (const uint32_t call : {uint32_t{SYS_io_uring_setup}, uint32_t{SYS_io_uring_enter}}) {
    test::TemporaryDirectory directory;
    BufferPool pool(1 << 20, {});
    const StagingBuffer memory = *pool.acquire(4 * kBlockBytes, {});
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (!forbid(call)) ::_exit(0);  // a system that knows no filters forbids nothing by them
      const std::string trouble = write_by_threads(directory / "root", memory.bytes());
      std::fputs(trouble.c_str(), stderr);
      ::_exit(trouble.empty() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "without call " << call;
  }
}

// Whether a ring of the kernel reads one block of a file.
bool read_a_block(int descriptor) {
  std::vector<std::byte> block(kBlockBytes);
  int error = 0;
  const std::unique_ptr<Ring> ring = make_kernel_ring(1, &error);
  if (ring == nullptr) return false;
  std::vector<RingResult> results;
  if (ring->submit({descriptor, false, 0, block.data(), kBlockBytes, 0}) != 0) return false;
  while (results.empty()) ring->wait(&results);
  return results[0].count == int64_t{kBlockBytes};
}

// The memory of a ring that ended becomes that of the next, which another thread may use. Nothing
// but the system orders the two here, and a sanitizer of threads sees no system calls.
TEST(Rings, MayBeUsedByOneThreadWhereThatOfAnotherLay) {
  int error = 0;
  if (make_kernel_ring(1, &error) == nullptr) GTEST_SKIP() << "no io_uring here: " << -error;
  test::TemporaryDirectory directory;
  const std::string path = directory / "file";
  std::ofstream(path) << std::string(kBlockBytes, 'x');
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  std::atomic<int> read{0};
  const auto read_as = [&](int turn) {
    while (read.load(std::memory_order_relaxed) != turn) std::this_thread::yield();
    EXPECT_TRUE(read_a_block(descriptor));
    read.store(turn + 1, std::memory_order_relaxed);
  };
  std::thread first(read_as, 0);
  std::thread second(read_as, 1);
  first.join();
  second.join();
  ::close(descriptor);
}

}  // namespace
}  // namespace shardwright::storage
