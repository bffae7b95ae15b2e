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

#include "core/base/result.h"
#include "core/plan/save_plan.h"

namespace shardwright::exec::internal {

struct WriteTask {
  uint64_t begin = 0;     // file offset
  uint64_t end = 0;       // exclusive; what no item covers is zero
  size_t first_item = 0;  // first item that ends behind begin; items of no bytes aside
};

// The first task begins with the file's header. capacity_bytes: a multiple of 4 KiB, at least two
// digest blocks. FAILED_PRECONDITION for items that do not ascend, overlap, leave gaps of more than
// an alignment or break the rules of WriteList.
Result<std::vector<WriteTask>> make_write_tasks(const plan::WriteList& list,
                                                uint64_t capacity_bytes);

}  // namespace shardwright::exec::internal
