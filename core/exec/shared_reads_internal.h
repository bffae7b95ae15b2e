// SPDX-License-Identifier: Apache-2.0
//
// SharedReads: this rank's part in reading the blocks that several ranks of its machine want. Each
// task is read once, from the page cache or the device, checked once by its reader, and copied by
// each of the others out of the group's memory.
#pragma once

#include <vector>

#include "core/exec/block_io_internal.h"
#include "core/exec/node_group_internal.h"

namespace shardwright::exec::internal {

// A task of the group that this rank wants and that comes from the storage.
struct SharedRead {
  uint32_t number = 0;  // in the group's tasks
  bool reads = false;   // this rank is its reader
  ReadTask exact;       // the bytes that go through the slot: the same for all ranks
  ReadTask rounded;     // what this rank reads for them
};

// Which of these tasks this rank wants, ascending; takes their needs, which ascend as those
// of make_read_tasks, out of *needs and puts them into *shared. INTERNAL for a task that nothing
// here needs.
Result<std::vector<SharedRead>> take_shared(const NodeGroup& group, const TaskRules& rules,
                                            std::vector<BlockNeed>* needs,
                                            std::vector<BlockNeed>* shared);

// The blocks that needs ask for, as ranks tell each other of them; begins: of each block its first
// need, and one more at the end. Sorts the needs.
struct WantedList {
  std::vector<WantedBlock> blocks;
  std::vector<size_t> begins{0};
};
WantedList wanted_blocks(std::vector<BlockNeed>* needs);

// All or the first failure, of which the group knows; also that of another rank (NodeGroup::wait).
Result<BlockReadTotals> read_shared(const ReadSetting& setting, NodeGroup& group,
                                    std::vector<BlockNeed> needs,
                                    const std::vector<SharedRead>& reads);

}  // namespace shardwright::exec::internal
