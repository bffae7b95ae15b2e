// SPDX-License-Identifier: Apache-2.0
//
// Operation: what one rank calls and how much memory it has for it; and what has to hold between
// the ranks of one round, for collectives in which somebody sees the operations of all. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/collective/collective.h"

namespace shardwright::collective::internal {

enum class Kind : uint32_t {
  kBarrier,
  kBroadcast,
  kAllGather,
  kAllGatherV,
  kGatherV,
  kScatterV,
  kAllToAllV,
  kAllReduce,
};

std::string_view kind_name(Kind kind);  // "unknown" for another value

// Of gather_v only the root has out and sizes, of scatter_v only the root has in and sizes; of
// all_to_all_v the sizes are those of in, and out has its own. broadcast has out everywhere.
struct Operation {
  Kind kind = Kind::kBarrier;
  Call call{};
  ReduceOperation reduction = ReduceOperation::kSum;
  int32_t root = 0;
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;
  uint64_t value_count = 0;
  std::span<const uint64_t> sizes{};
  std::span<const uint64_t> out_sizes{};
};

// What is wrong with the operation of one rank by itself (INVALID_ARGUMENT).
Status check_own(const Operation& own, size_t rank, size_t world);
// The same at the lowest rank first.
Status check_arguments(std::span<const Operation> ranks);
// ABORTED where ranks do not call the same: nothing after that is sound.
Status check_in_step(std::span<const Operation> ranks);
// Of operations in step: what ranks say of each other's parts is true (INVALID_ARGUMENT).
Status check_parts(std::span<const Operation> ranks);
// False where a sum does not fit. values: of all ranks, one each.
bool reduce_value(ReduceOperation reduction, int64_t value, int64_t* total);
Status sum_too_large(size_t value, size_t ranks);
// Bytes of the ranks before one.
uint64_t sum_before(std::span<const uint64_t> sizes, size_t rank);

}  // namespace shardwright::collective::internal
