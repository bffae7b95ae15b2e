// SPDX-License-Identifier: Apache-2.0
//
// Routes of blocks that several nodes want: one rank reads a block and sends it to one rank of each
// other node, a few of them directly, the others over these, so that no rank sends a block more
// than kMostTargets times.
//
// Where ranks have a collective no rank knows all: each block has a home, a rank that is told who
// wants it and answers each of them with the route. A host that moves plans itself has one rank
// plan for all. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/plan/exchange_plan.h"

namespace shardwright::plan {

// Blocks that begin in one run are read together where the same ranks want them.
inline constexpr uint64_t kRunBytes = uint64_t{4} << 20;

// Takers of a block make a tree: the first reads it, that of number n sends it to those of numbers
// [begin, end).
struct TargetNumbers {
  size_t begin = 0;
  size_t end = 0;
};
TargetNumbers targets_of(size_t number, size_t takers);

// The rank that is told who wants the block.
int32_t home_of(const StoredBlock& block, int32_t world_size);

// wants: of each rank, all that it wants or the part that has this home; blocks ascend. Blocks of a
// run that the same ranks want have the same route; of equal choices the rank that has taken or
// read the least so far. Rounds are not planned.
std::vector<ExchangePlan> route_blocks(std::span<const WantList> wants);

// The routes of the blocks of a rank in their order, from what each home has answered for its part
// of them: DATA_LOSS where a home has not answered this rank with one route for each.
Result<ExchangePlan> join_answers(std::span<const StoredBlock> blocks,
                                  std::span<const ExchangePlan> by_home, int32_t rank);

// For all ranks at once, rounds included. INVALID_ARGUMENT naming the rank when wants are not those
// of all ranks in their order or of one generation.
Result<std::vector<ExchangePlan>> make_exchange_plans(std::span<const WantList> wants);

}  // namespace shardwright::plan
