// SPDX-License-Identifier: Apache-2.0
//
// PosixObject: one open file of posix storage.
//
// Direct transfers: when asked for, a second descriptor with O_DIRECT carries the part of a
// transfer whose address, offset and size are multiples of kDirectAlignment; head and tail go
// through the page cache. A page is never carried by both, because transfers are disjoint and cut
// at page boundaries. Where O_DIRECT is refused, RWF_DONTCACHE is tried. A failed sync or close is
// remembered: everything after it fails with the same status.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "core/storage/posix/directory_internal.h"
#include "core/storage/storage.h"

namespace shardwright::storage::internal {

inline constexpr uint64_t kDirectAlignment = 4096;

ObjectStat object_stat(const struct stat& found);

class PosixObject final : public StorageObject {
 public:
  struct Parts {
    std::shared_ptr<const Root> root;  // co-owned by the storage and its objects
    Parent parent;                     // no directory for the root read as an object
    std::string key;
    std::string temporary_name;  // kCreate: the name until commit
    Descriptor file;
    OpenOptions options;
  };
  // Takes over an open file of the given mode; opens the direct descriptor when asked for.
  explicit PosixObject(Parts parts) noexcept;
  ~PosixObject() override;

  Status read_at(uint64_t offset, std::span<std::byte> data) override;
  Status write_at(uint64_t offset, std::span<const std::byte> data) override;
  Status truncate(uint64_t size_bytes) override;
  Status sync() override;
  Status commit(CommitCondition condition, std::string_view expected_version) override;
  void abort() override;
  Status close() override;
  Result<ObjectStat> stat() override;
  uint64_t cached_bytes(uint64_t offset, uint64_t size_bytes) override;

  // What RingQueue needs. The descriptor for a transfer whose aligned part may go to the device
  // directly, -1 when the object is to carry it out itself; *status: why it may do neither.
  int ring_descriptor(bool is_write, uint64_t offset, std::span<std::byte> data, Status* status);
  Status ring_failure(bool is_write, uint64_t offset, std::span<std::byte> data,
                      int64_t negative_errno) const;
  void note_written(uint64_t end);
  // Whether io_uring reads and writes here without threads of the kernel; of the mount, so that it
  // is asked once for each.
  bool probe_ring() const;
  dev_t device() const { return device_; }

  // Reserves space for options.expected_bytes; a system that cannot is no failure, a full one is.
  Status preallocate();

 private:
  enum class State { kOpen, kCommitted, kClosed };
  template <bool kWrite, typename Span>
  Status transfer(uint64_t offset, Span data);
  template <bool kWrite, typename Span>
  Status transfer_direct(uint64_t* offset, Span* data);
  template <bool kWrite, typename Span>
  Status transfer_buffered(uint64_t offset, Span data);

  uint64_t count_by_samples(uint64_t offset, uint64_t size_bytes) const;
  Status check_open() const;
  Status check_writable() const;
  Status remember(Status failure);
  Status settle_length();
  Status close_descriptors();
  Status publish(CommitCondition condition, std::string_view expected_version);
  Status rename_absent(const DirectoryName& from, const DirectoryName& to);
  Status in_doubt(const Status& named) const;
  void open_direct();
  void remove_name_of_this();
  bool writes() const { return parts_.options.mode != OpenMode::kRead; }
  OpenFile open_file() const { return {parts_.file.get(), parts_.key}; }
  SystemCalls& calls() const { return parts_.root->calls(); }
  Status failure(int error, std::string_view doing) const {
    return parts_.root->failure(error, doing, parts_.key);
  }
  Status descriptor_failure(int error, std::string_view doing) const {
    return parts_.root->open_failure(error, doing, parts_.key);
  }

  Parts parts_;
  Descriptor direct_;
  dev_t device_ = 0;  // of the mount, known where transfers may be direct
  State state_ = State::kOpen;
  std::atomic<bool> direct_usable_ = false;
  std::atomic<bool> uncached_usable_ = false;  // RWF_DONTCACHE
  std::atomic<bool> dirty_ = false;            // written since the last sync
  std::atomic<uint64_t> written_end_ = 0;
  uint64_t preallocated_bytes_ = 0;  // 0 = the length is what was written
  mutable std::mutex failure_mutex_;
  Status first_failure_;  // guarded by failure_mutex_
};

}  // namespace shardwright::storage::internal
