// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/collective/operation_rooms_internal.h"

namespace shardwright::collective::internal {

OperationRooms::Block OperationRooms::take(size_t size_bytes) {
  {
    const MutexLock lock(mutex_);
    // Not one of more than twice the size: a larger operation wants that.
    for (Block& each : kept_) {
      if (each.size >= size_bytes && each.size / 2 <= size_bytes)
        return {std::move(each.bytes), std::exchange(each.size, 0)};
    }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(size_bytes), size_bytes};
}

void OperationRooms::give_back(Block block) noexcept {
  const MutexLock lock(mutex_);
  const auto smallest = std::ranges::min_element(kept_, {}, &Block::size);
  if (block.size > smallest->size) std::swap(block, *smallest);
}

}  // namespace shardwright::collective::internal
