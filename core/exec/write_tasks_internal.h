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

#include "core/format/saving.h"

namespace shardwright::exec::internal {

struct WriteTask {
  uint64_t begin = 0;     // file offset; of a scattered item the offset in its packed bytes
  uint64_t end = 0;       // exclusive; what no item covers is zero
  size_t first_item = 0;  // first of the layout that ends behind begin; items of no bytes aside
  bool is_scattered = false;
};

// capacity_bytes: a multiple of 4 KiB, at least two digest blocks. in_blocks: what is written comes
// in digest blocks of the items.
std::vector<WriteTask> make_write_tasks(const format::FileLayout& layout, uint64_t capacity_bytes,
                                        bool in_blocks = false);

}  // namespace shardwright::exec::internal
