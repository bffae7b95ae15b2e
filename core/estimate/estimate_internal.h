// SPDX-License-Identifier: Apache-2.0
//
// Parts of an estimate. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/estimate/estimate.h"

namespace shardwright::estimate::internal {

// What each rank of a layout holds of tensors of one shape: the distinct boxes that hold an
// element, and the numbers of those that each rank has.
struct HeldCells {
  std::vector<int32_t> ranks;         // ascending
  std::vector<Box> boxes;             // in order of first appearance
  std::vector<uint64_t> cell_begins;  // one more than ranks, into cells
  std::vector<uint32_t> cells;        // numbers of boxes
  std::span<const uint32_t> of(size_t rank_index) const {
    return {cells.data() + cell_begins[rank_index],
            cell_begins[rank_index + 1] - cell_begins[rank_index]};
  }
};

// UNIMPLEMENTED for a box of a sub-byte tensor that a state refuses: it does not begin and end on
// whole bytes.
Status check_held_bytes(const JobTensor& tensor, const HeldCells& cells);

// HeldCells of every layout and shape of a job, made when they are asked for and kept. Tensors
// that are held by boxes are made each time. One thread; the job outlives it.
class HeldCellsCache {
 public:
  explicit HeldCellsCache(const JobDescription& job) : job_(job) {}
  // Valid until the next call. The failures of Layout::pieces and check_held_bytes.
  Result<const HeldCells*> of(const JobTensor& tensor);

 private:
  Result<const HeldCells*> of_layout(const JobTensor& tensor);

  const JobDescription& job_;
  std::map<std::pair<uint32_t, Dims>, HeldCells> kept_;
  HeldCells boxes_;
};

// Bytes that each rank holds. RESOURCE_EXHAUSTED for more than kMaxSimulatedPieces boxes.
Result<RankColumn> held_bytes_of(const JobDescription& job);
// That failure.
Status too_many_pieces();

// What has to be read of a chunk for the part of it that is wanted: whole digest blocks.
struct Fetch {
  uint64_t wanted_bytes = 0;
  uint64_t fetched_bytes = 0;
};
// Blocks begin to end - 1 of a chunk.
struct BlockRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};
// wanted lies inside chunk and is not empty. block_bytes 0 = no digests, nothing more is read.
// blocks: receives those that are fetched, ascending, apart from each other; may be null where
// block_bytes is 0 and otherwise.
Fetch fetch_of(DType dtype, const Box& chunk, const Box& wanted, uint64_t block_bytes,
               std::vector<BlockRange>* blocks = nullptr);

// What a box needs of one chunk.
struct ChunkFetch {
  uint32_t chunk = 0;  // counted from the tensor's first
  uint64_t chunk_bytes = 0;
  Fetch fetch;
  std::vector<BlockRange> blocks;
};
struct SharingRules {
  uint64_t block_bytes = 0;     // above 0
  uint32_t ranks_per_node = 1;  // at most kMostRanksPerNode
  NodeExchange exchange = NodeExchange::kOff;
};
// What a rank reads of a tensor, and what comes to it in another way.
struct HolderReads {
  uint64_t read = 0;
  uint64_t over = 0;      // of it, what nobody wants
  uint64_t shared = 0;    // read or received by others of its node
  uint64_t received = 0;  // from other nodes
  uint64_t sent = 0;      // to them
};
// One for each rank of cells, whose cells number the boxes that it wants; boxes[cell]: what that
// box needs. Cost: O(n log n) in the ends of the ranges of blocks that the boxes need, each with
// the boxes that need the blocks up to the next, and linear in the ranks that want each of these
// sets of boxes; independent of how many blocks there are.
std::vector<HolderReads> share_reads(const HeldCells& cells,
                                     std::span<const std::vector<ChunkFetch>> boxes,
                                     const SharingRules& rules);

// Rank that writes a box of a tensor; -1 = the lowest that holds it.
using OwnerOf = std::function<int32_t(std::string_view tensor, const Box& box)>;
// limit: chunks to list in all, 0 = none, in which case owner_of is not asked.
Result<std::vector<TensorGroup>> tensor_groups_of(const JobDescription& job, uint64_t limit,
                                                  const OwnerOf& owner_of);

// Fills staging_bytes and peak_bytes from the other columns.
void add_memory(Estimate* estimate);

}  // namespace shardwright::estimate::internal
