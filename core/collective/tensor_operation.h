// SPDX-License-Identifier: Apache-2.0
//
// TensorOperation: what one rank calls of a communicator and the memory that it has for it; what
// has to hold for it alone and between ranks. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/collective/communicator.h"

namespace shardwright::collective {

// all_reduce and broadcast have only out.
struct TensorOperation {
  OperationKind kind = OperationKind::kBarrier;
  CommunicatorCall call;
  int32_t root = 0;
  std::span<const std::byte> in;
  std::span<std::byte> out;
};

// "all_gather number 5 of unit 3": for what goes wrong with it.
std::string operation_title(const TensorOperation& own);
// Bytes of one part; 0 for a barrier. INVALID_ARGUMENT naming the rank where memory, root or dtype
// do not fit; UNIMPLEMENTED where nothing reduces such elements.
Result<uint64_t> check_operation(const TensorOperation& own, int32_t rank, int32_t world);
// ABORTED with details rank, expected and found where `other`, of that rank, is not what `first`
// is.
Status check_same(const TensorOperation& first, size_t first_rank, const TensorOperation& other,
                  size_t other_rank);
// A number that differs for operations that differ, mostly.
uint32_t operation_tag(const TensorOperation& own);
// Bytes that come to one rank from others.
uint64_t received_bytes(const TensorOperation& own, uint64_t part_bytes, int32_t world);

// Whether `reduction` of `dtype` is there: UNIMPLEMENTED naming both.
Status check_reduction(Reduction reduction, DType dtype);
// target = the parts reduced in their order; parts lie back to back and are undefined afterwards.
// target may be the first of them.
Status reduce_parts(const CommunicatorCall& call, std::span<std::byte> parts, size_t part_count,
                    std::span<std::byte> target);

}  // namespace shardwright::collective
