// SPDX-License-Identifier: Apache-2.0
//
// Answers of the table that its rules do not know are faults of the function: INTERNAL, naming
// slot, key, storage and what was answered, so that nobody looks for damage in the bytes.
//
// What the table does not have is either done without (prefixes: keys are enough), answered from
// what this side knows (size of an object being written) or UNIMPLEMENTED, which callers treat as
// skipped.
#include "capi/adapters/storage_adapter.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/version.h"
#include "core/base/text.h"

namespace shardwright::capi {
namespace {

using storage::CommitCondition;
using storage::ListEntry;
using storage::LockMode;
using storage::ObjectStat;
using storage::OpenMode;
using storage::OpenOptions;
using storage::Storage;
using storage::StorageLock;
using storage::StorageObject;

// The table and what it hangs on; co-owned by the storage and its open objects.
struct HostTable {
  shw_storage_vtable table{};
  std::string name;
  std::shared_ptr<void> owner;  // the plugin that the functions lie in
  ~HostTable() {
    if (table.release == nullptr) return;
    const CallbackScope scope;
    table.release(table.user);
  }
};
using Host = std::shared_ptr<HostTable>;

// "write_at of 'key' in storage 'name'".
std::string doing(const HostTable& host, const char* slot, std::string_view key) {
  return fmt::format("{} of '{}' in storage '{}'", slot, escape_text(key), host.name);
}

// Calls a slot with an error pointer and turns its answer into a Status.
template <typename Call>
Status call_host(const HostTable& host, const char* slot, std::string_view key, Call&& call) {
  shw_error* error = nullptr;
  shw_status code = SHW_OK;
  {
    const CallbackScope scope;
    code = call(&error);
  }
  if (code == SHW_OK && error == nullptr) return {};
  return status_from_host(code, error, doing(host, slot, key).c_str());
}

Status fault(const HostTable& host, const char* slot, std::string_view key, std::string what) {
  return internal_error(fmt::format("{} {}; this is a fault of that function",
                                    doing(host, slot, key), std::move(what)))
      .with_detail("file", key);
}

constexpr uint64_t kMaxObjectSize = INT64_MAX;  // what positions in a file can say
constexpr uint64_t kMaxVersionBytes = 1024;     // an ETag has about 40

// What the sink of one stat or listing needs.
struct Walk {
  const HostTable* host;
  const char* slot;
  std::string_view prefix;  // or the key of a stat
  const std::function<Status(const ListEntry&)>* sink;
  Status failure;
};

Status check_entry(const Walk& walk, const shw_storage_entry& entry) {
  const auto wrong = [&walk](std::string what) {
    return fault(*walk.host, walk.slot, walk.prefix, std::move(what));
  };
  if (entry.key == nullptr) return wrong("gave an entry without a key");
  const std::string_view key(entry.key, entry.key_size);
  if (!key.starts_with(walk.prefix)) {
    return wrong(fmt::format("gave '{}', which does not begin with that", escape_text(key, 256)));
  }
  if (entry.size > kMaxObjectSize)
    return wrong(fmt::format("gave '{}' a size of {} bytes", escape_text(key, 256), entry.size));
  if (entry.version == nullptr && entry.version_size != 0) {
    return wrong(fmt::format("gave '{}' a version of {} bytes at NULL", escape_text(key, 256),
                             entry.version_size));
  }
  if (entry.version_size > kMaxVersionBytes) {
    return wrong(fmt::format("gave '{}' a version of {} bytes; at most {} are taken",
                             escape_text(key, 256), entry.version_size, kMaxVersionBytes));
  }
  if (entry.version_size != 0 && !is_valid_utf8({entry.version, entry.version_size}))
    return wrong(fmt::format("gave '{}' a version that is no UTF-8", escape_text(key, 256)));
  return {};
}

ListEntry list_entry(const shw_storage_entry& entry) {
  ListEntry listed{std::string(entry.key, entry.key_size), {entry.size, entry.modified_ns, ""}};
  if (entry.version_size != 0) listed.stat.version.assign(entry.version, entry.version_size);
  return listed;
}

shw_status take_entry(void* erased, const shw_storage_entry* given) {
  auto* walk = static_cast<Walk*>(erased);
  try {
    shw_storage_entry entry;
    walk->failure = read_struct(given, "entry", &entry);
    if (!walk->failure.ok()) return static_cast<shw_status>(walk->failure.code());
    walk->failure = check_entry(*walk, entry);
    if (!walk->failure.ok()) return static_cast<shw_status>(walk->failure.code());
    walk->failure = (*walk->sink)(list_entry(entry));
  } catch (const std::bad_alloc&) {
    return SHW_RESOURCE_EXHAUSTED;
  } catch (...) {
    return SHW_INTERNAL;
  }
  return static_cast<shw_status>(walk->failure.code());
}

Result<ObjectStat> stat_key(const HostTable& host, std::string_view key) {
  std::optional<ObjectStat> found;
  const std::function<Status(const ListEntry&)> sink = [&](const ListEntry& entry) {
    if (entry.key != key) {
      return fault(host, "stat", key, fmt::format("told of '{}'", escape_text(entry.key, 256)));
    }
    found = entry.stat;
    return Status();
  };
  Walk walk{&host, "stat", key, &sink, {}};
  const Status status = call_host(host, "stat", key, [&](shw_error** error) {
    return host.table.stat(host.table.user, key.data(), key.size(), &take_entry, &walk, error);
  });
  SHW_RETURN_IF_ERROR(walk.failure.ok() ? status : walk.failure);
  if (!found.has_value()) return fault(host, "stat", key, "succeeded without calling the sink");
  return *std::move(found);
}

// The root of a table is never an object: its keys are not empty.
Status root_is_no_object(const HostTable& host) {
  return not_found(fmt::format("the root of storage '{}' is no object", escape_text(host.name)))
      .with_detail("file", "");
}

class HostObject : public StorageObject {
 public:
  HostObject(Host host, std::string key, OpenMode mode, void* object)
      : host_(std::move(host)), key_(std::move(key)), mode_(mode), object_(object) {}
  ~HostObject() override { close_once(); }

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    uint64_t done = 0;
    const Status status = call("read_at", [&](shw_error** error) {
      return host_->table.read_at(host_->table.user, object_, offset, data.data(), data.size(),
                                  &done, error);
    });
    if (!status.ok() && status.code() != StatusCode::kOutOfRange) return status;
    SHW_RETURN_IF_ERROR(check_count(status, offset, data.size(), done));
    if (status.ok()) return {};
    return Status(status)
        .with_detail("offset", std::to_string(offset))
        .with_detail("length", std::to_string(data.size()))
        .with_detail("found", std::to_string(done));
  }

  Status write_at(uint64_t offset, std::span<const std::byte> data) override {
    SHW_RETURN_IF_ERROR(call("write_at", [&](shw_error** error) {
      return host_->table.write_at(host_->table.user, object_, offset, data.data(), data.size(),
                                   error);
    }));
    const uint64_t end = offset + data.size();
    uint64_t seen = written_.load();
    while (seen < end && !written_.compare_exchange_weak(seen, end)) {
    }
    return {};
  }

  Status truncate(uint64_t size_bytes) override {
    if (host_->table.truncate == nullptr) {
      return unimplemented(
          fmt::format("{}: the table has no such slot", doing(*host_, "truncate", key_)));
    }
    SHW_RETURN_IF_ERROR(call("truncate", [&](shw_error** error) {
      return host_->table.truncate(host_->table.user, object_, size_bytes, error);
    }));
    written_ = size_bytes;
    return {};
  }

  Status sync() override {
    return call("sync", [&](shw_error** error) {
      return host_->table.sync(host_->table.user, object_, error);
    });
  }

  Status commit(CommitCondition condition, std::string_view expected_version) override {
    return call("commit", [&](shw_error** error) {
      return host_->table.commit(host_->table.user, object_, static_cast<int32_t>(condition),
                                 expected_version.data(), expected_version.size(), error);
    });
  }

  void abort() override {
    if (object_ == nullptr) return;
    const CallbackScope scope;
    host_->table.abort(host_->table.user, object_);
  }

  Status close() override {
    close_once();
    return {};
  }

  Result<ObjectStat> stat() override {
    if (mode_ != OpenMode::kRead) return ObjectStat{written_.load(), 0, "", 0};
    Result<ObjectStat> stat = stat_key(*host_, key_);
    if (stat.ok()) size_ = stat->size_bytes;
    return stat;
  }

 private:
  // The count of read_at: all that was asked for, or less where the object ends.
  Status check_count(const Status& status, uint64_t offset, uint64_t size, uint64_t done) const {
    const uint64_t known = size_.load();
    std::string rule;
    if (status.ok() && done != size) {
      rule = "OK is for all of them, OUT_OF_RANGE for fewer at the end of the object";
    } else if (!status.ok() && done >= size) {
      rule = "OUT_OF_RANGE is for fewer than that";
    } else if (!status.ok() && offset < known && done < known - offset) {
      rule = fmt::format("stat gives the object {} bytes", known);
    }
    if (rule.empty()) return {};
    return fault(*host_, "read_at", key_,
                 fmt::format("answered {} with {} bytes of the {} asked for at offset {}, but {}",
                             status.ok() ? "OK" : "OUT_OF_RANGE", done, size, offset, rule));
  }

  template <typename Call>
  Status call(const char* slot, Call&& body) {
    if (object_ == nullptr) {
      return failed_precondition(
          fmt::format("{}: the object is closed", doing(*host_, slot, key_)));
    }
    return call_host(*host_, slot, key_, body);
  }

  void close_once() {
    if (object_ == nullptr) return;
    const CallbackScope scope;
    host_->table.close(host_->table.user, std::exchange(object_, nullptr));
  }

  Host host_;
  std::string key_;
  OpenMode mode_;
  void* object_;
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> size_{0};  // as stat gave it last, 0 = not asked
};

class HostLock final : public StorageLock {
 public:
  HostLock(Host host, void* lock) : host_(std::move(host)), lock_(lock) {}
  ~HostLock() override {
    const CallbackScope scope;
    host_->table.unlock(host_->table.user, lock_);
  }
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  Status check() override { return {}; }  // a host's lock stands until it is given back

 private:
  Host host_;
  void* lock_;
};

class HostStorage : public Storage {
 public:
  explicit HostStorage(Host host) : host_(std::move(host)) {}

  std::string_view name() const override { return host_->name; }
  uint64_t capabilities() const override { return host_->table.capabilities; }
  uint64_t alignment() const override {
    return host_->table.alignment == 0 ? 1 : host_->table.alignment;
  }
  uint64_t part_bytes() const override { return host_->table.part_bytes; }

  Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                              const OpenOptions& options) override {
    if (key.empty() && options.mode == OpenMode::kRead) return root_is_no_object(*host_);
    SHW_RETURN_IF_ERROR(storage::check_key(key));
    void* object = nullptr;
    std::string kept(key);
    SHW_RETURN_IF_ERROR(call_host(*host_, "open", key, [&](shw_error** error) {
      return host_->table.open(host_->table.user, kept.data(), kept.size(),
                               static_cast<int32_t>(options.mode), &object, error);
    }));
    if (object == nullptr) {
      return internal_error(
          fmt::format("{} succeeded without an object", doing(*host_, "open", key)));
    }
    return std::unique_ptr<StorageObject>(
        std::make_unique<HostObject>(host_, std::move(kept), options.mode, object));
  }

  // Each call of a host waits for a network, most often: threads of their own wait for it.
  Result<std::unique_ptr<storage::IoQueue>> open_queue(StorageObject& like,
                                                       uint32_t depth) override {
    if (!storage::offers(*this, storage::kConcurrentRead)) return Storage::open_queue(like, depth);
    return io_threads_.open_queue(depth);
  }

  Result<ObjectStat> stat(std::string_view key) override {
    if (key.empty()) return root_is_no_object(*host_);
    SHW_RETURN_IF_ERROR(storage::check_key(key));
    return stat_key(*host_, key);
  }

  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const ListEntry&)>& sink) override {
    std::string last;
    const std::function<Status(const ListEntry&)> level = [&](const ListEntry& entry) {
      const std::string_view name = storage::level_of(entry.key, prefix);
      if (name.size() == entry.key.size() && !name.ends_with(storage::kDelimiter))
        return sink(entry);
      if (name == last) return Status();
      last = name;
      return sink({last, {}});
    };
    Walk walk{host_.get(), "list", prefix, delimiter == storage::kDelimiter ? &level : &sink, {}};
    const Status status = call_host(*host_, "list", prefix, [&](shw_error** error) {
      return host_->table.list(host_->table.user, prefix.data(), prefix.size(), delimiter,
                               &take_entry, &walk, error);
    });
    return walk.failure.ok() ? status : walk.failure;
  }

  Status remove(std::string_view key) override {
    if (key.ends_with('/')) return {};  // prefixes are no things of their own here
    SHW_RETURN_IF_ERROR(storage::check_key(key));
    Status removed = call_host(*host_, "remove", key, [&](shw_error** error) {
      return host_->table.remove(host_->table.user, key.data(), key.size(), error);
    });
    return removed.code() == StatusCode::kNotFound ? Status() : removed;  // it is not there
  }

  Result<uint64_t> free_space(std::string_view key) override {
    if (host_->table.space == nullptr) return not_offered("space", key);
    uint64_t free_bytes = 0;
    SHW_RETURN_IF_ERROR(call_host(*host_, "space", key, [&](shw_error** error) {
      return host_->table.space(host_->table.user, key.data(), key.size(), &free_bytes, error);
    }));
    return free_bytes;
  }

  Status create_prefix(std::string_view prefix) override {
    SHW_RETURN_IF_ERROR(storage::check_key(prefix));
    bool found = false;
    const Status status =
        list(fmt::format("{}/", prefix), storage::kDelimiter, [&found](const ListEntry&) {
          found = true;
          return cancelled("the first entry is enough");
        });
    if (found) {
      return already_exists(fmt::format("{}: it holds objects", doing(*host_, "prefix", prefix)));
    }
    return status;
  }

  Status sync_prefix(std::string_view, bool* supported) override {
    *supported = true;  // sync and commit make names durable themselves
    return {};
  }

  Status sync_above(std::string_view) override { return {}; }  // keys have no folders above them

  Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) override {
    if (host_->table.lock == nullptr) return not_offered("lock", key);
    void* lock = nullptr;
    shw_error* error = nullptr;
    shw_status code = SHW_OK;
    {
      const CallbackScope scope;
      code = host_->table.lock(host_->table.user, key.data(), key.size(),
                               static_cast<int32_t>(mode), &lock, &error);
    }
    if (code == SHW_PENDING) {
      shw_error_release(error);
      return std::unique_ptr<StorageLock>();
    }
    SHW_RETURN_IF_ERROR(status_from_host(code, error, doing(*host_, "lock", key).c_str()));
    if (lock == nullptr) {
      return internal_error(fmt::format("{} succeeded without a lock", doing(*host_, "lock", key)));
    }
    return std::unique_ptr<StorageLock>(std::make_unique<HostLock>(host_, lock));
  }

 private:
  Status not_offered(const char* slot, std::string_view key) const {
    return unimplemented(fmt::format("{}: the table has no such slot", doing(*host_, slot, key)));
  }

  Host host_;
  storage::IoThreads io_threads_;
};

}  // namespace

namespace {

// Each capability brings what it needs with it.
Status check_capabilities(const shw_storage_vtable& vtable) {
  const auto offers = [&vtable](uint64_t capability) {
    return (vtable.capabilities & capability) != 0;
  };
  const uint64_t unknown = vtable.capabilities & ~storage::kAllCapabilities;
  if (unknown != 0) {
    return bad_argument("vtable", fmt::format("capabilities {} holds unknown ones: {}",
                                              vtable.capabilities, unknown))
        .with_detail("field", "capabilities");
  }
  if (offers(SHW_STORAGE_DIRECT_IO) && vtable.truncate == nullptr) {
    return bad_argument("vtable",
                        "capability DIRECT_IO needs slot 'truncate', which is NULL: files of "
                        "aligned transfers could not end where they end")
        .with_detail("field", "truncate")
        .with_detail("capability", "DIRECT_IO");
  }
  if (offers(SHW_STORAGE_MULTIPART) == (vtable.part_bytes == 0)) {
    return bad_argument("vtable",
                        fmt::format("capability MULTIPART and a part_bytes above 0 come together; "
                                    "capabilities are {}, part_bytes is {}",
                                    vtable.capabilities, vtable.part_bytes))
        .with_detail("field", "part_bytes")
        .with_detail("capability", "MULTIPART");
  }
  return {};
}

}  // namespace

Status check_storage_slots(const shw_storage_vtable& vtable) {
  const auto need = [](auto slot, const char* name) -> Status {
    if (slot != nullptr) return {};
    return bad_argument("vtable", fmt::format("required slot '{}' is NULL", name))
        .with_detail("field", name);
  };
  SHW_RETURN_IF_ERROR(need(vtable.name, "name"));
  SHW_RETURN_IF_ERROR(need(vtable.open, "open"));
  SHW_RETURN_IF_ERROR(need(vtable.close, "close"));
  SHW_RETURN_IF_ERROR(need(vtable.stat, "stat"));
  SHW_RETURN_IF_ERROR(need(vtable.list, "list"));
  SHW_RETURN_IF_ERROR(need(vtable.read_at, "read_at"));
  SHW_RETURN_IF_ERROR(need(vtable.write_at, "write_at"));
  SHW_RETURN_IF_ERROR(need(vtable.sync, "sync"));
  SHW_RETURN_IF_ERROR(need(vtable.commit, "commit"));
  SHW_RETURN_IF_ERROR(need(vtable.abort, "abort"));
  SHW_RETURN_IF_ERROR(need(vtable.remove, "remove"));
  SHW_RETURN_IF_ERROR(check_capabilities(vtable));
  if ((vtable.lock == nullptr) != (vtable.unlock == nullptr)) {
    return bad_argument("vtable", "slots 'lock' and 'unlock' come together or not at all");
  }
  if ((vtable.alignment & (vtable.alignment - 1)) != 0) {
    return bad_argument("vtable", fmt::format("alignment {} is no power of two", vtable.alignment));
  }
  return check_interface(fmt::format("storage '{}'", vtable.name), vtable.abi_major,
                         vtable.abi_minor);
}

Result<std::shared_ptr<storage::Storage>> make_host_storage(const shw_storage_vtable& vtable,
                                                            std::shared_ptr<void> owner) {
  auto host = std::make_shared<HostTable>();
  host->name = vtable.name;
  host->owner = std::move(owner);
  auto storage = std::make_shared<HostStorage>(host);
  host->table = vtable;  // last: from here on release is ours
  return std::shared_ptr<storage::Storage>(std::move(storage));
}

}  // namespace shardwright::capi
