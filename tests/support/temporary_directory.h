// SPDX-License-Identifier: Apache-2.0
//
// TemporaryDirectory: a new empty directory below TMPDIR (or /tmp) that goes with the object, with
// all that is in it. Resource type.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace shardwright::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* parent = std::getenv("TMPDIR");
    std::string pattern =
        std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/shw-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a directory like " + pattern + ": " +
                               std::strerror(errno));
    }
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    // A test may have taken permissions away; give them back before removing. What cannot be
    // removed is left to the system's cleaner of temporary files: a destructor has nobody to tell.
    std::error_code ignored;
    for (auto it = std::filesystem::recursive_directory_iterator(
             path_, std::filesystem::directory_options::skip_permission_denied, ignored);
         it != std::filesystem::recursive_directory_iterator(); it.increment(ignored)) {
      if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
        std::filesystem::permissions(it->path(), std::filesystem::perms::owner_all, ignored);
      }
    }
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Path of something inside the directory.
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace shardwright::test
