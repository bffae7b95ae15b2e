// SPDX-License-Identifier: Apache-2.0
//
// Uploads keep their parts by offset until they are completed; what is wrong with them (a hole, an
// overlap, a part that is too small) is found then, as object stores do.
#include "tests/support/object_store.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace shardwright::test {
namespace {

using storage::CommitCondition;
using storage::ObjectStat;
using storage::OpenMode;
using Bucket = ObjectStore::Bucket;
using BlobPointer = std::shared_ptr<const Bucket::Blob>;

constexpr int64_t kModifiedNs = 1;

ObjectStat stat_of(const Bucket::Blob& blob) {
  return {blob.bytes.size(), kModifiedNs, blob.etag};
}

class Download final : public storage::StorageObject {
 public:
  explicit Download(BlobPointer blob) : blob_(std::move(blob)) {}
  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    if (blob_ == nullptr) return failed_precondition("the object is closed");
    const uint64_t size = blob_->bytes.size();
    const uint64_t found = offset >= size ? 0 : std::min<uint64_t>(size - offset, data.size());
    if (found < data.size()) {
      return out_of_range("the object ends before")
          .with_detail("offset", fmt::to_string(offset))
          .with_detail("length", fmt::to_string(data.size()))
          .with_detail("found", fmt::to_string(found));
    }
    if (found > 0) std::memcpy(data.data(), blob_->bytes.data() + offset, found);
    return {};
  }
  Status write_at(uint64_t, std::span<const std::byte>) override {
    return failed_precondition("the object was opened for reading");
  }
  Status truncate(uint64_t) override { return unimplemented("objects have no truncation"); }
  Status sync() override { return failed_precondition("the object was opened for reading"); }
  Status commit(CommitCondition, std::string_view) override {
    return failed_precondition("the object was opened for reading");
  }
  void abort() override { blob_ = nullptr; }
  Status close() override {
    blob_ = nullptr;
    return {};
  }
  Result<ObjectStat> stat() override { return stat_of(*blob_); }

 private:
  BlobPointer blob_;
};

class Upload final : public storage::StorageObject {
 public:
  Upload(std::shared_ptr<Bucket> bucket, std::string key, OpenMode mode, uint64_t part_bytes)
      : bucket_(std::move(bucket)), key_(std::move(key)), mode_(mode), part_bytes_(part_bytes) {}

  Status read_at(uint64_t, std::span<std::byte>) override {
    return failed_precondition("an upload cannot be read");
  }
  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    const std::lock_guard lock(mutex_);
    if (!open_) return failed_precondition("the upload has ended");
    if (!data.empty()) parts_[offset].assign(data.begin(), data.end());
    ++bucket_->parts;
    return {};
  }
  Status truncate(uint64_t) override { return unimplemented("objects have no truncation"); }
  Status sync() override { return {}; }  // a part is safe when it was taken
  Status commit(CommitCondition condition, std::string_view expected_version) override {
    if (mode_ != OpenMode::kCreate) return failed_precondition("commit is for kCreate");
    return complete(condition, expected_version);
  }
  void abort() override { open_ = false; }
  Status close() override {
    if (!open_) return {};
    if (mode_ == OpenMode::kCreateVisible) return complete(CommitCondition::kIfAbsent, {});
    open_ = false;
    return {};
  }
  Result<ObjectStat> stat() override {
    const std::lock_guard lock(mutex_);
    uint64_t size = 0;
    for (const auto& [offset, part] : parts_) size = std::max(size, offset + part.size());
    return ObjectStat{size, kModifiedNs, "", 0};
  }

 private:
  Status complete(CommitCondition condition, std::string_view expected_version) {
    const std::lock_guard own(mutex_);
    if (!open_) return failed_precondition("the upload has ended");
    open_ = false;
    auto blob = std::make_shared<Bucket::Blob>();
    for (const auto& [offset, part] : parts_) {
      if (offset != blob->bytes.size())
        return invalid_argument(
            fmt::format("a part at {} where {} is next", offset, blob->bytes.size()));
      if (part.size() < part_bytes_ && offset != parts_.rbegin()->first)
        return invalid_argument(fmt::format("a part of {} bytes at {}, the least is {}",
                                            part.size(), offset, part_bytes_));
      blob->bytes.insert(blob->bytes.end(), part.begin(), part.end());
    }
    const std::lock_guard lock(bucket_->mutex);
    const auto found = bucket_->blobs.find(key_);
    const bool exists = found != bucket_->blobs.end();
    const bool same = exists && found->second->etag == expected_version;
    if ((condition == CommitCondition::kIfAbsent && exists) ||
        (condition == CommitCondition::kIfVersion && !same))
      return aborted("precondition failed").with_detail("file", key_);
    blob->etag =
        fmt::format("\"{:x}-{}\"", ++bucket_->uploads_completed * 2654435761U, parts_.size());
    bucket_->blobs.insert_or_assign(key_, std::move(blob));
    return {};
  }

  std::shared_ptr<Bucket> bucket_;
  std::string key_;
  OpenMode mode_;
  uint64_t part_bytes_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<std::byte>> parts_;
  bool open_ = true;
};

}  // namespace

Result<BlobPointer> ObjectStore::find(std::string_view key) {
  if (!key.empty()) SHW_RETURN_IF_ERROR(storage::check_key(key));
  const std::lock_guard lock(bucket_->mutex);
  const auto found = bucket_->blobs.find(key);
  if (found == bucket_->blobs.end()) return not_found(fmt::format("no object '{}'", key));
  return found->second;
}

Result<std::unique_ptr<storage::StorageObject>> ObjectStore::open(
    std::string_view key, const storage::OpenOptions& options) {
  if (options.mode == OpenMode::kRead) {
    SHW_ASSIGN_OR_RETURN(BlobPointer blob, find(key));
    return std::unique_ptr<storage::StorageObject>(std::make_unique<Download>(std::move(blob)));
  }
  SHW_RETURN_IF_ERROR(storage::check_key(key));
  if (options.mode == OpenMode::kCreateVisible && find(key).ok())
    return already_exists(fmt::format("there is an object '{}'", key));
  const uint64_t least = options.mode == OpenMode::kCreate ? part_bytes_ : 0;
  return std::unique_ptr<storage::StorageObject>(
      std::make_unique<Upload>(bucket_, std::string(key), options.mode, least));
}

Result<ObjectStat> ObjectStore::stat(std::string_view key) {
  SHW_ASSIGN_OR_RETURN(const BlobPointer blob, find(key));
  return stat_of(*blob);
}

Status ObjectStore::list(std::string_view prefix, char delimiter,
                         const std::function<Status(const storage::ListEntry&)>& sink) {
  std::string next(prefix);
  while (true) {
    storage::ListEntry entry;
    {
      const std::lock_guard lock(bucket_->mutex);
      const auto found = bucket_->blobs.lower_bound(next);
      if (found == bucket_->blobs.end() || !found->first.starts_with(prefix)) return {};
      entry = {found->first, stat_of(*found->second)};
    }
    ++bucket_->keys_looked_at;
    next = entry.key + std::string(1, '\0');
    const std::string_view level = storage::level_of(entry.key, prefix);
    if (delimiter == storage::kDelimiter && level.size() < entry.key.size()) {
      entry = {std::string(level), {}};
      next = entry.key.substr(0, entry.key.size() - 1) + static_cast<char>('/' + 1);
    }
    SHW_RETURN_IF_ERROR(sink(entry));
  }
}

Status ObjectStore::remove(std::string_view key) {
  if (key.ends_with('/')) return {};
  SHW_RETURN_IF_ERROR(storage::check_key(key));
  const std::lock_guard lock(bucket_->mutex);
  const auto found = bucket_->blobs.find(key);
  if (found != bucket_->blobs.end()) bucket_->blobs.erase(found);
  return {};
}

Result<uint64_t> ObjectStore::free_space(std::string_view) {
  return unimplemented("a bucket has no end");
}

Status ObjectStore::create_prefix(std::string_view prefix) {
  SHW_RETURN_IF_ERROR(storage::check_key(prefix));
  bool taken = false;
  static_cast<void>(list(std::string(prefix) + "/", storage::kDelimiter, [&](const auto&) {
    taken = true;
    return cancelled("one is enough");
  }));
  return taken ? already_exists(fmt::format("'{}' holds objects", prefix)) : Status();
}

Status ObjectStore::sync_prefix(std::string_view, bool* supported) {
  if (supported != nullptr) *supported = true;
  return {};
}

Status ObjectStore::sync_above(std::string_view) {
  return {};
}

Result<std::unique_ptr<storage::StorageLock>> ObjectStore::try_lock(std::string_view key,
                                                                    storage::LockMode) {
  SHW_RETURN_IF_ERROR(storage::check_key(key));
  return unimplemented("a bucket has no locks");
}

}  // namespace shardwright::test
