// SPDX-License-Identifier: Apache-2.0
//
// Tells an observer of each call before it is passed on, in the order in which calls begin.
// Thread-safe as far as the observer is.
#include <algorithm>
#include <atomic>
#include <vector>

#include "core/storage/backends.h"

namespace shardwright::storage {
namespace {

using Operation = StorageEvent::Operation;

// What the storage and its objects share; lives as long as any of them.
struct Observer {
  std::function<void(const StorageEvent&)> observe;
  std::atomic<int64_t> next = 0;
  void tell(StorageEvent event) {
    event.sequence = next++;
    observe(event);
  }
};
using ObserverPointer = std::shared_ptr<Observer>;  // co-owned by the storage and its objects

class RecordingObject final : public StorageObject {
 public:
  RecordingObject(ObserverPointer observer, std::string key, std::unique_ptr<StorageObject> inner)
      : observer_(std::move(observer)), key_(std::move(key)), inner_(std::move(inner)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    tell(Operation::kRead, offset, data.size());
    return inner_->read_at(offset, data);
  }
  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    observer_->tell({Operation::kWrite, key_, offset, data.size(), 0, data});
    return inner_->write_at(offset, data);
  }
  uint64_t cached_bytes(uint64_t offset, uint64_t size_bytes) override {
    return inner_->cached_bytes(offset, size_bytes);
  }
  Status truncate(uint64_t size_bytes) override {
    tell(Operation::kTruncate, size_bytes, 0);
    return inner_->truncate(size_bytes);
  }
  Status sync() override {
    tell(Operation::kSync, 0, 0);
    return inner_->sync();
  }
  Status commit(CommitCondition condition, std::string_view expected_version) override {
    tell(Operation::kCommit, 0, 0);
    return inner_->commit(condition, expected_version);
  }
  StorageObject& inner() { return *inner_; }
  void tell_request(const IoRequest& request) {
    const bool is_write = request.operation == IoRequest::Operation::kWrite;
    observer_->tell({is_write ? Operation::kWrite : Operation::kRead, key_, request.offset,
                     request.data.size(), 0, is_write ? request.data : std::span<std::byte>()});
  }
  void abort() override {
    tell(Operation::kAbort, 0, 0);
    inner_->abort();
  }
  Status close() override {
    tell(Operation::kClose, 0, 0);
    return inner_->close();
  }
  Result<ObjectStat> stat() override {
    tell(Operation::kStat, 0, 0);
    return inner_->stat();
  }

 private:
  void tell(Operation operation, uint64_t offset, uint64_t size_bytes) {
    observer_->tell({operation, key_, offset, size_bytes, 0, {}});
  }
  ObserverPointer observer_;
  std::string key_;
  std::unique_ptr<StorageObject> inner_;
};

// Tells of a read when it is submitted and of a write when it has ended: what a sync covers is what
// ended before it.
class RecordingQueue final : public IoQueue {
 public:
  explicit RecordingQueue(std::unique_ptr<IoQueue> inner) : inner_(std::move(inner)) {}
  std::string_view engine() const override { return inner_->engine(); }
  void submit(const IoRequest& request) override {
    auto& object = static_cast<RecordingObject&>(*request.object);
    if (request.operation == IoRequest::Operation::kRead) {
      object.tell_request(request);
    } else {
      writes_.push_back(request);
    }
    IoRequest passed = request;
    passed.object = &object.inner();
    inner_->submit(passed);
  }
  void complete(std::vector<IoCompletion>* done) override {
    const size_t known = done->size();
    inner_->complete(done);
    for (size_t i = known; i < done->size(); ++i) {
      const auto write = std::ranges::find(writes_, (*done)[i].tag, &IoRequest::tag);
      if (write == writes_.end()) continue;
      static_cast<RecordingObject&>(*write->object).tell_request(*write);
      writes_.erase(write);
    }
  }

 private:
  std::unique_ptr<IoQueue> inner_;
  std::vector<IoRequest> writes_;  // in flight
};

class RecordingStorage final : public Storage {
 public:
  RecordingStorage(Storage& inner, std::function<void(const StorageEvent&)> observe)
      : inner_(inner) {
    observer_->observe = std::move(observe);
  }

  std::string_view name() const override { return inner_.name(); }
  uint64_t capabilities() const override { return inner_.capabilities(); }
  uint64_t alignment() const override { return inner_.alignment(); }
  uint64_t part_bytes() const override { return inner_.part_bytes(); }

  Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                              const OpenOptions& options) override {
    observer_->tell({Operation::kOpen, std::string(key), 0, 0, 0, {}, options.mode});
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<StorageObject> object, inner_.open(key, options));
    return std::unique_ptr<StorageObject>(
        std::make_unique<RecordingObject>(observer_, std::string(key), std::move(object)));
  }
  Result<std::unique_ptr<IoQueue>> open_queue(StorageObject& like, uint32_t depth) override {
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue,
                         inner_.open_queue(static_cast<RecordingObject&>(like).inner(), depth));
    return std::unique_ptr<IoQueue>(std::make_unique<RecordingQueue>(std::move(queue)));
  }
  Result<ObjectStat> stat(std::string_view key) override {
    tell(Operation::kStat, key);
    return inner_.stat(key);
  }
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const ListEntry&)>& sink) override {
    tell(Operation::kList, prefix);
    return inner_.list(prefix, delimiter, sink);
  }
  Status remove(std::string_view key) override {
    tell(Operation::kRemove, key);
    return inner_.remove(key);
  }
  Result<uint64_t> free_space(std::string_view key) override {
    tell(Operation::kFreeSpace, key);
    return inner_.free_space(key);
  }
  Status create_prefix(std::string_view prefix) override {
    tell(Operation::kCreatePrefix, prefix);
    return inner_.create_prefix(prefix);
  }
  Status sync_prefix(std::string_view prefix, bool* supported) override {
    tell(Operation::kSyncPrefix, prefix);
    return inner_.sync_prefix(prefix, supported);
  }
  Status sync_above(std::string_view prefix) override {
    tell(Operation::kSyncAbove, prefix);
    return inner_.sync_above(prefix);
  }
  Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) override {
    tell(Operation::kLock, key);
    return inner_.try_lock(key, mode);
  }

 private:
  void tell(Operation operation, std::string_view key) {
    observer_->tell({operation, std::string(key), 0, 0, 0, {}});
  }
  Storage& inner_;  // of the caller, outlives this
  ObserverPointer observer_ = std::make_shared<Observer>();
};

}  // namespace

std::unique_ptr<Storage> make_recording_storage(Storage& inner,
                                                std::function<void(const StorageEvent&)> observe) {
  return std::make_unique<RecordingStorage>(inner, std::move(observe));
}

}  // namespace shardwright::storage
