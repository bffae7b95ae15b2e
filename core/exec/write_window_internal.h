// SPDX-License-Identifier: Apache-2.0
//
// WriteWindow: the blocks of one worker and the writes of them that are in flight, so that a block
// is filled while others are written. Thread-compatible: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/concurrency/buffer_pool.h"
#include "core/storage/io_queue.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

class WriteWindow {
 public:
  static constexpr size_t kWritesInFlight = 3;
  // Is told of each write that has ended; what it returns is the result of the write.
  using Ended = std::function<Status(uint64_t number, Status status)>;

  // staging and control outlive the window; objects outlive the writes to them.
  WriteWindow(BufferPool& staging, const CallControl& control, uint64_t block_bytes, Ended ended);

  // First. like: an object where those lie that are written.
  Status open(storage::Storage& storage, storage::StorageObject& like);
  std::string_view engine() const { return queue_->engine(); }
  // A block of which nothing is being written; of two calls without a write between them the same.
  // It waits for staging memory only while the window holds none, so that workers never wait for
  // each other. The failure of a write that has ended meanwhile is returned.
  Result<std::span<std::byte>> block();
  // bytes: a part of the block that was given last, which is given again when this write has ended.
  void write(storage::StorageObject& object, uint64_t offset, std::span<std::byte> bytes,
             uint64_t number);
  // Waits for all writes.
  Status finish();

 private:
  struct Slot {
    StagingBuffer block;
    uint64_t number = 0;
    bool in_flight = false;
  };
  Slot* find(bool with_block);
  Status finish_some();

  BufferPool& staging_;
  const CallControl& control_;
  const uint64_t block_bytes_;
  const Ended ended_;
  std::array<Slot, kWritesInFlight> slots_;
  std::vector<storage::IoCompletion> done_;
  size_t in_flight_ = 0;
  std::unique_ptr<storage::IoQueue> queue_;  // last: it waits for the blocks that are being written
};

}  // namespace shardwright::exec::internal
