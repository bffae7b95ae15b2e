// SPDX-License-Identifier: Apache-2.0
//
// Rules of keys and what every storage shares. Pure functions, any thread.
#include "core/storage/storage.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/storage/backends.h"

namespace shardwright::storage {
namespace {

Status bad_key(std::string_view key, std::string_view why) {
  return invalid_argument(fmt::format("storage key '{}' {}", escape_text(key), why))
      .with_detail("parameter", "key");
}

}  // namespace

std::string_view capability_name(uint64_t capability) {
  switch (capability) {
    case kPositionalWrite:
      return "POSITIONAL_WRITE";
    case kAtomicCommit:
      return "ATOMIC_COMMIT";
    case kConditionalCommit:
      return "CONDITIONAL_COMMIT";
    case kConcurrentRead:
      return "CONCURRENT_READ";
    case kDirectIo:
      return "DIRECT_IO";
    case kMultipart:
      return "MULTIPART";
    case kDurable:
      return "DURABLE";
    default:
      return "unknown";
  }
}

uint64_t StorageObject::cached_bytes(uint64_t, uint64_t) {
  return 0;
}

bool offers(const Storage& storage, uint64_t capability) {
  return (storage.capabilities() & capability) == capability;
}

Status need_capability(const Storage& storage, uint64_t capability, std::string_view why) {
  if (offers(storage, capability)) return {};
  const std::string_view name = capability_name(capability);
  return failed_precondition(fmt::format("storage '{}' does not offer {}: {}",
                                         escape_text(storage.name()), name, why))
      .with_detail("capability", name);
}

std::string_view level_of(std::string_view key, std::string_view prefix) {
  const size_t end = key.find(kDelimiter, prefix.size());
  return end == std::string_view::npos ? key : key.substr(0, end + 1);
}

Status check_key(std::string_view key) {
  if (key.empty()) return bad_key(key, "is empty");
  if (key.find('\0') != std::string_view::npos) return bad_key(key, "holds a NUL character");
  if (!is_valid_utf8(key)) return bad_key(key, "is not valid UTF-8");
  for (size_t begin = 0; begin <= key.size();) {
    const size_t slash = std::min(key.find('/', begin), key.size());
    const std::string_view part = key.substr(begin, slash - begin);
    if (part.empty()) return bad_key(key, "has an empty part (a leading, trailing or double '/')");
    if (part == "." || part == "..") return bad_key(key, "has a part '.' or '..'");
    begin = slash + 1;
  }
  return {};
}

Result<std::unique_ptr<IoQueue>> Storage::open_queue(StorageObject&, uint32_t depth) {
  return make_inline_queue(depth);
}

Result<uint64_t> Storage::remove_prefix(std::string_view prefix) {
  const std::string below = std::string(prefix) + "/";
  std::vector<ListEntry> entries;
  Status first = list(below, kNoDelimiter, [&entries](const ListEntry& entry) {
    entries.push_back(entry);
    return Status();
  });
  uint64_t removed = 0;
  for (const ListEntry& entry : entries) {
    Status status = remove(entry.key);
    if (status.ok()) {
      removed += entry.stat.size_bytes;
    } else if (first.ok()) {
      first = std::move(status);
    }
  }
  Status status = remove(below);
  if (first.ok()) first = std::move(status);
  if (!first.ok()) return first;
  return removed;
}

std::string join_key(std::string_view prefix, std::string_view name) {
  if (prefix.empty()) return std::string(name);
  return fmt::format("{}/{}", prefix, name);
}

Result<std::vector<std::byte>> read_all(Storage& storage, std::string_view key,
                                        uint64_t limit_bytes) {
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<StorageObject> object, storage.open(key, OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const ObjectStat stat, object->stat());
  if (stat.size_bytes > limit_bytes) {
    return resource_exhausted(
               "object size",
               fmt::format("{} holds {} bytes, more than the limit of {} for this read",
                           escape_text(key), stat.size_bytes, limit_bytes))
        .with_detail("file", key)
        .with_detail("limit", fmt::to_string(limit_bytes));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(stat.size_bytes));
  SHW_RETURN_IF_ERROR(object->read_at(0, bytes));
  SHW_RETURN_IF_ERROR(object->close());
  return bytes;
}

Result<std::unique_ptr<StorageObject>> write_uncommitted(Storage& storage, std::string_view key,
                                                         std::span<const std::byte> bytes,
                                                         OpenOptions options) {
  options.expected_bytes = bytes.size();
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<StorageObject> object, storage.open(key, options));
  if (!bytes.empty()) SHW_RETURN_IF_ERROR(object->write_at(0, bytes));
  if (options.durable) SHW_RETURN_IF_ERROR(object->sync());
  return object;
}

Status write_all(Storage& storage, std::string_view key, std::span<const std::byte> bytes,
                 OpenOptions options) {
  const bool commits = options.mode == OpenMode::kCreate;
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<StorageObject> object,
                       write_uncommitted(storage, key, bytes, std::move(options)));
  if (commits) SHW_RETURN_IF_ERROR(object->commit(CommitCondition::kNone, {}));
  return object->close();
}

Status put_in_place(Storage& storage, std::string_view key, std::span<const std::byte> bytes,
                    OpenOptions options) {
  options.mode = OpenMode::kCreate;
  SHW_RETURN_IF_ERROR(remove_in_flight(storage, key, options.temporary_suffix));
  return write_all(storage, key, bytes, std::move(options));
}

Status remove_in_flight(Storage& storage, std::string_view key, std::string_view suffix) {
  return storage.remove(fmt::format("{}.{}", key, suffix));
}

std::string_view operation_name(StorageEvent::Operation operation) {
  using Operation = StorageEvent::Operation;
  switch (operation) {
    case Operation::kOpen:
      return "open";
    case Operation::kRead:
      return "read";
    case Operation::kWrite:
      return "write";
    case Operation::kTruncate:
      return "truncate";
    case Operation::kSync:
      return "sync";
    case Operation::kCommit:
      return "commit";
    case Operation::kAbort:
      return "abort";
    case Operation::kClose:
      return "close";
    case Operation::kStat:
      return "stat";
    case Operation::kList:
      return "list";
    case Operation::kRemove:
      return "remove";
    case Operation::kFreeSpace:
      return "free_space";
    case Operation::kCreatePrefix:
      return "create_prefix";
    case Operation::kSyncPrefix:
      return "sync_prefix";
    case Operation::kSyncAbove:
      return "sync_above";
    case Operation::kLock:
      return "lock";
  }
  return "unknown";
}

}  // namespace shardwright::storage
