// SPDX-License-Identifier: Apache-2.0
//
// Root: the directory that a posix storage lives in, and the resolution of keys beneath it. No
// component below the root is ever followed when it is a link: openat2(RESOLVE_BENEATH |
// RESOLVE_NO_SYMLINKS), or part by part with O_NOFOLLOW where the kernel lacks it. The one link
// that reading follows is a file of the Hugging Face cache (blob_behind). The root's own path may
// be a link. Nothing is cached: every call starts at the path, so a directory that was
// replaced is seen as it is now. Immutable, any thread.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "core/storage/posix/system_calls.h"

namespace shardwright::storage::internal {

// Owns a descriptor. Errors of close matter only to files that were written; those are closed by
// PosixObject.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Descriptor for reading of a directory that is open as O_PATH, which takes neither fsync, flock
// nor a listing; the negative errno otherwise.
int open_readable(int directory);

// The directory that holds the last part of a key.
struct Parent {
  Descriptor directory;  // O_PATH
  std::string key;       // of the directory, "" = the root
  std::string name;      // last part
  DirectoryName target(std::string_view whole_key) const {
    return {directory.get(), name, std::string(whole_key)};
  }
};

// Files of the Hugging Face cache lie at snapshots/<revision>/ as links to ../../blobs/<digest>.
// The text of such a link, "" for all that is none: up and out, a folder of that name, a SHA-1 or
// SHA-256 as its file, which is opened as a file that is no link itself.
std::string blob_behind(const DirectoryName& link);

inline constexpr int kMaxInterrupts = 1000;  // EINTR in a row

// What a system call answers that a signal does not end; it may be tried again after EINTR.
template <typename Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  for (int tries = 1; result == -EINTR && tries < kMaxInterrupts; ++tries) result = call();
  return result;
}

enum class Missing { kRefuse, kMake, kMakeDurable };  // what to do about absent directories

class Root {
 public:
  Root(std::string path, std::shared_ptr<SystemCalls> calls);

  SystemCalls& calls() const { return *calls_; }
  const std::string& path() const { return path_; }
  // Path of a key, for messages.
  std::string path_of(std::string_view key) const;
  // Status of a negative errno: as status_from_errno, with detail file, limits of lengths, and
  // PERMISSION_DENIED with detail unsafe for links and special files.
  Status failure(int negative_errno, std::string_view doing, std::string_view key) const;

  // The same of a call on an open descriptor. That a file which is open is not there (a server may
  // say so) is no answer to whether its name is: UNAVAILABLE, never NOT_FOUND.
  Status open_failure(int negative_errno, std::string_view doing, std::string_view key) const {
    return failure(negative_errno == -ENOENT ? -ESTALE : negative_errno, doing, key);
  }

  // O_PATH descriptor of the root; NOT_FOUND, or INVALID_ARGUMENT when it is no directory.
  Result<Descriptor> open_root(Missing missing) const;
  // O_PATH descriptor of a directory beneath the root, "" = the root.
  Result<Descriptor> open_directory(std::string_view key, Missing missing) const;
  Result<Parent> open_parent(std::string_view key, Missing missing) const;
  // fsync of an open directory. *supported becomes false (and the call succeeds) where the system
  // has no such thing.
  Status sync_directory(const Descriptor& directory, std::string_view key, bool* supported) const;
  // Syncs each directory from that of the key up to the root of the file system, as the paths of
  // key and root are written. Left out: directories of other file systems, and those above the root
  // that this process may neither read nor write.
  Status sync_above(std::string_view key) const;

 private:
  Status sync_above_root(dev_t device) const;
  Result<Descriptor> walk(Descriptor from, std::string_view key, Missing missing) const;
  Result<Descriptor> step(const Descriptor& from, const DirectoryName& target,
                          Missing missing) const;
  Status not_a_directory(const DirectoryName& target) const;

  std::string path_;
  DirectoryName self_;  // made once: the root must be found without memory
  std::shared_ptr<SystemCalls>
      calls_;  // co-owned by the storage, its objects and the test that made it
};

}  // namespace shardwright::storage::internal
