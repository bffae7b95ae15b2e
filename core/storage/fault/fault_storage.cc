// SPDX-License-Identifier: Apache-2.0
//
// Asks a decision before each call; a failure is reported instead of the call. A write may be done
// in part before it fails, as a torn write is. An abort that is decided to fail does not happen,
// which is what a killed process leaves. Thread-safe as far as the decision is.
#include <algorithm>
#include <atomic>

#include "core/storage/backends.h"

namespace shardwright::storage {
namespace {

using Operation = StorageEvent::Operation;

// What the storage and its objects share; lives as long as any of them.
struct Decider {
  FaultDecision decide;
  std::atomic<int64_t> next = 0;
  Status ask(StorageEvent event, uint64_t* done_bytes = nullptr) {
    event.sequence = next++;
    uint64_t unused = 0;
    return decide(event, done_bytes != nullptr ? done_bytes : &unused);
  }
};
using DeciderPointer = std::shared_ptr<Decider>;  // co-owned by the storage and its objects

class FaultObject final : public StorageObject {
 public:
  FaultObject(DeciderPointer decider, std::string key, std::unique_ptr<StorageObject> inner)
      : decider_(std::move(decider)), key_(std::move(key)), inner_(std::move(inner)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kRead, offset, data.size()));
    return inner_->read_at(offset, data);
  }
  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    uint64_t done_bytes = 0;
    Status fault =
        decider_->ask({Operation::kWrite, key_, offset, data.size(), 0, data}, &done_bytes);
    if (fault.ok()) return inner_->write_at(offset, data);
    const auto part = data.first(static_cast<size_t>(std::min<uint64_t>(done_bytes, data.size())));
    // The injected failure is the one that is reported.
    if (!part.empty()) static_cast<void>(inner_->write_at(offset, part));
    return fault;
  }
  uint64_t cached_bytes(uint64_t offset, uint64_t size_bytes) override {
    return inner_->cached_bytes(offset, size_bytes);
  }
  Status truncate(uint64_t size_bytes) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kTruncate, size_bytes));
    return inner_->truncate(size_bytes);
  }
  Status sync() override {
    SHW_RETURN_IF_ERROR(ask(Operation::kSync));
    return inner_->sync();
  }
  Status commit(CommitCondition condition, std::string_view expected_version) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kCommit));
    return inner_->commit(condition, expected_version);
  }
  StorageObject& inner() { return *inner_; }
  Status ask_request(const IoRequest& request, uint64_t* done_bytes) {
    const bool is_write = request.operation == IoRequest::Operation::kWrite;
    return decider_->ask({is_write ? Operation::kWrite : Operation::kRead, key_, request.offset,
                          request.data.size(), 0, is_write ? request.data : std::span<std::byte>()},
                         done_bytes);
  }
  void abort() override {
    if (ask(Operation::kAbort).ok()) inner_->abort();
  }
  Status close() override {
    SHW_RETURN_IF_ERROR(ask(Operation::kClose));
    return inner_->close();
  }
  Result<ObjectStat> stat() override {
    SHW_RETURN_IF_ERROR(ask(Operation::kStat));
    return inner_->stat();
  }

 private:
  Status ask(Operation operation, uint64_t offset = 0, uint64_t size_bytes = 0) {
    return decider_->ask({operation, key_, offset, size_bytes, 0, {}});
  }
  DeciderPointer decider_;
  std::string key_;
  std::unique_ptr<StorageObject> inner_;
};

// Asks for each request when it is submitted; a write may be done in part before it fails.
class FaultQueue final : public IoQueue {
 public:
  FaultQueue(std::unique_ptr<IoQueue> inner, uint32_t depth) : inner_(std::move(inner)) {
    failed_.reserve(depth);
  }
  std::string_view engine() const override { return inner_->engine(); }
  void submit(const IoRequest& request) override {
    auto& object = static_cast<FaultObject&>(*request.object);
    const bool is_write = request.operation == IoRequest::Operation::kWrite;
    uint64_t done_bytes = 0;
    Status fault = object.ask_request(request, &done_bytes);
    if (fault.ok()) {
      IoRequest passed = request;
      passed.object = &object.inner();
      inner_->submit(passed);
      return;
    }
    const auto part = request.data.first(
        static_cast<size_t>(std::min<uint64_t>(done_bytes, request.data.size())));
    if (is_write && !part.empty()) static_cast<void>(object.inner().write_at(request.offset, part));
    failed_.push_back({request.tag, std::move(fault)});
  }
  void complete(std::vector<IoCompletion>* done) override {
    if (failed_.empty()) return inner_->complete(done);
    for (IoCompletion& each : failed_) done->push_back(std::move(each));
    failed_.clear();
  }

 private:
  std::unique_ptr<IoQueue> inner_;
  std::vector<IoCompletion> failed_;
};

class FaultStorage final : public Storage {
 public:
  FaultStorage(Storage& inner, FaultDecision decide) : inner_(inner) {
    decider_->decide = std::move(decide);
  }

  std::string_view name() const override { return inner_.name(); }
  uint64_t capabilities() const override { return inner_.capabilities(); }
  uint64_t alignment() const override { return inner_.alignment(); }
  uint64_t part_bytes() const override { return inner_.part_bytes(); }

  Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                              const OpenOptions& options) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kOpen, key));
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<StorageObject> object, inner_.open(key, options));
    return std::unique_ptr<StorageObject>(
        std::make_unique<FaultObject>(decider_, std::string(key), std::move(object)));
  }
  Result<std::unique_ptr<IoQueue>> open_queue(StorageObject& like, uint32_t depth) override {
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<IoQueue> queue,
                         inner_.open_queue(static_cast<FaultObject&>(like).inner(), depth));
    return std::unique_ptr<IoQueue>(std::make_unique<FaultQueue>(std::move(queue), depth));
  }
  Result<ObjectStat> stat(std::string_view key) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kStat, key));
    return inner_.stat(key);
  }
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const ListEntry&)>& sink) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kList, prefix));
    return inner_.list(prefix, delimiter, sink);
  }
  Status remove(std::string_view key) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kRemove, key));
    return inner_.remove(key);
  }
  Result<uint64_t> free_space(std::string_view key) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kFreeSpace, key));
    return inner_.free_space(key);
  }
  Status create_prefix(std::string_view prefix) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kCreatePrefix, prefix));
    return inner_.create_prefix(prefix);
  }
  Status sync_prefix(std::string_view prefix, bool* supported) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kSyncPrefix, prefix));
    return inner_.sync_prefix(prefix, supported);
  }
  Status sync_above(std::string_view prefix) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kSyncAbove, prefix));
    return inner_.sync_above(prefix);
  }
  Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) override {
    SHW_RETURN_IF_ERROR(ask(Operation::kLock, key));
    return inner_.try_lock(key, mode);
  }

 private:
  Status ask(Operation operation, std::string_view key) {
    return decider_->ask({operation, std::string(key), 0, 0, 0, {}});
  }
  Storage& inner_;  // of the caller, outlives this
  DeciderPointer decider_ = std::make_shared<Decider>();
};

}  // namespace

std::unique_ptr<Storage> make_fault_storage(Storage& inner, FaultDecision decide) {
  return std::make_unique<FaultStorage>(inner, std::move(decide));
}

}  // namespace shardwright::storage
