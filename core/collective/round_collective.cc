// SPDX-License-Identifier: Apache-2.0
#include "core/collective/round_collective_internal.h"

namespace shardwright::collective::internal {
namespace {

Slot make_slot(Kind kind, const Call& call, std::span<const std::byte> in,
               std::span<std::byte> out) {
  Slot slot;
  slot.operation.kind = kind;
  slot.operation.call = call;
  slot.operation.in_bytes = in.size();
  slot.operation.out_bytes = out.size();
  slot.in = in;
  slot.out = out;
  return slot;
}

}  // namespace

Status RoundCollective::barrier(const Call& call) {
  return take_part(make_slot(Kind::kBarrier, call, {}, {}));
}

Status RoundCollective::broadcast(const Call& call, std::span<std::byte> data, int32_t root) {
  Slot slot = make_slot(Kind::kBroadcast, call, {}, data);
  slot.operation.root = root;
  return take_part(slot);
}

Status RoundCollective::all_gather(const Call& call, std::span<const std::byte> in,
                                   std::span<std::byte> out) {
  return take_part(make_slot(Kind::kAllGather, call, in, out));
}

Status RoundCollective::all_gather_v(const Call& call, std::span<const std::byte> in,
                                     std::span<std::byte> out, std::span<const uint64_t> sizes) {
  Slot slot = make_slot(Kind::kAllGatherV, call, in, out);
  slot.operation.sizes = sizes;
  return take_part(slot);
}

Status RoundCollective::gather_v(const Call& call, std::span<const std::byte> in,
                                 std::span<std::byte> out, std::span<const uint64_t> sizes,
                                 int32_t root) {
  Slot slot = make_slot(Kind::kGatherV, call, in, out);
  slot.operation.sizes = sizes;
  slot.operation.root = root;
  return take_part(slot);
}

Status RoundCollective::scatter_v(const Call& call, std::span<const std::byte> in,
                                  std::span<const uint64_t> sizes, std::span<std::byte> out,
                                  int32_t root) {
  Slot slot = make_slot(Kind::kScatterV, call, in, out);
  slot.operation.sizes = sizes;
  slot.operation.root = root;
  return take_part(slot);
}

Status RoundCollective::all_to_all_v(const Call& call, std::span<const std::byte> in,
                                     std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                                     std::span<const uint64_t> out_sizes) {
  Slot slot = make_slot(Kind::kAllToAllV, call, in, out);
  slot.operation.sizes = in_sizes;
  slot.operation.out_sizes = out_sizes;
  return take_part(slot);
}

Status RoundCollective::all_reduce_i64(const Call& call, std::span<int64_t> values,
                                       ReduceOperation operation) {
  Slot slot = make_slot(Kind::kAllReduce, call, {}, {});
  slot.operation.reduction = operation;
  slot.operation.value_count = values.size();
  slot.values = values;
  return take_part(slot);
}

}  // namespace shardwright::collective::internal
