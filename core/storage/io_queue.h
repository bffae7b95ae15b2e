// SPDX-License-Identifier: Apache-2.0
//
// IoQueue: reads and writes of open objects in batches, with a queue depth of their own, apart from
// the workers that make and use the bytes. submit hands requests over, complete waits for results;
// requests of one queue overlap and end in any order. Thread-compatible: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/thread_pool.h"

namespace shardwright::storage {

class StorageObject;

struct IoRequest {
  enum class Operation : uint8_t { kRead, kWrite };
  Operation operation = Operation::kRead;
  StorageObject* object = nullptr;  // open until the request is completed
  uint64_t offset = 0;
  std::span<std::byte> data;  // valid until then; of a write it is only read
  uint64_t tag = 0;           // the owner's own number, of its own among those in flight
};

// What read_at or write_at of that object would have returned.
struct IoCompletion {
  uint64_t tag = 0;
  Status status;
};

class IoQueue {
 public:
  // Waits for what is in flight.
  virtual ~IoQueue() = default;
  // "io_uring", "threads", or "inline": requests are carried out by submit itself.
  virtual std::string_view engine() const = 0;
  // At most as many in flight as the depth the queue was opened with; each is completed once. An
  // object without kConcurrentRead has one read in flight at most, and writes are of objects that
  // take them in any order.
  virtual void submit(const IoRequest& request) = 0;
  // Appends what has ended since, at least one when something is in flight.
  virtual void complete(std::vector<IoCompletion>* done) = 0;
};

// read_at or write_at, with exceptions as a status.
Status run_request(const IoRequest& request) noexcept;

// Threads that only wait for storage; made with the first queue of a thread of their priority,
// which they cannot change. Thread-safe.
class IoThreads {
 public:
  // Of so many threads, whatever the depth. RESOURCE_EXHAUSTED when they cannot be made. The queue
  // does not outlive this.
  Result<std::unique_ptr<IoQueue>> open_queue(uint32_t depth);

 private:
  Mutex mutex_;
  std::array<std::unique_ptr<ThreadPool>, 2> pools_ SHW_GUARDED_BY(mutex_);  // by priority
};

// For storages that gain nothing from batches.
std::unique_ptr<IoQueue> make_inline_queue(uint32_t depth);

}  // namespace shardwright::storage
