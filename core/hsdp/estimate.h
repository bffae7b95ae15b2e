// SPDX-License-Identifier: Apache-2.0
//
// What one rank needs for an iteration, before anything runs: the schedule of the runtime over the
// same layouts, with books instead of memory. Units run forward in their order and backward in the
// reverse one; gradients of the shards are dropped before the next iteration. What a run measures
// (UnitMemory::stats) is what is foretold here, byte for byte. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/dtype_policy.h"
#include "core/hsdp/memory_ledger.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit_layout.h"

namespace shardwright::hsdp {

// Parameters of a unit that travel together: all sharded, or all replicated.
struct EstimatedGroup {
  UnitLayout layout;
  DTypePolicy dtypes;
};

struct EstimatedUnit {
  std::vector<EstimatedGroup> groups;
  UnitSettings settings;
  // The first unit only: its forward and backward are around those of all others.
  bool is_root = false;
  // The host adds gradients, so that they are summed in memory of ours; else it hands its own over.
  bool adds_gradients = false;
  // The host has memory of its own for whole parameters.
  bool has_allocator = false;
};

struct EstimatedWorld {
  int32_t shard_size = 1;
  int32_t replicate_size = 1;
  // Sums in rank order need the parts of all ranks: transports without kOrderedSum.
  bool gradients_land = false;
};

// Groups of the parameters of a unit. Failures of group_parameters and UnitLayout::create.
Result<std::vector<EstimatedGroup>> estimated_groups(std::span<const ParameterSpec> parameters,
                                                     const UnitOptions& options, int32_t world);

// Peaks include the shards. What a transport allocates is not in it.
MemoryStats estimate_memory(std::span<const EstimatedUnit> units, const HsdpOptions& options,
                            const EstimatedWorld& world);

}  // namespace shardwright::hsdp
