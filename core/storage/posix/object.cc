// SPDX-License-Identifier: Apache-2.0
//
// Transfers, sync, commit and close of one file. The commit on one file: 1 sync, 2 close, 3
// conditional rename under the directory's advisory lock, 4 sync of the directory.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/storage/posix/object_internal.h"

namespace shardwright::storage::internal {
namespace {

#ifdef RWF_DONTCACHE
constexpr int kUncachedFlag = RWF_DONTCACHE;
#else
constexpr int kUncachedFlag = 0x80;  // RWF_DONTCACHE of Linux 6.14; older kernels answer EOPNOTSUPP
#endif
constexpr uint64_t kMaxTransferBytes = uint64_t{1}
                                       << 30;  // below what one call carries on any kernel
constexpr int kMaxLockTries = 2000;            // of 1 ms each
constexpr uint64_t kCacheSamples = 16;         // of a range

uint64_t mix(uint64_t value) {
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9ULL;
  value ^= value >> 27;
  value *= 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

bool aligned(uint64_t value) {
  return value % kDirectAlignment == 0;
}

// Advisory lock of a directory while a condition is checked and the name is replaced.
class DirectoryLock {
 public:
  // opened: a descriptor for reading, or the negative errno.
  DirectoryLock(SystemCalls* calls, int opened, std::string_view key)
      : calls_(calls), directory_(std::max(opened, -1)), key_(key), open_error_(opened) {}
  ~DirectoryLock() {
    if (held_)
      (void)calls_->lock_file({directory_.get(), key_}, LOCK_UN);  // closing releases it too
  }
  // 0, or the negative errno; systems without such locks count as locked.
  int acquire() {
    if (!directory_.valid()) return open_error_;
    int locked = -EWOULDBLOCK;
    for (int tries = 0; tries < kMaxLockTries && (locked == -EWOULDBLOCK || locked == -EINTR);
         ++tries) {
      locked = calls_->lock_file({directory_.get(), key_}, LOCK_EX | LOCK_NB);
      const timespec pause{0, 1'000'000};
      if (locked < 0) ::nanosleep(&pause, nullptr);
    }
    held_ = locked == 0;
    return locked == -EWOULDBLOCK || locked == -EINTR ? locked : 0;
  }

 private:
  SystemCalls* calls_;
  Descriptor directory_;
  std::string_view key_;
  int open_error_;
  bool held_ = false;
};

}  // namespace

ObjectStat object_stat(const struct stat& found) {
  ObjectStat stat;
  stat.size_bytes = static_cast<uint64_t>(found.st_size);
  stat.modified_ns = int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  stat.changed_ns = int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec;
  const uint64_t file = mix(mix(found.st_dev) ^ found.st_ino);
  stat.version = fmt::format(
      "{:016x}", mix(mix(file ^ static_cast<uint64_t>(stat.modified_ns)) ^ stat.size_bytes));
  return stat;
}

PosixObject::PosixObject(Parts parts) noexcept : parts_(std::move(parts)) {
  if (!parts_.options.direct) return;
  // It is faster; without memory for it there is the other way.
  static_cast<void>(without_exceptions("opening a file for direct transfers", [this] {
    open_direct();
    return Status();
  }));
}

PosixObject::~PosixObject() {
  if (state_ != State::kOpen) return;
  if (parts_.options.mode == OpenMode::kCreate) {
    abort();
  } else {
    // Nobody can be told here; callers that care call close().
    static_cast<void>(without_exceptions("closing a file", [this] { return close(); }));
  }
}

void PosixObject::open_direct() {
  uncached_usable_ = true;
  if (!parts_.parent.directory.valid()) return;
  const std::string& name =
      parts_.temporary_name.empty() ? parts_.parent.name : parts_.temporary_name;
  const int flags = (writes() ? O_RDWR : O_RDONLY) | O_DIRECT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const DirectoryName target{parts_.parent.directory.get(), name, parts_.key};
  Descriptor direct(uninterrupted([&] { return calls().open_file(target, flags); }));
  struct stat first{};
  struct stat second{};
  // The name could be another file by now: only the same file is used.
  if (!direct.valid() || calls().stat_file(open_file(), &first) < 0 ||
      calls().stat_file({direct.get(), parts_.key}, &second) < 0 || first.st_ino != second.st_ino ||
      first.st_dev != second.st_dev) {
    return;
  }
  direct_ = std::move(direct);
  device_ = first.st_dev;
  direct_usable_ = true;
}

Status PosixObject::check_open() const {
  if (state_ == State::kOpen) return {};
  return failed_precondition(
      fmt::format("'{}' is closed", escape_text(parts_.root->path_of(parts_.key))));
}

Status PosixObject::check_writable() const {
  SHW_RETURN_IF_ERROR(check_open());
  if (!writes()) {
    return failed_precondition(
        fmt::format("'{}' is open for reading", escape_text(parts_.root->path_of(parts_.key))));
  }
  const std::lock_guard lock(failure_mutex_);
  return first_failure_;
}

Status PosixObject::remember(Status failure) {
  const std::lock_guard lock(failure_mutex_);
  if (first_failure_.ok()) first_failure_ = failure;
  return failure;
}

Status PosixObject::preallocate() {
  const uint64_t wanted = parts_.options.expected_bytes;
  if (wanted == 0 || wanted > static_cast<uint64_t>(INT64_MAX)) return {};
  const int reserved = uninterrupted([&] { return calls().preallocate(open_file(), wanted); });
  if (reserved == -ENOSPC || reserved == -EDQUOT || reserved == -EFBIG)
    return failure(reserved, "reserve space for");
  if (reserved == 0) preallocated_bytes_ = wanted;  // else: this file system has no reservation
  return {};
}

template <bool kWrite, typename Span>
Status PosixObject::transfer_direct(uint64_t* offset, Span* data) {
  uint64_t left = data->size() - data->size() % kDirectAlignment;
  int interrupts = 0;
  while (left > 0) {
    const auto part = data->first(static_cast<size_t>(std::min(left, kMaxTransferBytes)));
    int64_t count = 0;
    if constexpr (kWrite) {
      count = calls().write_at({direct_.get(), parts_.key}, *offset, part, 0);
    } else {
      count = calls().read_at({direct_.get(), parts_.key}, *offset, part, 0);
    }
    if (count == -EINTR && ++interrupts < kMaxInterrupts) continue;
    if (count == -EINVAL) direct_usable_ = false;  // this file system wants more than our alignment
    if (count == -EINVAL || count == 0) return {};
    if (count < 0) {
      return descriptor_failure(static_cast<int>(count), kWrite ? "write" : "read")
          .with_detail("offset", fmt::to_string(*offset))
          .with_detail("length", fmt::to_string(part.size()));
    }
    interrupts = 0;
    *offset += static_cast<uint64_t>(count);
    *data = data->subspan(static_cast<size_t>(count));
    if (!aligned(static_cast<uint64_t>(count))) return {};  // the rest is no longer aligned
    left -= static_cast<uint64_t>(count);
  }
  return {};
}

template <bool kWrite, typename Span>
Status PosixObject::transfer_buffered(uint64_t offset, Span data) {
  int interrupts = 0;
  const uint64_t wanted_end = offset + data.size();
  while (!data.empty()) {
    const auto part = data.first(std::min<size_t>(data.size(), kMaxTransferBytes));
    const int flags = uncached_usable_ ? kUncachedFlag : 0;
    int64_t count = 0;
    if constexpr (kWrite) {
      count = calls().write_at(open_file(), offset, part, flags);
    } else {
      count = calls().read_at(open_file(), offset, part, flags);
    }
    if (count == -EINTR && ++interrupts < kMaxInterrupts) continue;
    if ((count == -EOPNOTSUPP || count == -EINVAL) && flags != 0) {
      uncached_usable_ = false;
      continue;
    }
    if (count == 0 && !kWrite) {
      return out_of_range(fmt::format("'{}' ends at byte {}, wanted the bytes up to {}",
                                      escape_text(parts_.root->path_of(parts_.key)), offset,
                                      wanted_end))
          .with_detail("file", parts_.key)
          .with_detail("offset", fmt::to_string(offset))
          .with_detail("length", fmt::to_string(data.size()))
          .with_detail("found", "0");
    }
    if (count <= 0) {
      return descriptor_failure(count == 0 ? -EIO : static_cast<int>(count),
                                kWrite ? "write" : "read")
          .with_detail("offset", fmt::to_string(offset))
          .with_detail("length", fmt::to_string(part.size()));
    }
    interrupts = 0;
    offset += static_cast<uint64_t>(count);
    data = data.subspan(static_cast<size_t>(count));
  }
  return {};
}

template <bool kWrite, typename Span>
Status PosixObject::transfer(uint64_t offset, Span data) {
  uint64_t end = 0;
  if (!checked_add<uint64_t>(offset, data.size(), &end) || end > static_cast<uint64_t>(INT64_MAX)) {
    return out_of_range(
        fmt::format("offset {} with {} bytes is beyond what a file can hold", offset, data.size()));
  }
  if (direct_usable_ && data.size() >= kDirectAlignment) {
    const uint64_t head = aligned(offset) ? 0 : kDirectAlignment - offset % kDirectAlignment;
    const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data.data()));
    if (aligned(address + head) && data.size() - head >= kDirectAlignment) {
      SHW_RETURN_IF_ERROR(
          (transfer_buffered<kWrite>(offset, data.first(static_cast<size_t>(head)))));
      offset += head;
      data = data.subspan(static_cast<size_t>(head));
      SHW_RETURN_IF_ERROR((transfer_direct<kWrite>(&offset, &data)));
    }
  }
  return transfer_buffered<kWrite>(offset, data);
}

Status PosixObject::read_at(uint64_t offset, std::span<std::byte> data) {
  SHW_RETURN_IF_ERROR(check_open());
  return transfer<false>(offset, data);
}

Status PosixObject::write_at(uint64_t offset, std::span<const std::byte> data) {
  SHW_RETURN_IF_ERROR(check_writable());
  dirty_ = true;
  SHW_RETURN_IF_ERROR(transfer<true>(offset, data));
  note_written(offset + data.size());
  return {};
}

void PosixObject::note_written(uint64_t end) {
  uint64_t known = written_end_;
  while (known < end && !written_end_.compare_exchange_weak(known, end)) {
  }
}

int PosixObject::ring_descriptor(bool is_write, uint64_t offset, std::span<std::byte> data,
                                 Status* status) {
  *status = is_write ? check_writable() : check_open();
  if (!status->ok()) return -1;
  if (is_write) dirty_ = true;
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data.data()));
  uint64_t end = 0;
  const bool fits = data.size() >= kDirectAlignment && data.size() <= kMaxTransferBytes &&
                    checked_add<uint64_t>(offset, data.size(), &end) &&
                    end <= static_cast<uint64_t>(INT64_MAX);
  return fits && direct_usable_ && aligned(offset) && aligned(address) ? direct_.get() : -1;
}

Status PosixObject::ring_failure(bool is_write, uint64_t offset, std::span<std::byte> data,
                                 int64_t negative_errno) const {
  return descriptor_failure(static_cast<int>(negative_errno), is_write ? "write" : "read")
      .with_detail("offset", fmt::to_string(offset))
      .with_detail("length", fmt::to_string(data.size()));
}

bool PosixObject::probe_ring() const {
  if (!direct_usable_) return false;
  // Without RWF_NOWAIT io_uring would hand each transfer to a thread of the kernel.
  std::byte byte{};
  return calls().read_at(open_file(), 0, std::span(&byte, 1), RWF_NOWAIT) != -EOPNOTSUPP;
}

uint64_t PosixObject::cached_bytes(uint64_t offset, uint64_t size_bytes) {
  if (state_ != State::kOpen || size_bytes == 0) return 0;
  const int64_t counted = calls().count_cached(open_file(), offset, size_bytes);
  // Older kernels do not know the call; newer ones refuse it for files of others.
  if (counted < 0) return count_by_samples(offset, size_bytes);
  return std::min(static_cast<uint64_t>(counted), size_bytes);
}

// By reads of single bytes that do not wait for the device.
uint64_t PosixObject::count_by_samples(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t step = std::max(size_bytes / kCacheSamples, kDirectAlignment);
  uint64_t cached = 0;
  for (uint64_t begin = 0; begin < size_bytes; begin += step) {
    std::byte byte{};
    const int64_t count =
        calls().read_at(open_file(), offset + begin, std::span(&byte, 1), RWF_NOWAIT);
    if (count < 0 && count != -EAGAIN) return 0;
    if (count > 0) cached += std::min(step, size_bytes - begin);
  }
  return cached;
}

// A reservation must not show: the length is the end of what was written.
Status PosixObject::settle_length() {
  if (preallocated_bytes_ <= written_end_) return {};
  dirty_ = true;
  const uint64_t size_bytes = written_end_;
  const int cut = uninterrupted([&] { return calls().truncate(open_file(), size_bytes); });
  if (cut < 0)
    return failure(cut, "set the length of").with_detail("length", fmt::to_string(size_bytes));
  preallocated_bytes_ = 0;
  return {};
}

Status PosixObject::truncate(uint64_t size_bytes) {
  SHW_RETURN_IF_ERROR(check_writable());
  if (size_bytes > static_cast<uint64_t>(INT64_MAX)) {
    return out_of_range(
        fmt::format("a length of {} bytes is beyond what a file can hold", size_bytes));
  }
  written_end_ = size_bytes;
  preallocated_bytes_ = std::numeric_limits<uint64_t>::max();
  return settle_length();
}

Status PosixObject::sync() {
  SHW_RETURN_IF_ERROR(check_writable());
  SHW_RETURN_IF_ERROR(settle_length());
  if (parts_.options.durable) {
    // After a failed fsync the kernel may have dropped the pages and a second one would lie: never
    // retried.
    const int synced = calls().sync_file(open_file());
    if (synced < 0) return remember(failure(synced, "sync"));
    if (parts_.options.mode == OpenMode::kCreateVisible) {
      Status named =
          parts_.root->sync_directory(parts_.parent.directory, parts_.parent.key, nullptr);
      if (!named.ok()) return remember(std::move(named));
    }
  }
  dirty_ = false;
  return {};
}

Status PosixObject::close_descriptors() {
  int first = 0;
  for (Descriptor* each : {&direct_, &parts_.file}) {
    if (!each->valid()) continue;
    const int closed = calls().close_file({each->release(), parts_.key});
    // EINTR of close on Linux: the descriptor is gone and nothing was lost.
    if (closed < 0 && closed != -EINTR && first == 0) first = closed;
  }
  return first == 0 ? Status() : failure(first, "close");
}

Status PosixObject::close() {
  if (state_ != State::kOpen) return {};
  if (parts_.options.mode == OpenMode::kCreate) {
    abort();
    return {};
  }
  Status status = writes() && check_writable().ok() ? settle_length() : Status();
  state_ = State::kClosed;
  Status closed = close_descriptors();
  return status.ok() ? closed : status;
}

void PosixObject::remove_name_of_this() {
  const std::string& name =
      parts_.temporary_name.empty() ? parts_.parent.name : parts_.temporary_name;
  // Best effort: what stays is found by the collection of garbage.
  (void)calls().remove_name({parts_.parent.directory.get(), name.c_str(), parts_.key},
                            /*directory=*/false);
}

void PosixObject::abort() {
  if (state_ != State::kOpen) return;
  state_ = State::kClosed;
  // The bytes are thrown away.
  static_cast<void>(without_exceptions("closing a file", [this] { return close_descriptors(); }));
  if (writes()) remove_name_of_this();
}

Status PosixObject::commit(CommitCondition condition, std::string_view expected_version) {
  SHW_RETURN_IF_ERROR(check_writable());
  if (parts_.options.mode != OpenMode::kCreate)
    return failed_precondition("commit is for objects opened with kCreate");
  Status status = dirty_ || preallocated_bytes_ != 0 ? sync() : Status();  // step 1
  if (!status.ok()) {
    abort();
    return status;
  }
  state_ = State::kCommitted;
  status = without_exceptions("publishing a file", [&] {
    // Step 2: a late error of the file system must not be published.
    Status closed = close_descriptors();
    return closed.ok() ? publish(condition, expected_version) : closed;
  });
  if (!status.ok()) {
    state_ = State::kClosed;
    remove_name_of_this();
    return status;
  }
  if (!parts_.options.durable) return {};
  const Status named = without_exceptions("syncing a directory", [this] {  // step 4
    return parts_.root->sync_directory(parts_.parent.directory, parts_.parent.key, nullptr);
  });
  if (named.ok()) return {};
  return unknown_commit(without_exceptions("syncing a directory", [&] { return in_doubt(named); }));
}

Status PosixObject::in_doubt(const Status& named) const {
  return unavailable(fmt::format("'{}' was put in place, but its directory could not be synced, so "
                                 "it is unknown which content survives a power loss: {}",
                                 escape_text(parts_.root->path_of(parts_.key)), named.message()))
      .with_detail("file", parts_.key)
      .with_detail("errno", named.detail("errno"));
}

// Step 3. Conditions hold against writers that use this library; the lock is advisory.
Status PosixObject::publish(CommitCondition condition, std::string_view expected_version) {
  const DirectoryName from{parts_.parent.directory.get(), parts_.temporary_name, parts_.key};
  const DirectoryName to = parts_.parent.target(parts_.key);
  DirectoryLock lock(&calls(), open_readable(to.directory), parts_.key);
  const int locked = condition == CommitCondition::kNone ? 0 : lock.acquire();
  if (locked < 0 && locked != -EWOULDBLOCK) return failure(locked, "lock the directory of");
  if (locked < 0) {
    return unavailable(fmt::format("the directory of '{}' stays locked by another writer",
                                   escape_text(parts_.root->path_of(parts_.key))))
        .with_detail("file", parts_.key);
  }
  if (condition == CommitCondition::kIfAbsent) return rename_absent(from, to);
  if (condition == CommitCondition::kIfVersion) {
    struct stat found{};
    const int looked = uninterrupted([&] { return calls().stat_name(to, &found); });
    if (looked < 0 && looked != -ENOENT) return failure(looked, "look at");
    const std::string version = looked < 0 ? "" : object_stat(found).version;
    if (version != expected_version) {
      return aborted(fmt::format(
                         "'{}' was changed by another writer: expected version '{}', found '{}'",
                         escape_text(parts_.root->path_of(parts_.key)),
                         escape_text(expected_version), version))
          .with_detail("file", parts_.key);
    }
  }
  const int renamed = calls().rename_file(from, to);
  return renamed < 0 ? failure(renamed, "rename into place") : Status();
}

Status PosixObject::rename_absent(const DirectoryName& from, const DirectoryName& to) {
  int renamed = calls().rename_new(from, to);
  if (renamed == -EINVAL || renamed == -ENOSYS) {
    renamed = calls().link_name(from, to);
    if (renamed == 0)
      (void)calls().remove_name(from, /*directory=*/false);  // a second name does no harm
  }
  if (renamed == -EEXIST) {
    return aborted(fmt::format("'{}' was made by another writer in between",
                               escape_text(parts_.root->path_of(parts_.key))))
        .with_detail("file", parts_.key);
  }
  return renamed < 0 ? failure(renamed, "rename into place") : Status();
}

Result<ObjectStat> PosixObject::stat() {
  if (state_ == State::kCommitted) {
    struct stat found{};
    const DirectoryName name = parts_.parent.target(parts_.key);
    const int looked = uninterrupted([&] { return calls().stat_name(name, &found); });
    if (looked < 0) return failure(looked, "look at");
    return object_stat(found);
  }
  SHW_RETURN_IF_ERROR(check_open());
  if (writes()) SHW_RETURN_IF_ERROR(settle_length());
  struct stat found{};
  const int looked = uninterrupted([&] { return calls().stat_file(open_file(), &found); });
  if (looked < 0) return descriptor_failure(looked, "look at");
  return object_stat(found);
}

}  // namespace shardwright::storage::internal
