// SPDX-License-Identifier: Apache-2.0
//
// Storage in memory: a map from key to shared content. A kCreate object writes to content of its
// own that commit puts under the key; readers keep the content they opened, as readers of a
// replaced file do. Versions count up, so a condition never passes by accident. Sync and durability
// promise nothing here.
//
// Locks: Store::mutex guards the map; Content::mutex guards bytes (shared for reads and for writes
// below the length, exclusive for growth). Never both at once in the other order. Thread-safe.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/storage/backends.h"

namespace shardwright::storage {
namespace {

struct Content {
  mutable std::shared_mutex mutex;
  std::vector<std::byte> bytes;
  std::atomic<int64_t> modified_ns = 0;
  std::atomic<uint64_t> version = 0;
};
using ContentPointer = std::shared_ptr<Content>;  // co-owned by the map and by open objects

struct Store {
  std::mutex mutex;
  std::map<std::string, ContentPointer, std::less<>> objects;
  std::map<std::string, int64_t, std::less<>> prefixes;  // made by create_prefix: modification time
  std::map<std::string, int64_t, std::less<>> locked;    // shared holders, or kLockedAlone
  std::atomic<uint64_t> last_version = 0;
};
using StorePointer = std::shared_ptr<Store>;  // co-owned by the storage, its objects and its locks

std::string version_of(const Content& content) {
  return fmt::to_string(content.version.load());
}

ObjectStat stat_of(const Content& content) {  // content.mutex is held
  return {content.bytes.size(), content.modified_ns, version_of(content), 0};
}

int64_t wall_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Status missing(std::string_view key) {
  return not_found(fmt::format("no object '{}' in memory storage", escape_text(key)))
      .with_detail("file", key);
}

class MemoryObject final : public StorageObject {
 public:
  // temporary_key: under which an object in flight can be opened, "" = none.
  MemoryObject(StorePointer store, std::string key, std::string temporary_key, OpenMode mode,
               ContentPointer content)
      : store_(std::move(store)),
        key_(std::move(key)),
        temporary_key_(std::move(temporary_key)),
        mode_(mode),
        content_(std::move(content)) {}
  ~MemoryObject() override { forget_temporary_key(); }
  MemoryObject(const MemoryObject&) = delete;
  MemoryObject& operator=(const MemoryObject&) = delete;

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    SHW_RETURN_IF_ERROR(check_open());
    const std::shared_lock lock(content_->mutex);
    const uint64_t size = content_->bytes.size();
    const uint64_t found = offset >= size ? 0 : std::min<uint64_t>(size - offset, data.size());
    if (found < data.size()) {
      return out_of_range(fmt::format("{} ends at byte {}, wanted {} bytes at offset {}",
                                      escape_text(key_), size, data.size(), offset))
          .with_detail("file", key_)
          .with_detail("offset", fmt::to_string(offset))
          .with_detail("length", fmt::to_string(data.size()))
          .with_detail("found", fmt::to_string(found));
    }
    if (!data.empty()) std::memcpy(data.data(), content_->bytes.data() + offset, data.size());
    return {};
  }

  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    SHW_RETURN_IF_ERROR(check_writable());
    uint64_t end = 0;
    if (!checked_add<uint64_t>(offset, data.size(), &end))
      return out_of_range("write beyond 2^64 bytes");
    SHW_RETURN_IF_ERROR(grow(end));
    const std::shared_lock lock(content_->mutex);
    if (!data.empty()) std::memcpy(content_->bytes.data() + offset, data.data(), data.size());
    mark_changed();
    return {};
  }

  Status truncate(uint64_t) override {
    SHW_RETURN_IF_ERROR(check_writable());
    return unimplemented(fmt::format(
        "'{}' cannot be truncated: memory storage does not offer DIRECT_IO", escape_text(key_)));
  }

  Status sync() override { return check_writable(); }

  Status commit(CommitCondition condition, std::string_view expected_version) override {
    SHW_RETURN_IF_ERROR(check_writable());
    if (mode_ != OpenMode::kCreate)
      return failed_precondition("commit is for objects opened with kCreate");
    const std::lock_guard lock(store_->mutex);
    const auto current = store_->objects.find(key_);
    const bool exists = current != store_->objects.end();
    const std::string version = exists ? version_of(*current->second) : "";
    const bool lost = (condition == CommitCondition::kIfAbsent && exists) ||
                      (condition == CommitCondition::kIfVersion && version != expected_version);
    if (lost) {
      open_ = false;
      return aborted(
                 fmt::format("'{}' was changed by another writer: expected version {}, found {}",
                             escape_text(key_), expected_version, version))
          .with_detail("file", key_);
    }
    mark_changed();
    if (!temporary_key_.empty()) store_->objects.erase(temporary_key_);
    temporary_key_.clear();
    store_->objects.insert_or_assign(key_, content_);
    committed_ = true;
    return {};
  }

  void abort() override {
    forget_temporary_key();
    if (open_ && mode_ == OpenMode::kCreateVisible) {
      const std::lock_guard lock(store_->mutex);
      const auto found = store_->objects.find(key_);
      if (found != store_->objects.end() && found->second == content_) store_->objects.erase(found);
    }
    open_ = false;
  }

  Status close() override {
    forget_temporary_key();
    open_ = false;
    return {};
  }

  Result<ObjectStat> stat() override {
    const std::shared_lock lock(content_->mutex);
    return stat_of(*content_);
  }

 private:
  Status check_open() const {
    if (!open_) return failed_precondition(fmt::format("object '{}' is closed", escape_text(key_)));
    return {};
  }
  Status check_writable() const {
    SHW_RETURN_IF_ERROR(check_open());
    if (mode_ == OpenMode::kRead) return failed_precondition("the object was opened for reading");
    if (committed_) return failed_precondition("the object was committed");
    return {};
  }
  void forget_temporary_key() {
    if (temporary_key_.empty()) return;
    const std::lock_guard lock(store_->mutex);
    store_->objects.erase(temporary_key_);
    temporary_key_.clear();
  }
  void mark_changed() {
    content_->modified_ns = wall_clock_ns();
    content_->version = ++store_->last_version;
  }
  // Writers at disjoint ranges may run together: growth alone takes the lock exclusively.
  Status grow(uint64_t end) {
    {
      const std::shared_lock lock(content_->mutex);
      if (end <= content_->bytes.size()) return {};
    }
    const std::unique_lock lock(content_->mutex);
    if (end <= content_->bytes.size()) return {};
    if (end > content_->bytes.max_size())
      return resource_exhausted("memory", "object is larger than memory can be");
    content_->bytes.resize(static_cast<size_t>(end));
    return {};
  }

  StorePointer store_;
  std::string key_;
  std::string temporary_key_;
  OpenMode mode_;
  ContentPointer content_;
  bool open_ = true;
  bool committed_ = false;
};

constexpr int64_t kLockedAlone = -1;

class MemoryLock final : public StorageLock {
 public:
  MemoryLock(StorePointer store, std::string key)
      : store_(std::move(store)), key_(std::move(key)) {}
  ~MemoryLock() override {
    const std::lock_guard lock(store_->mutex);
    const auto held = store_->locked.find(key_);
    if (held->second != kLockedAlone) --held->second;
    if (held->second == kLockedAlone || held->second == 0) store_->locked.erase(held);
  }
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
  Status check() override { return {}; }  // no object stands for the lock

 private:
  StorePointer store_;
  std::string key_;
};

class MemoryStorage final : public Storage {
 public:
  std::string_view name() const override { return "memory"; }
  uint64_t capabilities() const override {
    return kPositionalWrite | kAtomicCommit | kConditionalCommit | kConcurrentRead;
  }
  uint64_t alignment() const override { return 1; }
  uint64_t part_bytes() const override { return 0; }

  Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                              const OpenOptions& options) override {
    if (options.mode == OpenMode::kRead && key.empty()) return missing(key);
    SHW_RETURN_IF_ERROR(check_key(key));
    if (options.mode == OpenMode::kRead || options.mode == OpenMode::kUpdate) {
      SHW_ASSIGN_OR_RETURN(ContentPointer content, find(key));
      return make_object(key, options.mode, std::move(content));
    }
    auto content = std::make_shared<Content>();
    content->modified_ns = wall_clock_ns();
    if (options.expected_bytes <= kMaxReserveBytes)
      content->bytes.reserve(static_cast<size_t>(options.expected_bytes));
    std::string temporary_key;
    if (options.mode == OpenMode::kCreate && !options.temporary_suffix.empty())
      temporary_key = fmt::format("{}.{}", key, options.temporary_suffix);
    if (options.mode == OpenMode::kCreateVisible || !temporary_key.empty()) {
      const std::string visible = temporary_key.empty() ? std::string(key) : temporary_key;
      const std::lock_guard lock(store_->mutex);
      if (store_->objects.contains(visible)) {
        return already_exists(
                   fmt::format("object '{}' exists in memory storage", escape_text(visible)))
            .with_detail("file", visible);
      }
      content->version = ++store_->last_version;
      store_->objects.emplace(visible, content);
    }
    return make_object(key, options.mode, std::move(content), std::move(temporary_key));
  }

  Result<ObjectStat> stat(std::string_view key) override {
    if (key.empty()) return missing(key);
    SHW_RETURN_IF_ERROR(check_key(key));
    SHW_ASSIGN_OR_RETURN(const ContentPointer content, find(key));
    const std::shared_lock lock(content->mutex);
    return stat_of(*content);
  }

  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const ListEntry&)>& sink) override {
    std::map<std::string, std::pair<ContentPointer, int64_t>> matches;
    {
      const std::lock_guard lock(store_->mutex);
      for (auto each = store_->objects.lower_bound(prefix); each != store_->objects.end(); ++each) {
        if (!each->first.starts_with(prefix)) break;
        matches.emplace(each->first, std::pair(each->second, int64_t{0}));
      }
      for (const auto& [name, modified_ns] : store_->prefixes) {
        const std::string marker = name + "/";
        if (marker.starts_with(prefix) && !holds_objects(marker)) {
          matches.emplace(marker, std::pair(ContentPointer(), modified_ns));
        }
      }
    }
    std::string_view last;
    for (const auto& [key, match] : matches) {
      const ContentPointer& content = match.first;
      const std::string_view level = delimiter == kDelimiter ? level_of(key, prefix) : key;
      if (level == last) continue;
      last = level;
      ListEntry entry{std::string(level), {0, match.second, ""}};
      if (content != nullptr && level.size() == key.size()) {
        const std::shared_lock lock(content->mutex);
        entry.stat = stat_of(*content);
      }
      SHW_RETURN_IF_ERROR(sink(entry));
    }
    return {};
  }

  Status remove(std::string_view key) override {
    const bool is_prefix = key.ends_with('/');
    const std::string_view bare = is_prefix ? key.substr(0, key.size() - 1) : key;
    SHW_RETURN_IF_ERROR(check_key(bare));
    const std::lock_guard lock(store_->mutex);
    if (is_prefix) {
      if (!holds_objects(key)) erase_prefix(bare);
      return {};
    }
    const auto found = store_->objects.find(key);
    if (found == store_->objects.end()) return {};
    store_->objects.erase(found);
    const size_t slash = bare.rfind('/');
    if (slash != std::string_view::npos && !holds_objects(bare.substr(0, slash + 1))) {
      erase_prefix(bare.substr(0, slash));
    }
    return {};
  }

  Result<uint64_t> free_space(std::string_view) override {
    return unimplemented("memory storage does not tell how much space is free");
  }

  Status create_prefix(std::string_view prefix) override {
    SHW_RETURN_IF_ERROR(check_key(prefix));
    const std::lock_guard lock(store_->mutex);
    if (store_->prefixes.contains(prefix) || holds_objects(std::string(prefix) + "/")) {
      return already_exists(
                 fmt::format("prefix '{}' exists in memory storage", escape_text(prefix)))
          .with_detail("file", prefix);
    }
    store_->prefixes.emplace(prefix, wall_clock_ns());
    return {};
  }

  Status sync_prefix(std::string_view, bool* supported) override {
    if (supported != nullptr) *supported = false;  // nothing here survives the process
    return {};
  }

  Status sync_above(std::string_view) override { return {}; }

  Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) override {
    SHW_RETURN_IF_ERROR(check_key(key));
    const std::lock_guard lock(store_->mutex);
    const auto held = store_->locked.find(key);
    const bool free = held == store_->locked.end();
    const bool alone = mode == LockMode::kExclusive;
    if (!free && (alone || held->second == kLockedAlone)) return std::unique_ptr<StorageLock>();
    if (free) {
      store_->locked.emplace(key, alone ? kLockedAlone : 1);
    } else {
      ++held->second;
    }
    return std::unique_ptr<StorageLock>(std::make_unique<MemoryLock>(store_, std::string(key)));
  }

 private:
  static constexpr uint64_t kMaxReserveBytes = uint64_t{1} << 30;  // a hint may not exhaust memory

  void erase_prefix(std::string_view name) {  // store_->mutex is held
    const auto found = store_->prefixes.find(name);
    if (found != store_->prefixes.end()) store_->prefixes.erase(found);
  }
  bool holds_objects(std::string_view prefix) const {  // store_->mutex is held
    const auto first = store_->objects.lower_bound(prefix);
    return first != store_->objects.end() && first->first.starts_with(prefix);
  }
  Result<ContentPointer> find(std::string_view key) {
    const std::lock_guard lock(store_->mutex);
    const auto found = store_->objects.find(key);
    if (found == store_->objects.end()) return missing(key);
    return found->second;
  }
  std::unique_ptr<StorageObject> make_object(std::string_view key, OpenMode mode,
                                             ContentPointer content,
                                             std::string temporary_key = {}) {
    return std::make_unique<MemoryObject>(store_, std::string(key), std::move(temporary_key), mode,
                                          std::move(content));
  }

  StorePointer store_ = std::make_shared<Store>();
};

}  // namespace

std::unique_ptr<Storage> make_memory_storage() {
  return std::make_unique<MemoryStorage>();
}

}  // namespace shardwright::storage
