// SPDX-License-Identifier: Apache-2.0
//
// Makers of the built-in storages. Wiring is explicit: the C context or a test calls these; nothing
// registers itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage/storage.h"

namespace shardwright::storage {

// Files below root (system bytes; need not exist). Keys resolve beneath root without following
// links.
std::unique_ptr<Storage> make_posix_storage(std::string root);
// In-memory twin, for tests and replicas; nothing survives the process.
std::unique_ptr<Storage> make_memory_storage();

// One call on a storage or object, as seen by the recording and fault wrappers.
struct StorageEvent {
  enum class Operation {
    kOpen,
    kRead,
    kWrite,
    kTruncate,
    kSync,
    kCommit,
    kAbort,
    kClose,
    kStat,
    kList,
    kRemove,
    kFreeSpace,
    kCreatePrefix,
    kSyncPrefix,
    kSyncAbove,
    kLock
  };
  Operation operation = Operation::kOpen;
  std::string key;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  int64_t sequence = 0;             // number of the call in this wrapper, from 0
  std::span<const std::byte> data;  // kWrite: the bytes, valid during the call
  OpenMode mode = OpenMode::kRead;  // of kOpen
};
std::string_view operation_name(StorageEvent::Operation operation);

// Calls observe before each call is passed on (thread-safe function); does not own inner.
std::unique_ptr<Storage> make_recording_storage(Storage& inner,
                                                std::function<void(const StorageEvent&)> observe);
// decide returns a failure to be reported instead of the call; for kWrite, *done_bytes may be set
// to how much of the data is written before the failure. Thread-safe function; does not own inner.
using FaultDecision = std::function<Status(const StorageEvent&, uint64_t* done_bytes)>;
std::unique_ptr<Storage> make_fault_storage(Storage& inner, FaultDecision decide);

}  // namespace shardwright::storage
