// SPDX-License-Identifier: Apache-2.0
//
// Step 2 of a save cut into tasks: ranges of the rank's file that follow each other without gaps
// from 0 to the index. A task begins and ends at multiples of 4 KiB, is at most capacity long, and
// holds digest blocks of large chunks whole: their blocks begin at multiples of 4 KiB, so a task is
// cut before a block that does not fit. A small chunk may lie across a cut; it has one digest,
// which belongs to the task that holds its first byte. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/format/native/file_layout.h"

namespace shardwright::exec::internal {

struct WriteTask {
  uint64_t begin = 0;     // file offset
  uint64_t end = 0;       // exclusive; what no item covers is zero
  size_t first_item = 0;  // first of the layout that ends behind begin; items of no bytes aside
};

// The first task begins with the file's header. capacity_bytes: a multiple of 4 KiB, at least two
// digest blocks.
std::vector<WriteTask> make_write_tasks(const format::native::FileLayout& layout,
                                        uint64_t capacity_bytes);

}  // namespace shardwright::exec::internal
