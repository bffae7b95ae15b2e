// SPDX-License-Identifier: Apache-2.0
//
// The bytes of one operation between ranks in one process, cut into moves that any thread may make,
// several at once: no two write the same bytes, and none reads what another one writes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective/tensor_operation.h"

namespace shardwright::collective::internal {

// Equal for the operations of all ranks of a round.
struct MoveSizes {
  uint64_t part_bytes = 0;
  uint64_t step_bytes = 0;     // of a part, at a time
  uint64_t steps = 0;          // per part
  uint64_t count = 0;          // of moves
  uint64_t scratch_bytes = 0;  // that a thread needs to make one
};

// own has passed check_operation, which gave part_bytes.
MoveSizes move_sizes(const TensorOperation& own, uint64_t part_bytes, size_t world);
// Move `index` of an operation that all ranks have issued; ranks: theirs, in order.
Status make_move(std::span<const TensorOperation> ranks, const MoveSizes& sizes, uint64_t index,
                 std::span<std::byte> scratch);

}  // namespace shardwright::collective::internal
