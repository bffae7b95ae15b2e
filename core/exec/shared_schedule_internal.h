// SPDX-License-Identifier: Apache-2.0
//
// Which blocks several ranks of a machine want, in what order they are read, and by which of the
// ranks. Every rank makes the same of the same lists. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace shardwright::exec::internal {

inline constexpr size_t kMostSharers = 64;
// What a rank reads at once of what lies side by side, where it asks the device.
inline constexpr uint64_t kSharedRunBytes = uint64_t{2} << 20;

// As it lies in shared memory. Lists ascend by file, offset and length and have no block twice.
struct WantedBlock {
  uint64_t offset = 0;
  uint32_t file = 0;
  uint32_t length = 0;

  std::tuple<uint32_t, uint64_t, uint32_t> place() const { return {file, offset, length}; }
};

// The same with the way that it comes to the machine: kStored, or in which round of an exchange, to
// which of the sharers.
struct SharedBlock {
  static constexpr int64_t kStored = -1;
  WantedBlock block;
  int64_t round = kStored;
  uint32_t taker = 0;
  uint32_t reserved = 0;
};

// Blocks of a file that lie side by side, are wanted by the same ranks and come the same way.
struct SharedTask {
  uint32_t file = 0;
  uint32_t reader = 0;  // a sharer; of an exchange the taker
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t sharers = 0;  // bit s: sharer s wants it; two or more
  int64_t round = SharedBlock::kStored;

  bool is_of(size_t sharer) const { return (sharers >> sharer & 1) != 0; }
};

struct ShareRules {
  uint64_t most_bytes = 0;  // of a task, when it is rounded to the alignment
  uint64_t alignment = 1;
  uint64_t run_bytes = 0;  // about so much that lies side by side has one reader
};

// lists: of each sharer, at most kMostSharers. Blocks that one sharer wants are left out, those
// that begin inside a task, and of a block that comes in several ways those sharers that the first
// one does not share it with. The reader of a run is who has read the least so far. Tasks ascend by
// round, file and offset, so those of an exchange come behind the others.
std::vector<SharedTask> share_blocks(std::span<const std::vector<SharedBlock>> lists,
                                     const ShareRules& rules);

}  // namespace shardwright::exec::internal
