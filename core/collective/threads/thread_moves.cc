// SPDX-License-Identifier: Apache-2.0
//
// A step of a part goes to all that want it while it is in a cache; a reduction brings the same
// step of all ranks together in scratch memory of about that size, reduces it there, and writes it
// once.
#include <algorithm>

#include "core/base/copy_bytes.h"
#include "core/collective/threads/thread_moves_internal.h"

namespace shardwright::collective::internal {
namespace {

constexpr uint64_t kCopyStepBytes = 256 * 1024;
constexpr uint64_t kReduceScratchBytes = 256 * 1024;
constexpr uint64_t kReduceStepLeast = 4096;  // for worlds of any size
constexpr uint64_t kStepAlignment = 64;      // whole elements of any dtype

bool is_reduction(OperationKind kind) {
  return kind == OperationKind::kReduceScatter || kind == OperationKind::kAllReduce;
}

uint64_t step_bytes_of(OperationKind kind, uint64_t part_bytes, uint64_t world) {
  if (!is_reduction(kind)) return std::min(kCopyStepBytes, part_bytes);
  const uint64_t step = kReduceScratchBytes / world / kStepAlignment * kStepAlignment;
  return std::min(std::max(step, kReduceStepLeast), part_bytes);
}

uint64_t moves_per_step(OperationKind kind, uint64_t world) {
  switch (kind) {
    case OperationKind::kAllGather:      // of each sender
    case OperationKind::kReduceScatter:  // of each receiver
      return world;
    case OperationKind::kAllToAll:
      return world * world;
    case OperationKind::kAllReduce:
    case OperationKind::kBroadcast:
      return 1;
    case OperationKind::kBarrier:
      return 0;
  }
  return 0;
}

// The bytes of one move: a step of the part with this number.
class Step {
 public:
  Step(const MoveSizes& sizes, uint64_t index)
      : part_(index / sizes.steps),
        part_bytes_(sizes.part_bytes),
        begin_(index % sizes.steps * sizes.step_bytes),
        bytes_(std::min(sizes.step_bytes, sizes.part_bytes - begin_)) {}

  size_t part() const { return static_cast<size_t>(part_); }
  size_t size() const { return static_cast<size_t>(bytes_); }
  // Where it lies in memory that has parts back to back.
  std::span<const std::byte> in(std::span<const std::byte> parts, size_t part) const {
    return parts.subspan(offset(part), size());
  }
  std::span<std::byte> in(std::span<std::byte> parts, size_t part) const {
    return parts.subspan(offset(part), size());
  }

 private:
  size_t offset(size_t part) const { return static_cast<size_t>(part * part_bytes_ + begin_); }

  uint64_t part_;
  uint64_t part_bytes_;
  uint64_t begin_;
  uint64_t bytes_;
};

void gather_step(std::span<const TensorOperation> ranks, const Step& step) {
  const std::span<const std::byte> from = step.in(ranks[step.part()].in, 0);
  for (const TensorOperation& rank : ranks) {
    const std::span<std::byte> to = step.in(rank.out, step.part());
    if (to.data() != from.data()) copy_bytes(from, to);  // a rank's own part may be there already
  }
}

void exchange_step(std::span<const TensorOperation> ranks, const Step& step) {
  const size_t from = step.part() / ranks.size();
  const size_t to = step.part() % ranks.size();
  copy_bytes(step.in(ranks[from].in, to), step.in(ranks[to].out, from));
}

Status reduce_scatter_step(std::span<const TensorOperation> ranks, const Step& step,
                           std::span<std::byte> scratch) {
  std::span<std::byte> room = scratch.first(step.size() * ranks.size());
  const std::span<std::byte> parts = room;
  for (const TensorOperation& rank : ranks) room = copy_bytes(step.in(rank.in, step.part()), room);
  const TensorOperation& receiver = ranks[step.part()];
  return reduce_parts(receiver.call, parts, ranks.size(), step.in(receiver.out, 0));
}

Status all_reduce_step(std::span<const TensorOperation> ranks, const Step& step,
                       std::span<std::byte> scratch) {
  std::span<std::byte> room = scratch.first(step.size() * ranks.size());
  const std::span<std::byte> parts = room;
  for (const TensorOperation& rank : ranks) room = copy_bytes(step.in(rank.out, 0), room);
  const std::span<std::byte> sum = parts.first(step.size());
  SHW_RETURN_IF_ERROR(reduce_parts(ranks[0].call, parts, ranks.size(), sum));
  for (const TensorOperation& rank : ranks) copy_bytes(sum, step.in(rank.out, 0));
  return {};
}

void broadcast_step(std::span<const TensorOperation> ranks, const Step& step) {
  const std::span<std::byte> from = step.in(ranks[static_cast<size_t>(ranks[0].root)].out, 0);
  for (const TensorOperation& rank : ranks) {
    const std::span<std::byte> to = step.in(rank.out, 0);
    if (to.data() != from.data()) copy_bytes(from, to);
  }
}

}  // namespace

MoveSizes move_sizes(const TensorOperation& own, uint64_t part_bytes, size_t world) {
  MoveSizes sizes;
  if (part_bytes == 0) return sizes;
  sizes.part_bytes = part_bytes;
  sizes.step_bytes = step_bytes_of(own.kind, part_bytes, world);
  sizes.steps = (part_bytes + sizes.step_bytes - 1) / sizes.step_bytes;
  sizes.count = sizes.steps * moves_per_step(own.kind, world);
  if (is_reduction(own.kind)) sizes.scratch_bytes = sizes.step_bytes * world;
  return sizes;
}

Status make_move(std::span<const TensorOperation> ranks, const MoveSizes& sizes, uint64_t index,
                 std::span<std::byte> scratch) {
  const Step step(sizes, index);
  switch (ranks[0].kind) {
    case OperationKind::kAllGather:
      gather_step(ranks, step);
      return {};
    case OperationKind::kAllToAll:
      exchange_step(ranks, step);
      return {};
    case OperationKind::kReduceScatter:
      return reduce_scatter_step(ranks, step, scratch);
    case OperationKind::kAllReduce:
      return all_reduce_step(ranks, step, scratch);
    case OperationKind::kBroadcast:
      broadcast_step(ranks, step);
      return {};
    case OperationKind::kBarrier:
      return {};
  }
  return {};
}

}  // namespace shardwright::collective::internal
