// SPDX-License-Identifier: Apache-2.0
//
// Every system call of posix storage fails in turn: the status is that of the error table, nothing
// is left visible, a failed sync is never tried again, interrupted and short transfers go on.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::storage {
namespace {

// Fails the n-th call of a name once or for ever, and keeps the order of calls that change
// something.
class FailingCalls final : public KernelCalls {
 public:
  struct Fault {
    int error = 0;
    int first = 0;  // number of the first call that fails, from 0
    bool for_ever = false;
  };
  std::map<std::string, Fault> faults;
  std::vector<std::string> log;

  // Calls that change nothing are not in the log.
  int open_beneath(int directory, const char* path, int flags) override {
    return quiet("open_beneath", [&] { return KernelCalls::open_beneath(directory, path, flags); });
  }
  int open_file(const DirectoryName& target, int flags) override {
    return quiet("open", [&] { return KernelCalls::open_file(target, flags); });
  }
  int stat_file(const OpenFile& file, struct stat* out) override {
    return quiet("stat_file", [&] { return KernelCalls::stat_file(file, out); });
  }
  int stat_name(const DirectoryName& target, struct stat* out) override {
    return quiet("stat_name", [&] { return KernelCalls::stat_name(target, out); });
  }
  int lock_file(const OpenFile& file, int operation) override {
    return quiet("lock", [&] { return KernelCalls::lock_file(file, operation); });
  }
  int create_file(const DirectoryName& target, int flags, mode_t mode) override {
    return call("create", target.key,
                [&] { return KernelCalls::create_file(target, flags, mode); });
  }
  int64_t read_at(const OpenFile& file, uint64_t offset, std::span<std::byte> data,
                  int flags) override {
    const auto part = data.first(std::min(data.size(), most_bytes));
    return call<int64_t>("read", file.key,
                         [&] { return KernelCalls::read_at(file, offset, part, flags); });
  }
  int64_t write_at(const OpenFile& file, uint64_t offset, std::span<const std::byte> data,
                   int flags) override {
    const auto part = data.first(std::min(data.size(), most_bytes));
    return call<int64_t>("write", file.key,
                         [&] { return KernelCalls::write_at(file, offset, part, flags); });
  }
  int truncate(const OpenFile& file, uint64_t size) override {
    return call("truncate", file.key, [&] { return KernelCalls::truncate(file, size); });
  }
  int preallocate(const OpenFile& file, uint64_t size) override {
    return call("preallocate", file.key, [&] { return KernelCalls::preallocate(file, size); });
  }
  int set_mode(const OpenFile& file, mode_t mode) override {
    return call("set_mode", file.key, [&] { return KernelCalls::set_mode(file, mode); });
  }
  int sync_file(const OpenFile& file) override {
    return call("sync_file", file.key, [&] { return KernelCalls::sync_file(file); });
  }
  int close_file(const OpenFile& file) override {
    const int closed = KernelCalls::close_file(file);
    return call("close", file.key, [&] { return closed; });
  }
  int make_directory(const DirectoryName& target) override {
    return call("make_directory", target.key, [&] { return KernelCalls::make_directory(target); });
  }
  int sync_directory(const OpenFile& directory) override {
    return call("sync_directory", directory.key,
                [&] { return KernelCalls::sync_directory(directory); });
  }
  int rename_file(const DirectoryName& from, const DirectoryName& to) override {
    return call("rename", to.key, [&] { return KernelCalls::rename_file(from, to); });
  }
  int rename_new(const DirectoryName& from, const DirectoryName& to) override {
    return call("rename", to.key, [&] { return KernelCalls::rename_new(from, to); });
  }
  int remove_name(const NameView& target, bool directory) override {
    return call("remove", target.key, [&] { return KernelCalls::remove_name(target, directory); });
  }

  size_t most_bytes = SIZE_MAX;  // of one transfer

 private:
  template <typename T = int, typename Function>
  T call(const std::string& name, std::string_view key, Function function) {
    log.push_back(name + " " + std::string(key));
    return quiet<T>(name, function);
  }
  template <typename T = int, typename Function>
  T quiet(const std::string& name, Function function) {
    const int number = counts_[name]++;
    const auto fault = faults.find(name);
    if (fault != faults.end() && (number == fault->second.first ||
                                  (fault->second.for_ever && number > fault->second.first))) {
      return static_cast<T>(-fault->second.error);
    }
    return function();
  }
  std::map<std::string, int> counts_;
};

class SystemCallFailures : public testing::Test {
 protected:
  SystemCallFailures() : storage_(make_posix_storage(root_ / "root", calls_)) {}

  // Writes "text" to key with a sync, and commits when the mode asks for it.
  Status write(std::string_view key, OpenMode mode, OpenOptions options = {}) {
    options.mode = mode;
    options.expected_bytes = 100;  // reserved, and cut to what was written
    Result<std::unique_ptr<StorageObject>> object = storage_->open(key, options);
    if (!object.ok()) return object.status();
    SHW_RETURN_IF_ERROR((*object)->write_at(0, std::as_bytes(std::span("text", 4))));
    SHW_RETURN_IF_ERROR((*object)->sync());
    if (mode == OpenMode::kCreate) return (*object)->commit(CommitCondition::kIfAbsent, {});
    return (*object)->close();
  }
  std::string text_of(std::string_view key) {
    const auto bytes = read_all(*storage_, key, 100);
    if (!bytes.ok()) return bytes.status().to_string();
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  int count(std::string_view entry) {
    return static_cast<int>(std::ranges::count(calls_->log, entry));
  }

  test::TemporaryDirectory root_;
  std::shared_ptr<FailingCalls> calls_ = std::make_shared<FailingCalls>();
  std::unique_ptr<Storage> storage_;
};

TEST_F(SystemCallFailures, ACommitMakesItsCallsInOrder) {
  ASSERT_TRUE(storage_->create_prefix("dir").ok());
  calls_->log.clear();
  ASSERT_TRUE(write("dir/key", OpenMode::kCreate).ok());
  EXPECT_EQ(calls_->log,
            (std::vector<std::string>{"create dir/key", "preallocate dir/key", "write dir/key",
                                      "truncate dir/key", "sync_file dir/key", "close dir/key",
                                      "rename dir/key", "sync_directory dir"}));
}

TEST_F(SystemCallFailures, AVisibleFileSyncsItsNameToo) {
  ASSERT_TRUE(storage_->create_prefix("dir").ok());
  calls_->log.clear();
  ASSERT_TRUE(write("dir/key", OpenMode::kCreateVisible).ok());
  EXPECT_EQ(calls_->log,
            (std::vector<std::string>{"create dir/key", "preallocate dir/key", "write dir/key",
                                      "truncate dir/key", "sync_file dir/key", "sync_directory dir",
                                      "close dir/key"}));
}

TEST_F(SystemCallFailures, WithoutDurabilityNothingIsSynced) {
  OpenOptions options;
  options.durable = false;
  ASSERT_TRUE(write("dir/key", OpenMode::kCreate, options).ok());
  for (const std::string& entry : calls_->log)
    EXPECT_EQ(entry.find("sync"), std::string::npos) << entry;
}

TEST_F(SystemCallFailures, MapEachErrnoToItsStatus) {
  const std::pair<int, StatusCode> table[] = {
      {ENOSPC, StatusCode::kResourceExhausted}, {EDQUOT, StatusCode::kResourceExhausted},
      {EFBIG, StatusCode::kResourceExhausted},  {EIO, StatusCode::kDataLoss},
      {ESTALE, StatusCode::kUnavailable},       {EROFS, StatusCode::kPermissionDenied},
      {EAGAIN, StatusCode::kUnavailable},       {ENOTCONN, StatusCode::kUnavailable}};
  for (const auto& [error, code] : table) {
    calls_ = std::make_shared<FailingCalls>();
    storage_ = make_posix_storage(root_ / std::to_string(error), calls_);
    calls_->faults["write"] = {error, 0, true};
    const Status status = write("key", OpenMode::kCreate);
    EXPECT_EQ(status.code(), code) << error;
    EXPECT_EQ(status.detail("errno"), std::to_string(error));
    EXPECT_EQ(status.detail("file"), "key");
    EXPECT_EQ(status.detail("offset"), "0");
  }
}

TEST_F(SystemCallFailures, EachFailingCallOfACommitLeavesNothingVisible) {
  for (const std::string name :
       {"create", "write", "truncate", "sync_file", "close", "rename", "make_directory"}) {
    calls_ = std::make_shared<FailingCalls>();
    storage_ = make_posix_storage(root_ / name, calls_);
    calls_->faults[name] = {EIO, 0, true};
    const Status status = write("dir/key", OpenMode::kCreate);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name << " " << status.to_string();
    calls_->faults.clear();
    int keys = 0;
    ASSERT_TRUE(storage_
                    ->list("", kNoDelimiter,
                           [&](const ListEntry& entry) {
                             keys += entry.key.ends_with('/') ? 0 : 1;
                             return Status();
                           })
                    .ok());
    EXPECT_EQ(keys, 0) << name;
    EXPECT_TRUE(write("dir/key", OpenMode::kCreate).ok())
        << name << ": the storage is usable afterwards";
  }
}

TEST_F(SystemCallFailures, AFailedDirectorySyncAfterTheRenameIsAnUnknownOutcome) {
  ASSERT_TRUE(storage_->create_prefix("dir").ok());
  calls_->faults["sync_directory"] = {
      EIO,
      static_cast<int>(std::ranges::count_if(
          calls_->log, [](const std::string& e) { return e.starts_with("sync_directory"); })),
      false};
  const Status status = write("dir/key", OpenMode::kCreate);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
  EXPECT_EQ(status.detail("commit"), "unknown");
  EXPECT_FALSE(status.retryable());
  EXPECT_EQ(text_of("dir/key"), "text");
}

TEST_F(SystemCallFailures, ADirectoryThatCannotBeSyncedIsToldAndNotHidden) {
  calls_->faults["sync_directory"] = {EINVAL, 0, true};
  EXPECT_TRUE(write("dir/key", OpenMode::kCreate).ok());
  bool supported = true;
  EXPECT_TRUE(storage_->sync_prefix("dir", &supported).ok());
  EXPECT_FALSE(supported);
  calls_->faults.clear();
  EXPECT_TRUE(storage_->sync_prefix("dir", &supported).ok());
  EXPECT_TRUE(supported);
}

TEST_F(SystemCallFailures, AFailedSyncIsFinal) {
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  auto object = storage_->open("key", options);
  ASSERT_TRUE(object.ok());
  calls_->faults["sync_file"] = {EIO, 0, false};
  EXPECT_EQ((*object)->sync().code(), StatusCode::kDataLoss);
  EXPECT_EQ((*object)->sync().code(), StatusCode::kDataLoss);
  EXPECT_EQ((*object)->write_at(0, std::as_bytes(std::span("x", 1))).code(), StatusCode::kDataLoss);
  EXPECT_EQ(count("sync_file key"), 1);
}

TEST_F(SystemCallFailures, InterruptedAndShortTransfersGoOn) {
  calls_->most_bytes = 3;
  calls_->faults["write"] = {EINTR, 1, false};
  calls_->faults["read"] = {EINTR, 0, false};
  ASSERT_TRUE(write("key", OpenMode::kCreateVisible).ok());
  EXPECT_EQ(text_of("key"), "text");
  EXPECT_GE(count("write key"), 3);
}

// Everything a save, a load and gc ask of a storage.
Status use_all(Storage& storage, const std::function<Status(std::string_view, OpenMode)>& write) {
  SHW_ASSIGN_OR_RETURN(const auto lock, storage.try_lock("dir/.lock", LockMode::kShared));
  if (lock == nullptr) return internal_error("the lock is held");
  SHW_RETURN_IF_ERROR(storage.create_prefix("dir/new"));
  SHW_RETURN_IF_ERROR(storage.sync_above("dir/new"));
  SHW_RETURN_IF_ERROR(write("dir/new/file", OpenMode::kCreateVisible));
  SHW_RETURN_IF_ERROR(write("dir/key", OpenMode::kCreate));
  SHW_RETURN_IF_ERROR(storage.stat("dir/key").status());
  SHW_RETURN_IF_ERROR(read_all(storage, "dir/key", 100).status());
  SHW_RETURN_IF_ERROR(storage.list("", kNoDelimiter, [](const ListEntry&) { return Status(); }));
  SHW_RETURN_IF_ERROR(lock->check());
  return storage.remove("dir/new/file");
}

TEST_F(SystemCallFailures, ASignalFailsNoCallThatMayBeTriedAgain) {
  for (const std::string name : {"open_beneath", "open", "create", "stat_file", "stat_name", "lock",
                                 "make_directory", "truncate", "read", "write"}) {
    for (int first = 0; first < 12; ++first) {
      calls_ = std::make_shared<FailingCalls>();
      storage_ = make_posix_storage(root_ / (name + std::to_string(first)), calls_);
      calls_->faults[name] = {EINTR, first, false};
      const Status status =
          use_all(*storage_, [this](auto key, OpenMode mode) { return write(key, mode); });
      EXPECT_TRUE(status.ok()) << name << " " << first << ": " << status.to_string();
    }
  }
}

TEST_F(SystemCallFailures, InterruptsForEverEnd) {
  for (const std::string name : {"open", "create", "stat_file", "lock", "write"}) {
    calls_ = std::make_shared<FailingCalls>();
    storage_ = make_posix_storage(root_ / name, calls_);
    calls_->faults[name] = {EINTR, 0, true};
    const Status status =
        use_all(*storage_, [this](auto key, OpenMode mode) { return write(key, mode); });
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << name << " " << status.to_string();
  }
}

TEST_F(SystemCallFailures, OnlyAFileSystemWithoutLocksOffersNone) {
  const std::pair<int, StatusCode> table[] = {{EOPNOTSUPP, StatusCode::kUnimplemented},
                                              {ENOSYS, StatusCode::kUnimplemented},
                                              {ENOLCK, StatusCode::kUnavailable},
                                              {EIO, StatusCode::kDataLoss},
                                              {ENOMEM, StatusCode::kResourceExhausted}};
  for (const auto& [error, code] : table) {
    calls_->faults["lock"] = {error, 0, true};
    EXPECT_EQ(storage_->try_lock("dir/.lock", LockMode::kShared).status().code(), code) << error;
  }
}

TEST_F(SystemCallFailures, AnOpenFileThatIsSaidToBeMissingIsNotAMissingName) {
  ASSERT_TRUE(write("key", OpenMode::kCreate).ok());
  for (const std::string name : {"stat_file", "read"}) {
    calls_->faults[name] = {ENOENT, 0, true};
    EXPECT_EQ(read_all(*storage_, "key", 100).status().code(), StatusCode::kUnavailable) << name;
    calls_->faults.clear();
  }
}

TEST_F(SystemCallFailures, AFullDiskIsFoundWhenSpaceIsReserved) {
  OpenOptions options;
  options.expected_bytes = 1 << 20;
  calls_->faults["preallocate"] = {ENOSPC, 0, true};
  const Status status = write("key", OpenMode::kCreateVisible, options);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("resource"), "disk");
  EXPECT_EQ(storage_->stat("key").status().code(), StatusCode::kNotFound);
  calls_->faults["preallocate"] = {EOPNOTSUPP, 0, true};
  EXPECT_TRUE(write("key", OpenMode::kCreateVisible, options).ok());
}

TEST_F(SystemCallFailures, AFileWhoseModeCannotBeSetIsNotLeft) {
  OpenOptions options;
  options.file_mode = 0640;
  calls_->faults["set_mode"] = {EPERM, 0, true};
  EXPECT_EQ(write("key", OpenMode::kCreateVisible, options).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(storage_->stat("key").status().code(), StatusCode::kNotFound);
}

TEST_F(SystemCallFailures, ACloseThatFailsIsReported) {
  calls_->faults["close"] = {EDQUOT, 0, false};
  EXPECT_EQ(write("key", OpenMode::kCreateVisible).code(), StatusCode::kResourceExhausted);
}

TEST_F(SystemCallFailures, ARemoveThatFailsIsReported) {
  ASSERT_TRUE(write("key", OpenMode::kCreateVisible).ok());
  calls_->faults["remove"] = {EACCES, 0, true};
  EXPECT_EQ(storage_->remove("key").code(), StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace shardwright::storage
