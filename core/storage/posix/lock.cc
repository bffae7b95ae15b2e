// SPDX-License-Identifier: Apache-2.0
//
// A lock is worth what its name is: flock holds a file, and whoever finds another file under the
// name locks that one. So the file is compared with what lies under the name after it was locked,
// and again whenever the holder asks.
#include "core/storage/posix/lock_internal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::storage::internal {
namespace {

constexpr int kMaxLockDraws = 16;  // the name was removed or made by others between two calls

class PosixLock final : public StorageLock {
 public:
  PosixLock(std::shared_ptr<const Root> root, std::string key, Descriptor file)
      : root_(std::move(root)), key_(std::move(key)), file_(std::move(file)) {}
  // A forked child shares the lock, so it is given back and not only closed.
  ~PosixLock() override { (void)calls().lock_file({file_.get(), key_}, LOCK_UN); }
  PosixLock(const PosixLock&) = delete;
  PosixLock& operator=(const PosixLock&) = delete;

  Status check() override {
    struct stat held{};
    int looked = uninterrupted([&] { return calls().stat_file({file_.get(), key_}, &held); });
    if (looked < 0) return root_->open_failure(looked, "look at the lock", key_);
    const Result<Parent> parent = root_->open_parent(key_, Missing::kRefuse);
    if (!parent.ok() && parent.status().code() != StatusCode::kNotFound) return parent.status();
    struct stat named{};
    looked = parent.ok()
                 ? uninterrupted([&] { return calls().stat_name(parent->target(key_), &named); })
                 : -ENOENT;
    if (looked < 0 && looked != -ENOENT) return root_->failure(looked, "look at the lock", key_);
    if (looked == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev) return {};
    return aborted(fmt::format("the lock file '{}' was removed while it was held, so the lock no "
                               "longer keeps others away; leave that file where it is",
                               escape_text(root_->path_of(key_))))
        .with_detail("file", key_);
  }

 private:
  SystemCalls& calls() const { return root_->calls(); }

  const std::shared_ptr<const Root> root_;  // co-owned by the storage and its objects
  const std::string key_;
  const Descriptor file_;
};

// The file under the name, made when there is none; the negative errno otherwise.
int open_lock_file(SystemCalls& calls, const DirectoryName& target, LockMode mode) {
  const int access = mode == LockMode::kShared ? O_RDONLY : O_RDWR;
  const int flags = access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int opened = uninterrupted([&] { return calls.open_file(target, flags); });
  if (opened == -ENOENT) {
    opened = uninterrupted([&] { return calls.create_file(target, flags, 0666); });
  }
  return opened;
}

bool says_no_locks(int error) {
  return error == -EOPNOTSUPP || error == -ENOTSUP || error == -ENOSYS || error == -EINVAL;
}

}  // namespace

Result<std::unique_ptr<StorageLock>> lock_key(const std::shared_ptr<const Root>& root,
                                              std::string_view key, LockMode mode) {
  SystemCalls& calls = root->calls();
  const int operation = (mode == LockMode::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  for (int draw = 0; draw < kMaxLockDraws; ++draw) {
    SHW_ASSIGN_OR_RETURN(const Parent parent, root->open_parent(key, Missing::kMake));
    const int opened = open_lock_file(calls, parent.target(key), mode);
    if (opened == -EEXIST || opened == -ENOENT) continue;  // made or removed by others just now
    if (opened < 0) return root->failure(opened, "open the lock file", key);
    Descriptor file(opened);
    struct stat found{};
    const int looked = uninterrupted([&] { return calls.stat_file({opened, key}, &found); });
    if (looked < 0) return root->open_failure(looked, "look at the lock file", key);
    if (!S_ISREG(found.st_mode)) return root->failure(-ENXIO, "lock", key);
    const int locked = uninterrupted([&] { return calls.lock_file({opened, key}, operation); });
    if (locked == -EWOULDBLOCK) return std::unique_ptr<StorageLock>();
    if (says_no_locks(locked)) {
      return unimplemented(fmt::format("the file system of '{}' has no locks (errno {})",
                                       escape_text(root->path_of(key)), -locked));
    }
    if (locked < 0) return root->failure(locked, "lock", key);
    auto lock = std::make_unique<PosixLock>(root, std::string(key), std::move(file));
    const Status stands = lock->check();
    if (stands.ok()) return std::unique_ptr<StorageLock>(std::move(lock));
    if (stands.code() != StatusCode::kAborted) return stands;
  }
  return unavailable(fmt::format("the lock file '{}' is removed again and again by others",
                                 escape_text(root->path_of(key))))
      .with_detail("file", key);
}

}  // namespace shardwright::storage::internal
