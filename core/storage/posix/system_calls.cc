// SPDX-License-Identifier: Apache-2.0
//
// The system calls themselves, one each, no policy: retries, short counts and messages are the
// storage's business.
#include "core/storage/posix/system_calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace shardwright::storage {
namespace {

// As in <linux/mman.h> of Linux 6.5, which headers of today's systems do not have yet.
constexpr long kCachestat = 451;
struct CachedRange {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};
struct CachedPages {
  uint64_t cached = 0;
  uint64_t dirty = 0;
  uint64_t in_writeback = 0;
  uint64_t evicted = 0;
  uint64_t recently_evicted = 0;
};

template <typename T>
T result_or_errno(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

iovec io_vector(const void* bytes, size_t size_bytes) {
  return {const_cast<void*>(bytes), size_bytes};
}

}  // namespace

int KernelCalls::open_beneath(int directory, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(
      result_or_errno(syscall(SYS_openat2, directory, path, &how, sizeof(how))));
}

int KernelCalls::open_file(const DirectoryName& target, int flags) {
  return result_or_errno(::openat(target.directory, target.name.c_str(), flags));
}

int KernelCalls::create_file(const DirectoryName& target, int flags, mode_t mode) {
  return result_or_errno(
      ::openat(target.directory, target.name.c_str(), flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
}

int64_t KernelCalls::read_at(const OpenFile& file, uint64_t offset, std::span<std::byte> data,
                             int flags) {
  const iovec vector = io_vector(data.data(), data.size());
  return result_or_errno<int64_t>(
      ::preadv2(file.descriptor, &vector, 1, static_cast<off_t>(offset), flags));
}

int64_t KernelCalls::write_at(const OpenFile& file, uint64_t offset,
                              std::span<const std::byte> data, int flags) {
  const iovec vector = io_vector(data.data(), data.size());
  return result_or_errno<int64_t>(
      ::pwritev2(file.descriptor, &vector, 1, static_cast<off_t>(offset), flags));
}

int KernelCalls::truncate(const OpenFile& file, uint64_t size_bytes) {
  return result_or_errno(::ftruncate(file.descriptor, static_cast<off_t>(size_bytes)));
}

int KernelCalls::preallocate(const OpenFile& file, uint64_t size_bytes) {
  return result_or_errno(::fallocate(file.descriptor, 0, 0, static_cast<off_t>(size_bytes)));
}

int KernelCalls::set_mode(const OpenFile& file, mode_t mode) {
  return result_or_errno(::fchmod(file.descriptor, mode));
}

int KernelCalls::sync_file(const OpenFile& file) {
  return result_or_errno(::fsync(file.descriptor));
}

int KernelCalls::close_file(const OpenFile& file) {
  return result_or_errno(::close(file.descriptor));
}

int KernelCalls::stat_file(const OpenFile& file, struct stat* out) {
  return result_or_errno(::fstat(file.descriptor, out));
}

int KernelCalls::stat_name(const DirectoryName& target, struct stat* out) {
  return result_or_errno(
      ::fstatat(target.directory, target.name.c_str(), out, AT_SYMLINK_NOFOLLOW));
}

int KernelCalls::make_directory(const DirectoryName& target) {
  return result_or_errno(::mkdirat(target.directory, target.name.c_str(), 0777));
}

int KernelCalls::sync_directory(const OpenFile& directory) {
  return result_or_errno(::fsync(directory.descriptor));
}

int KernelCalls::rename_file(const DirectoryName& from, const DirectoryName& to) {
  return result_or_errno(
      ::renameat(from.directory, from.name.c_str(), to.directory, to.name.c_str()));
}

int KernelCalls::rename_new(const DirectoryName& from, const DirectoryName& to) {
  return result_or_errno(::renameat2(from.directory, from.name.c_str(), to.directory,
                                     to.name.c_str(), RENAME_NOREPLACE));
}

int KernelCalls::link_name(const DirectoryName& from, const DirectoryName& to) {
  return result_or_errno(
      ::linkat(from.directory, from.name.c_str(), to.directory, to.name.c_str(), 0));
}

int KernelCalls::remove_name(const NameView& target, bool directory) {
  return result_or_errno(::unlinkat(target.directory, target.name, directory ? AT_REMOVEDIR : 0));
}

int KernelCalls::lock_file(const OpenFile& file, int operation) {
  return result_or_errno(::flock(file.descriptor, operation));
}

int64_t KernelCalls::count_cached(const OpenFile& file, uint64_t offset, uint64_t size_bytes) {
  const CachedRange range{offset, size_bytes};
  CachedPages found{};
  const auto failed = result_or_errno(syscall(kCachestat, file.descriptor, &range, &found, 0U));
  return failed < 0 ? failed : static_cast<int64_t>(found.cached) * ::sysconf(_SC_PAGESIZE);
}

std::unique_ptr<Ring> KernelCalls::open_ring(uint32_t depth, int* error) {
  return make_kernel_ring(depth, error);
}

}  // namespace shardwright::storage
