// SPDX-License-Identifier: Apache-2.0
//
// ObjectStore: storage as object stores are, in memory. No positional writes, no truncation, no
// prefixes, no locks; objects are uploaded in parts of a least size that may come in any order,
// and appear when the upload is completed, under a condition on an opaque ETag; a listing skips
// what lies behind a delimiter without looking at it. Counts what it was asked. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/storage/storage.h"

namespace shardwright::test {

class ObjectStore final : public storage::Storage {
 public:
  // What the store holds and was asked, co-owned by the store and its objects.
  struct Bucket {
    struct Blob {
      std::vector<std::byte> bytes;
      std::string etag;
    };
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const Blob>, std::less<>> blobs;
    uint64_t uploads_completed = 0;
    std::atomic<uint64_t> parts = 0;
    std::atomic<uint64_t> keys_looked_at = 0;  // by listings
  };

  explicit ObjectStore(uint64_t part_bytes) : part_bytes_(part_bytes) {}
  Bucket& bucket() { return *bucket_; }

  std::string_view name() const override { return "object_store"; }
  uint64_t capabilities() const override {
    return storage::kAtomicCommit | storage::kConditionalCommit | storage::kConcurrentRead |
           storage::kMultipart | storage::kDurable;
  }
  uint64_t alignment() const override { return 1; }
  uint64_t part_bytes() const override { return part_bytes_; }
  Result<std::unique_ptr<storage::StorageObject>> open(
      std::string_view key, const storage::OpenOptions& options) override;
  Result<storage::ObjectStat> stat(std::string_view key) override;
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const storage::ListEntry&)>& sink) override;
  Status remove(std::string_view key) override;
  Result<uint64_t> free_space(std::string_view key) override;
  Status create_prefix(std::string_view prefix) override;
  Status sync_prefix(std::string_view prefix, bool* supported) override;
  Status sync_above(std::string_view prefix) override;
  Result<std::unique_ptr<storage::StorageLock>> try_lock(std::string_view key,
                                                         storage::LockMode mode) override;

 private:
  Result<std::shared_ptr<const Bucket::Blob>> find(std::string_view key);

  uint64_t part_bytes_;
  std::shared_ptr<Bucket> bucket_ = std::make_shared<Bucket>();
};

}  // namespace shardwright::test
