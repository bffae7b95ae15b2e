// SPDX-License-Identifier: Apache-2.0
//
// Routes of blocks that several nodes want: one rank reads a block and sends it to one rank of each
// other node, a few of them directly, the others over these, so that no rank sends a block more
// than kMostTargets times. Nodes are named by the lowest of their ranks that share memory.
//
// No rank knows all: each block has a home, a rank that is told who wants it and answers each of
// them with the route. What a host plans for all ranks has one home. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/exec/shared_schedule_internal.h"

namespace shardwright::exec::internal {

inline constexpr size_t kMostTargets = 4;

// What a rank of a node wants. Lists ascend by file, offset and length and have no block twice.
struct NodeWants {
  int32_t node = 0;
  std::vector<WantedBlock> blocks;
};

// Of one block for one rank that wants it.
struct Route {
  int32_t taker = kNobody;   // of this node; nobody: no other node wants the block
  int32_t source = kStored;  // who sends it to the taker; kStored: the taker reads it
  uint32_t step = 0;         // how many ranks have it before the taker
  uint32_t targets = 0;      // whom the taker sends it to: so many numbers of RouteList::targets

  static constexpr int32_t kNobody = -1;
  static constexpr int32_t kStored = -1;
  bool is_exchanged() const { return taker != kNobody; }
  bool operator==(const Route&) const = default;
};

// One route for each block of a list; the targets of all of them one after the other. Targets are
// told to the taker only.
struct RouteList {
  std::vector<Route> routes;
  std::vector<int32_t> targets;
  bool operator==(const RouteList&) const = default;
};

// The rank that is told who wants the block: the same for what lies in one run of a file.
int32_t home_of(const WantedBlock& block, int32_t world_size);

// wants: of each rank, the part that has this home. Blocks side by side that the same ranks want
// have the same route for a run; of equal choices the rank that has taken or read the least so far.
std::vector<RouteList> route_blocks(std::span<const NodeWants> wants);

// The routes of blocks in their order, from what each home has answered for its part of them.
RouteList in_order(std::span<const WantedBlock> blocks, std::span<const RouteList> by_home,
                   int32_t world_size);

// How they travel. What is decoded fits: blocks ascend, ranks are ranks, as many routes as wanted.
// DATA_LOSS otherwise.
std::vector<std::byte> encode_wants(int32_t node, std::span<const WantedBlock> blocks);
Result<NodeWants> decode_wants(std::span<const std::byte> bytes, int32_t world_size);
std::vector<std::byte> encode_routes(const RouteList& list);
Result<RouteList> decode_routes(std::span<const std::byte> bytes, size_t wanted,
                                int32_t world_size);

}  // namespace shardwright::exec::internal
