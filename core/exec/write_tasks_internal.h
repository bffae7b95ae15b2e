// SPDX-License-Identifier: Apache-2.0
//
// Step 2 of a save cut into tasks of at most capacity bytes. Pure.
//
// An own file: ranges that follow each other without gaps from 0 to what stands behind the items. A
// task begins and ends at multiples of 4 KiB and holds digest blocks of large chunks whole: their
// blocks begin at multiples of 4 KiB, so a task is cut before a block that does not fit. A small
// chunk may lie across a cut; it has one digest, which belongs to the task that holds its first
// byte.
//
// A file that ranks share (it has no digests): ranges of items that touch each other, cut at
// multiples of 4 KiB, and parts of items that lie scattered. Where bytes come in blocks their
// ranges are cut between blocks, so that none is read twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/limits.h"
#include "core/format/saving.h"

namespace shardwright::exec::internal {

// An own file whose items are wrapped: what wraps an item says the checksum of all of it. So large
// items come first, each up to the end of its last 4 KiB, and what lies around them when they are
// written, in ranges that begin with the 4 KiB in which a large item ends. Where a file is written
// from its beginning to its end there are no large items in front: checksums stand behind them.
struct WriteTask {
  enum class Part : uint8_t {
    kAll,    // all that lies in the range
    kItem,   // the bytes of one large item; zero behind it
    kAround  // all but large items, which were written before, and how such a one ends
  };
  uint64_t begin = 0;     // file offset; of a scattered item the offset in its packed bytes
  uint64_t end = 0;       // exclusive; what no item covers is zero
  size_t first_item = 0;  // first of the layout that ends behind begin; items of no bytes aside
  bool is_scattered = false;
  Part part = Part::kAll;
};

struct CuttingRules {
  uint64_t capacity_bytes = 0;  // a multiple of 4 KiB, at least two digest blocks
  bool in_blocks = false;       // what is written comes in digest blocks of the items
  bool in_order = false;        // own files are written from the beginning to the end
};
std::vector<WriteTask> make_write_tasks(const format::FileLayout& layout,
                                        const CuttingRules& rules);

inline bool is_large(const format::PlacedItem& placed) {
  return placed.size_bytes >= kSlabChunkLimitBytes;
}

}  // namespace shardwright::exec::internal
