// SPDX-License-Identifier: Apache-2.0
//
// Loads of files of which the page cache holds all, a part or nothing, as the kernel says: every
// byte comes and is checked whichever way it takes, and the report says which.
#include <fcntl.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

constexpr int64_t kRows = 5003;
constexpr int64_t kColumns = 2501;

// A kernel whose page cache holds the first bytes of every file.
class CacheOf final : public storage::KernelCalls {
 public:
  int64_t count_cached(const storage::OpenFile&, uint64_t offset, uint64_t size_bytes) override {
    ++asked;
    if (error != 0) return -error;
    const uint64_t end = std::min(offset + size_bytes, cached_end.load());
    return static_cast<int64_t>(end - std::min(end, offset));
  }
  int64_t read_at(const storage::OpenFile& file, uint64_t offset, std::span<std::byte> data,
                  int flags) override {
    if ((flags & RWF_NOWAIT) != 0 && data.size() == 1) {
      ++sampled;
      return offset < cached_end ? 1 : -EAGAIN;
    }
    return KernelCalls::read_at(file, offset, data, flags);
  }

  std::atomic<uint64_t> cached_end = 0;
  std::atomic<uint64_t> asked = 0;
  std::atomic<uint64_t> sampled = 0;
  int error = 0;
};

class CachedRead : public testing::Test {
 protected:
  CachedRead() {
    shardwright::test::RandomSource random;
    truth_ = random_dense(random, "w", DType::kUint8, {kRows, kColumns});
    World world;
    world.ranks.resize(1);
    add_whole(&world.ranks[0], truth_, true, EntryKind::kReplicated);
    world.tensors = {truth_};
    const auto saved = save_world(*runtime_, world, location_);
    EXPECT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  }

  // The whole tensor, or a range of its columns.
  Result<Report> load(Holding* target, LoadOptions options = {}, bool columns = false) {
    if (columns) {
      add_boxes(target, truth_, {{{0, 700}, {kRows, 900}}}, false, EntryKind::kSharded);
    } else {
      add_whole(target, truth_, false);
    }
    CallContext call;
    call.control.end_within(real_clock().monotonic_ns(), int64_t{120} * 1000 * 1000 * 1000);
    const auto alone = collective::make_single_collective();
    return exec::load(*runtime_, location_, *target->state, *alone, options, call);
  }
  std::filesystem::path payload_file() const {
    std::filesystem::path largest;
    for (const auto& each : std::filesystem::recursive_directory_iterator(directory_.path())) {
      const bool larger =
          each.is_regular_file() && (largest.empty() || each.file_size() > file_size(largest));
      if (larger) largest = each.path();
    }
    return largest;
  }

  shardwright::test::TemporaryDirectory directory_;
  std::shared_ptr<CacheOf> cache_ = std::make_shared<CacheOf>();
  std::shared_ptr<storage::Storage> posix_ =
      storage::make_posix_storage(directory_ / "root", cache_);
  std::unique_ptr<Runtime> runtime_ = make_runtime();
  format::Location location_{posix_, "ckpt"};
  Dense truth_;
};

TEST_F(CachedRead, TakesFromTheCacheWhatItHolds) {
  for (const uint64_t end : {uint64_t{0}, uint64_t{6} << 20, UINT64_MAX}) {
    cache_->cached_end = end;
    for (const bool columns : {false, true}) {
      for (const VerifyRule verify : {VerifyRule::kOnRead, VerifyRule::kOff}) {
        LoadOptions options;
        options.verify = verify;
        Holding target;
        const auto report = load(&target, options, columns);
        ASSERT_TRUE(report.ok()) << report.status().to_string();
        EXPECT_TRUE(holds(target, 0, truth_)) << end << columns;
        EXPECT_EQ(report->bytes_cached == 0, end == 0);
        if (end == UINT64_MAX) {
          EXPECT_EQ(report->bytes_cached, report->bytes_read);
        } else {
          EXPECT_LE(report->bytes_cached, end);
        }
      }
    }
  }
}

TEST_F(CachedRead, IsAskedForUnlessThePathIsSaid) {
  cache_->cached_end = UINT64_MAX;
  for (const ReadPath path : {ReadPath::kDirect, ReadPath::kBuffered}) {
    cache_->asked = 0;
    LoadOptions options;
    options.read_path = path;
    Holding target;
    const auto report = load(&target, options);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(holds(target, 0, truth_));
    EXPECT_EQ(cache_->asked, 0U);
    EXPECT_EQ(report->bytes_cached, 0U);
  }
  const auto verified = (*Checkpoint::open(*runtime_, location_))->verify(true, CallContext());
  EXPECT_TRUE(verified.ok());
  EXPECT_EQ(cache_->asked, 0U) << "a deep verification looks at what is stored";
}

// Kernels before 6.5, files of others, file systems without such reads.
TEST_F(CachedRead, IsFoundBySamplesWhereItCannotBeCounted) {
  for (const int error : {ENOSYS, EPERM, EOPNOTSUPP}) {
    for (const uint64_t end : {uint64_t{0}, UINT64_MAX}) {
      cache_->error = error;
      cache_->cached_end = end;
      cache_->sampled = 0;
      Holding target;
      const auto report = load(&target);
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_TRUE(holds(target, 0, truth_));
      EXPECT_GT(cache_->sampled, 0U);
      EXPECT_EQ(report->bytes_cached, end == 0 ? 0 : report->bytes_read);
    }
  }
}

TEST_F(CachedRead, FindsDamageAndCutFiles) {
  cache_->cached_end = UINT64_MAX;
  const std::filesystem::path file = payload_file();
  const int opened = ::open(file.c_str(), O_RDWR);
  ASSERT_GE(opened, 0);
  const auto at = static_cast<off_t>(file_size(file) / 2);
  char byte = 0;
  ASSERT_EQ(::pread(opened, &byte, 1, at), 1);
  const char changed = static_cast<char>(byte ^ 1);
  ASSERT_EQ(::pwrite(opened, &changed, 1, at), 1);
  Holding target;
  Status status = load(&target).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
  EXPECT_NE(file.string().find(status.detail("file")), std::string::npos);
  ASSERT_EQ(::pwrite(opened, &byte, 1, at), 1);

  // Cut while it is being read: behind the opening, which looks at the size.
  const auto checkpoint = Checkpoint::open(*runtime_, location_);
  ASSERT_TRUE(checkpoint.ok());
  Holding first;
  Holding second;
  add_whole(&first, truth_, false);
  const auto plan = plan_load(**checkpoint, *first.state, {}, 0);
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(execute_load(*runtime_, **checkpoint, *plan, *first.state, {}, CallContext()).ok());
  ASSERT_EQ(::ftruncate(opened, at), 0);
  ::close(opened);
  status = execute_load(*runtime_, **checkpoint, *plan, *first.state, {}, CallContext()).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
  EXPECT_NE(file.string().find(status.detail("file")), std::string::npos);
}

// Workers that hold blocks in flight meet ranges that the cache has, which need memory as well.
TEST_F(CachedRead, NeedsNoMoreMemoryThanTwoBlocks) {
  RuntimeOptions least;
  least.threads = 4;
  least.memory_budget = 2 * kWriteBlockBytes;
  runtime_ = *Runtime::create(least);
  for (const uint64_t end : {uint64_t{3} << 20, uint64_t{9} << 20, UINT64_MAX}) {
    cache_->cached_end = end;
    Holding target;
    const auto report = load(&target, {}, true);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(holds(target, 0, truth_));
  }
}

}  // namespace
}  // namespace shardwright::exec::test
