// SPDX-License-Identifier: Apache-2.0
//
// SerialStorage: a memory storage without positional writes, as an object store is: offsets must
// ascend without gaps, objects are published by commit, and it offers no conditions, no prefixes to
// sync and no free space. A write that breaks the rule fails the save. Thread-safe as its inner
// one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/storage/backends.h"

namespace shardwright::exec::test {

class SerialObject final : public storage::StorageObject {
 public:
  SerialObject(std::unique_ptr<storage::StorageObject> inner, bool writes)
      : inner_(std::move(inner)), writes_(writes) {}
  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    if (writes_) return failed_precondition("an object that is being written cannot be read");
    return inner_->read_at(offset, data);
  }
  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    if (offset != end_) {
      return internal_error(fmt::format("write at {} where {} is next", offset, end_));
    }
    end_ += data.size();
    return inner_->write_at(offset, data);
  }
  Status truncate(uint64_t) override { return unimplemented("no direct transfers"); }
  Status sync() override { return inner_->sync(); }
  Status commit(storage::CommitCondition condition, std::string_view version) override {
    if (condition != storage::CommitCondition::kNone) return unimplemented("no conditions");
    return inner_->commit(condition, version);
  }
  void abort() override { inner_->abort(); }
  Status close() override { return inner_->close(); }
  Result<storage::ObjectStat> stat() override { return inner_->stat(); }

 private:
  std::unique_ptr<storage::StorageObject> inner_;
  bool writes_;
  uint64_t end_ = 0;
};

class SerialStorage final : public storage::Storage {
 public:
  std::string_view name() const override { return "serial"; }
  uint64_t capabilities() const override { return storage::kAtomicCommit; }
  uint64_t alignment() const override { return 1; }
  uint64_t part_bytes() const override { return 0; }
  Result<std::unique_ptr<storage::StorageObject>> open(
      std::string_view key, const storage::OpenOptions& options) override {
    if (options.mode == storage::OpenMode::kCreateVisible)
      return unimplemented("objects become visible by commit");
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<storage::StorageObject> inner, inner_->open(key, options));
    return std::unique_ptr<storage::StorageObject>(
        std::make_unique<SerialObject>(std::move(inner), options.mode != storage::OpenMode::kRead));
  }
  Result<storage::ObjectStat> stat(std::string_view key) override { return inner_->stat(key); }
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const storage::ListEntry&)>& sink) override {
    return inner_->list(prefix, delimiter, sink);
  }
  Status remove(std::string_view key) override { return inner_->remove(key); }
  Result<uint64_t> free_space(std::string_view) override { return unimplemented("not offered"); }
  Status create_prefix(std::string_view prefix) override { return inner_->create_prefix(prefix); }
  Status sync_prefix(std::string_view prefix, bool* supported) override {
    return inner_->sync_prefix(prefix, supported);
  }
  Status sync_above(std::string_view) override { return {}; }
  Result<std::unique_ptr<storage::StorageLock>> try_lock(std::string_view,
                                                         storage::LockMode) override {
    return unimplemented("not offered");
  }

 private:
  std::shared_ptr<storage::Storage> inner_ = storage::make_memory_storage();
};

}  // namespace shardwright::exec::test
