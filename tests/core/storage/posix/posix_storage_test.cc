// SPDX-License-Identifier: Apache-2.0
//
// What posix storage does beyond the interface: links and special files are refused, modes follow
// the umask, temporary names, limits of the system, and direct transfers.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::storage {
namespace {

namespace fs = std::filesystem;

class OldKernel final : public KernelCalls {
 public:
  int open_beneath(int, const char*, int) override { return -ENOSYS; }
};

// Both ways of resolution have to refuse the same things.
class PosixStorage : public testing::TestWithParam<bool> {
 protected:
  PosixStorage() {
    std::shared_ptr<SystemCalls> calls = std::make_shared<KernelCalls>();
    if (GetParam()) calls = std::make_shared<OldKernel>();
    storage_ = make_posix_storage(root_.path(), std::move(calls));
  }
  Storage& storage() { return *storage_; }
  std::string path(std::string_view name) { return root_ / name; }
  void write_file(const std::string& name, std::string_view text) {
    std::ofstream(path(name)) << text;
  }
  Status open_status(std::string_view key, OpenMode mode) {
    OpenOptions options;
    options.mode = mode;
    return storage().open(key, options).status();
  }
  void expect_unsafe(std::string_view key, std::string_view kind) {
    const Status status = open_status(key, OpenMode::kRead);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.to_string();
    EXPECT_EQ(status.detail("unsafe"), kind) << status.to_string();
    EXPECT_EQ(storage().stat(key).status().code(), StatusCode::kPermissionDenied);
  }

 private:
  test::TemporaryDirectory root_;
  std::unique_ptr<Storage> storage_;
};
INSTANTIATE_TEST_SUITE_P(Resolution, PosixStorage, testing::Bool(),
                         [](const auto& test) { return test.param ? "part_by_part" : "openat2"; });

TEST_P(PosixStorage, RefusesALinkAsLastPart) {
  write_file("real", "secret");
  fs::create_symlink("real", path("link"));
  expect_unsafe("link", "symlink");
}

TEST_P(PosixStorage, RefusesALinkOnTheWay) {
  fs::create_directory(path("real"));
  write_file("real/file", "secret");
  fs::create_directory_symlink("real", path("link"));
  const Status status = open_status("link/file", OpenMode::kRead);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.to_string();
  EXPECT_EQ(status.detail("unsafe"), "symlink");
  EXPECT_EQ(open_status("link/new", OpenMode::kCreateVisible).code(),
            StatusCode::kPermissionDenied);
  EXPECT_FALSE(fs::exists(path("real/new")));
}

TEST_P(PosixStorage, WritesNotThroughALinkUnderItsName) {
  write_file("target", "old");
  fs::create_symlink("target", path("link"));
  EXPECT_EQ(open_status("link", OpenMode::kCreateVisible).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(fs::file_size(path("target")), 3U);
}

TEST_P(PosixStorage, RefusesSpecialFilesWithoutBlocking) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  expect_unsafe("fifo", "special file");
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", path("socket").c_str());
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  expect_unsafe("socket", "special file");
  close(server);
}

TEST_P(PosixStorage, ListsNeitherLinksNorSpecialFiles) {
  write_file("file", "x");
  fs::create_symlink("file", path("link"));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  std::vector<std::string> keys;
  ASSERT_TRUE(storage()
                  .list("", kNoDelimiter,
                        [&](const ListEntry& entry) {
                          keys.push_back(entry.key);
                          return Status();
                        })
                  .ok());
  EXPECT_EQ(keys, std::vector<std::string>{"file"});
}

TEST_P(PosixStorage, NamesTheLimitOfANameThatIsTooLong) {
  const Status status = open_status(std::string(300, 'x'), OpenMode::kCreateVisible);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  EXPECT_EQ(status.detail("limit"), "255");
  std::string deep = "d";
  for (int part = 0; part < 100; ++part) deep += "/" + std::string(60, 'y');
  EXPECT_EQ(storage().stat(deep).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(PosixStorage, SaysThatAPartOfThePathIsAFile) {
  write_file("file", "x");
  EXPECT_EQ(open_status("file/below", OpenMode::kCreateVisible).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(storage().stat("file/below").status().code(), StatusCode::kInvalidArgument);
}

TEST_P(PosixStorage, MakesMissingDirectoriesOnTheWay) {
  EXPECT_TRUE(open_status("a/b/c", OpenMode::kCreateVisible).ok());
  EXPECT_TRUE(fs::is_directory(path("a/b")));
}

TEST_P(PosixStorage, GivesNewFilesTheModeOfTheUmaskOrTheOneAskedFor) {
  const mode_t before = umask(0027);
  EXPECT_TRUE(open_status("dir/plain", OpenMode::kCreateVisible).ok());
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  options.file_mode = 0664;
  EXPECT_TRUE(storage().open("dir/asked", options).ok());
  umask(before);
  EXPECT_EQ(fs::status(path("dir/plain")).permissions(), static_cast<fs::perms>(0640));
  EXPECT_EQ(fs::status(path("dir/asked")).permissions(), static_cast<fs::perms>(0664));
  EXPECT_EQ(fs::status(path("dir")).permissions(), static_cast<fs::perms>(0750));
}

TEST_P(PosixStorage, UsesTheTemporaryNameOfTheCallerAndLeavesTheRestAlone) {
  OpenOptions options;
  options.mode = OpenMode::kCreate;
  options.temporary_suffix = "0123";
  Result<std::unique_ptr<StorageObject>> object = storage().open("manifest", options);
  ASSERT_TRUE(object.ok());
  EXPECT_TRUE(fs::exists(path("manifest.0123")));
  EXPECT_EQ(open_status("manifest", OpenMode::kRead).code(), StatusCode::kNotFound);
  EXPECT_EQ(storage().open("manifest", options).status().code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE((*object)->commit(CommitCondition::kNone, {}).ok());
  EXPECT_FALSE(fs::exists(path("manifest.0123")));
  EXPECT_TRUE(fs::exists(path("manifest")));
  options.temporary_suffix = "a/b";
  EXPECT_EQ(storage().open("manifest", options).status().code(), StatusCode::kInvalidArgument);
}

TEST(PosixRoot, MayBeALinkAndNeedNotExist) {
  const test::TemporaryDirectory directory;
  fs::create_directory(directory / "real");
  fs::create_directory_symlink("real", directory / "link");
  const auto storage = make_posix_storage(directory / "link/new/root");
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  ASSERT_TRUE(storage->open("key", options).ok());
  EXPECT_TRUE(fs::exists(directory / "real/new/root/key"));
}

TEST(PosixRoot, ThatIsAFileIsReadUnderTheEmptyKey) {
  const test::TemporaryDirectory directory;
  std::ofstream(directory / "file") << "text";
  const auto storage = make_posix_storage(directory / "file");
  EXPECT_EQ(storage->stat("")->size_bytes, 4U);
  EXPECT_EQ(read_all(*storage, "", 10)->size(), 4U);
  EXPECT_EQ(storage->stat("below").status().code(), StatusCode::kInvalidArgument);
}

TEST(PosixRoot, IsTiedToTheWorkingDirectoryOfItsBirth) {
  const test::TemporaryDirectory directory;
  const fs::path before = fs::current_path();
  fs::current_path(directory.path());
  const auto storage = make_posix_storage("relative");
  fs::current_path(before);
  ASSERT_TRUE(storage->create_prefix("p").ok());
  EXPECT_TRUE(fs::is_directory(directory / "relative/p"));
}

TEST(PosixRoot, TellsWhenNothingMayBeWrittenThere) {
  const test::TemporaryDirectory directory;
  fs::permissions(directory.path(), static_cast<fs::perms>(0555));
  const auto storage = make_posix_storage(directory.path());
  const bool is_root = geteuid() == 0;
  // Root may write everywhere, so the test becomes nobody for a moment.
  ASSERT_EQ(is_root ? seteuid(65534) : 0, 0);
  const Status status = storage->create_prefix("p");
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.to_string();
  EXPECT_EQ(status.detail("errno"), std::to_string(EACCES));
}

class PosixLocks : public testing::Test {
 protected:
  std::unique_ptr<StorageLock> lock(LockMode mode) {
    auto taken = storage_->try_lock("dir/.lock", mode);
    EXPECT_TRUE(taken.ok()) << taken.status().to_string();
    return taken.ok() ? std::move(*taken) : nullptr;
  }
  test::TemporaryDirectory directory_;
  std::unique_ptr<Storage> storage_ = make_posix_storage(directory_.path());
};

TEST_F(PosixLocks, SayWhenTheirFileIsGoneOrAnother) {
  const auto held = lock(LockMode::kShared);
  ASSERT_NE(held, nullptr);
  EXPECT_TRUE(held->check().ok());
  fs::rename(directory_ / "dir/.lock", directory_ / "dir/aside");
  EXPECT_EQ(held->check().code(), StatusCode::kAborted);
  const auto other = lock(LockMode::kExclusive);
  EXPECT_NE(other, nullptr) << "the name is that of another file now";
  EXPECT_EQ(held->check().code(), StatusCode::kAborted);
  EXPECT_TRUE(other->check().ok());
  fs::remove_all(directory_ / "dir");
  EXPECT_EQ(other->check().code(), StatusCode::kAborted);
}

// Removes the lock file once, between its opening and its locking.
class RemovingCalls final : public KernelCalls {
 public:
  int lock_file(const OpenFile& file, int operation) override {
    if (!path.empty()) fs::remove(std::exchange(path, ""));
    return KernelCalls::lock_file(file, operation);
  }
  std::string path;
};

TEST_F(PosixLocks, AreOfTheFileThatLiesUnderTheName) {
  const auto calls = std::make_shared<RemovingCalls>();
  storage_ = make_posix_storage(directory_.path(), calls);
  calls->path = directory_ / "dir/.lock";
  const auto held = lock(LockMode::kExclusive);
  ASSERT_NE(held, nullptr);
  EXPECT_TRUE(held->check().ok());
  EXPECT_EQ(lock(LockMode::kShared), nullptr);
}

TEST_F(PosixLocks, AreSharedByUsersWhoMayOnlyReadTheFile) {
  ASSERT_NE(lock(LockMode::kShared), nullptr);
  ASSERT_EQ(::chmod((directory_ / "dir/.lock").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(std::string(directory_.path()).c_str(), 0755), 0);
  const bool is_root = geteuid() == 0;
  // Root may write everywhere, so the test becomes nobody for a moment.
  ASSERT_EQ(is_root ? seteuid(65534) : 0, 0);
  const auto shared = storage_->try_lock("dir/.lock", LockMode::kShared);
  const auto alone = storage_->try_lock("dir/.lock", LockMode::kExclusive);
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  EXPECT_TRUE(shared.ok() && *shared != nullptr) << shared.status().to_string();
  EXPECT_EQ(alone.status().code(), StatusCode::kPermissionDenied) << alone.status().to_string();
}

TEST_F(PosixLocks, OfAForkedChildEndWithTheirHolder) {
  auto held = lock(LockMode::kExclusive);
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {  // holds the same open file until the gate closes
    close(gate[1]);
    char byte = 0;
    _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(gate[0]);
  held.reset();
  EXPECT_NE(lock(LockMode::kExclusive), nullptr);
  close(gate[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

// Counts what goes by which descriptor.
class CountingCalls final : public KernelCalls {
 public:
  int open_file(const DirectoryName& target, int flags) override {
    const int opened = KernelCalls::open_file(target, flags);
    if (opened >= 0 && (flags & O_DIRECT) != 0) direct_descriptor = opened;
    return opened;
  }
  int64_t write_at(const OpenFile& file, uint64_t offset, std::span<const std::byte> data,
                   int flags) override {
    const int64_t count = KernelCalls::write_at(file, offset, data, flags);
    if (count > 0) (file.descriptor == direct_descriptor ? direct_bytes : buffered_bytes) += count;
    return count;
  }
  std::atomic<int> direct_descriptor = -1;
  std::atomic<int64_t> direct_bytes = 0;
  std::atomic<int64_t> buffered_bytes = 0;
};

TEST(PosixDirect, CarriesWholePagesDirectlyAndTheRestThroughTheCache) {
  const test::TemporaryDirectory directory;
  const auto calls = std::make_shared<CountingCalls>();
  const auto storage = make_posix_storage(directory.path(), calls);
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  options.direct = true;
  Result<std::unique_ptr<StorageObject>> object = storage->open("key", options);
  ASSERT_TRUE(object.ok());
  if (calls->direct_descriptor < 0) GTEST_SKIP() << "this file system has no direct I/O";
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(4096, 4 * 4096),
                                                      std::free);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(memory.get()), 4 * 4096);
  ASSERT_TRUE((*object)->write_at(0, bytes.first(3 * 4096 + 100)).ok());
  EXPECT_EQ(calls->direct_bytes, 3 * 4096);
  EXPECT_EQ(calls->buffered_bytes, 100);
  // A buffer that is not aligned goes through the cache whole.
  ASSERT_TRUE((*object)->write_at(4 * 4096, bytes.subspan(8, 2 * 4096)).ok());
  EXPECT_EQ(calls->direct_bytes, 3 * 4096);
  ASSERT_TRUE((*object)->sync().ok());
  EXPECT_EQ((*object)->stat()->size_bytes, 6U * 4096);
}

}  // namespace
}  // namespace shardwright::storage
