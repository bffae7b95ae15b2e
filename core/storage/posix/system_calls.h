// SPDX-License-Identifier: Apache-2.0
//
// SystemCalls: the seam between posix storage and the kernel. Each method is one system call; it
// returns what the call gave (a descriptor, a count, 0) or the negative errno. Tests replace it to
// fail or record any call: every call that changes the file system carries the key it works for,
// relative to the storage's root. Thread-safe.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/storage/posix/ring.h"
#include "core/storage/storage.h"

namespace shardwright::storage {

// A name inside an open directory and the key that it stands for (messages and records).
struct DirectoryName {
  int directory = -1;
  std::string name;
  std::string key;
};
// The same in memory of the caller; `name` is NUL-terminated. Removing needs no other memory.
struct NameView {
  NameView(int in, const char* named, std::string_view stands_for)
      : directory(in), name(named), key(stands_for) {}
  NameView(const DirectoryName& target)  // NOLINT: implicit on purpose
      : NameView(target.directory, target.name.c_str(), target.key) {}
  int directory = -1;
  const char* name = "";
  std::string_view key;
};
// An open descriptor and the key that it stands for.
struct OpenFile {
  int descriptor = -1;
  std::string_view key;
};

class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  // openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS; -ENOSYS makes the storage walk part by
  // part instead.
  virtual int open_beneath(int directory, const char* path, int flags) = 0;
  virtual int open_file(const DirectoryName& target, int flags) = 0;  // existing files
  virtual int create_file(const DirectoryName& target, int flags,
                          mode_t mode) = 0;  // O_CREAT | O_EXCL | O_NOFOLLOW added
  virtual int64_t read_at(const OpenFile& file, uint64_t offset, std::span<std::byte> data,
                          int flags) = 0;
  virtual int64_t write_at(const OpenFile& file, uint64_t offset, std::span<const std::byte> data,
                           int flags) = 0;
  virtual int truncate(const OpenFile& file, uint64_t size_bytes) = 0;
  virtual int preallocate(const OpenFile& file, uint64_t size_bytes) = 0;
  virtual int set_mode(const OpenFile& file, mode_t mode) = 0;
  virtual int sync_file(const OpenFile& file) = 0;
  virtual int close_file(const OpenFile& file) = 0;
  virtual int stat_file(const OpenFile& file, struct stat* out) = 0;
  virtual int stat_name(const DirectoryName& target,
                        struct stat* out) = 0;  // does not follow links
  virtual int make_directory(const DirectoryName& target) = 0;
  virtual int sync_directory(const OpenFile& directory) = 0;
  virtual int rename_file(const DirectoryName& from, const DirectoryName& to) = 0;
  virtual int rename_new(const DirectoryName& from,
                         const DirectoryName& to) = 0;  // -EEXIST when to exists
  virtual int link_name(const DirectoryName& from,
                        const DirectoryName& to) = 0;  // where rename_new is unknown
  virtual int remove_name(const NameView& target, bool directory) = 0;
  virtual int lock_file(const OpenFile& file, int operation) = 0;  // flock
  // cachestat: bytes of pages of the range that are in the page cache.
  virtual int64_t count_cached(const OpenFile& file, uint64_t offset, uint64_t size_bytes) = 0;
  // io_uring; null with the negative errno in *error when there is none.
  virtual std::unique_ptr<Ring> open_ring(uint32_t depth, int* error) = 0;
};

// The kernel itself; lives for the process. Tests derive from KernelCalls and override what they
// watch.
class KernelCalls : public SystemCalls {
 public:
  int open_beneath(int directory, const char* path, int flags) override;
  int open_file(const DirectoryName& target, int flags) override;
  int create_file(const DirectoryName& target, int flags, mode_t mode) override;
  int64_t read_at(const OpenFile& file, uint64_t offset, std::span<std::byte> data,
                  int flags) override;
  int64_t write_at(const OpenFile& file, uint64_t offset, std::span<const std::byte> data,
                   int flags) override;
  int truncate(const OpenFile& file, uint64_t size_bytes) override;
  int preallocate(const OpenFile& file, uint64_t size_bytes) override;
  int set_mode(const OpenFile& file, mode_t mode) override;
  int sync_file(const OpenFile& file) override;
  int close_file(const OpenFile& file) override;
  int stat_file(const OpenFile& file, struct stat* out) override;
  int stat_name(const DirectoryName& target, struct stat* out) override;
  int make_directory(const DirectoryName& target) override;
  int sync_directory(const OpenFile& directory) override;
  int rename_file(const DirectoryName& from, const DirectoryName& to) override;
  int rename_new(const DirectoryName& from, const DirectoryName& to) override;
  int link_name(const DirectoryName& from, const DirectoryName& to) override;
  int remove_name(const NameView& target, bool directory) override;
  int lock_file(const OpenFile& file, int operation) override;
  int64_t count_cached(const OpenFile& file, uint64_t offset, uint64_t size_bytes) override;
  std::unique_ptr<Ring> open_ring(uint32_t depth, int* error) override;
};

// Posix storage over calls of the caller, co-owned by the storage and its objects.
std::unique_ptr<Storage> make_posix_storage(std::string root, std::shared_ptr<SystemCalls> calls);

}  // namespace shardwright::storage
