// SPDX-License-Identifier: Apache-2.0
//
// The first slot gets its block at the price of waiting, the others only what is to be had at once.
#include <algorithm>
#include <utility>

#include "core/exec/write_window_internal.h"

namespace shardwright::exec::internal {

WriteWindow::WriteWindow(BufferPool& staging, const CallControl& control, uint64_t block_bytes,
                         Ended ended)
    : staging_(staging), control_(control), block_bytes_(block_bytes), ended_(std::move(ended)) {
  done_.reserve(kWritesInFlight);
}

Status WriteWindow::open(storage::Storage& storage, storage::StorageObject& like) {
  SHW_ASSIGN_OR_RETURN(queue_, storage.open_queue(like, kWritesInFlight));
  return {};
}

WriteWindow::Slot* WriteWindow::find(bool with_block) {
  const auto found = std::ranges::find_if(slots_, [with_block](const Slot& each) {
    return !each.in_flight && static_cast<bool>(each.block) == with_block;
  });
  return found == slots_.end() ? nullptr : &*found;
}

Result<std::span<std::byte>> WriteWindow::block() {
  while (find(true) == nullptr) {
    Slot* const empty = find(false);
    if (empty == slots_.data()) {
      SHW_ASSIGN_OR_RETURN(empty->block, staging_.acquire(block_bytes_, control_));
    } else if (empty != nullptr) {
      SHW_ASSIGN_OR_RETURN(empty->block, staging_.try_acquire(block_bytes_));
    }
    if (find(true) == nullptr) SHW_RETURN_IF_ERROR(finish_some());
  }
  return find(true)->block.bytes();
}

void WriteWindow::write(storage::StorageObject& object, uint64_t offset, std::span<std::byte> bytes,
                        uint64_t number) {
  Slot* const slot = find(true);
  slot->number = number;
  slot->in_flight = true;
  ++in_flight_;
  queue_->submit({storage::IoRequest::Operation::kWrite, &object, offset, bytes,
                  static_cast<uint64_t>(slot - slots_.data())});
}

Status WriteWindow::finish() {
  while (in_flight_ > 0) SHW_RETURN_IF_ERROR(finish_some());
  return {};
}

Status WriteWindow::finish_some() {
  done_.clear();
  queue_->complete(&done_);
  Status first;
  for (storage::IoCompletion& each : done_) {
    Slot& slot = slots_[each.tag];
    slot.in_flight = false;
    --in_flight_;
    Status ended = ended_(slot.number, std::move(each.status));
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

}  // namespace shardwright::exec::internal
