// SPDX-License-Identifier: Apache-2.0
//
// WatchedNames: the kernel's calls, with a book of the names that a power loss now would take:
// made, but the directory that holds them was not synced since. Several storages may share one
// book. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "core/storage/posix/system_calls.h"

namespace shardwright::test {

class WatchedNames final : public storage::KernelCalls {
 public:
  // root: where the storage lives, for keys below it.
  explicit WatchedNames(std::string root) : root_(std::move(root)) {}

  // Told of each rename before it takes place, with the path of the new name.
  std::function<void(const std::string&)> before_rename;

  std::set<std::string> lost_now() const {
    const std::lock_guard lock(mutex_);
    return pending_;
  }

  int create_file(const storage::DirectoryName& target, int flags, mode_t mode) override {
    return note(KernelCalls::create_file(target, flags, mode), target);
  }
  int make_directory(const storage::DirectoryName& target) override {
    return note(KernelCalls::make_directory(target), target);
  }
  int sync_directory(const storage::OpenFile& directory) override {
    const int synced = KernelCalls::sync_directory(directory);
    const std::string path = path_of(directory.key);
    const std::lock_guard lock(mutex_);
    std::erase_if(pending_, [&](const std::string& name) { return parent_of(name) == path; });
    return synced;
  }
  int rename_file(const storage::DirectoryName& from, const storage::DirectoryName& to) override {
    if (before_rename) before_rename(path_of(to.key));
    return KernelCalls::rename_file(from, to);
  }
  int rename_new(const storage::DirectoryName& from, const storage::DirectoryName& to) override {
    if (before_rename) before_rename(path_of(to.key));
    return KernelCalls::rename_new(from, to);
  }

 private:
  int note(int made, const storage::DirectoryName& target) {
    if (made < 0) return made;
    const std::lock_guard lock(mutex_);
    // The key of a temporary name is the one that it will get.
    pending_.insert(parent_of(path_of(target.key)) + "/" + target.name);
    return made;
  }
  std::string path_of(std::string_view key) const {
    if (key.starts_with("/")) return std::string(key);
    return key.empty() ? root_ : root_ + "/" + std::string(key);
  }
  static std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

  const std::string root_;
  mutable std::mutex mutex_;
  std::set<std::string> pending_;
};

}  // namespace shardwright::test
