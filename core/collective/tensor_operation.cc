// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::collective {

std::string_view operation_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAllGather:
      return "all_gather";
    case OperationKind::kAllToAll:
      return "all_to_all";
    case OperationKind::kReduceScatter:
      return "reduce_scatter";
    case OperationKind::kAllReduce:
      return "all_reduce";
    case OperationKind::kBroadcast:
      return "broadcast";
    case OperationKind::kBarrier:
      return "barrier";
  }
  return "unknown";
}

namespace {

bool reduces(OperationKind kind) {
  return kind == OperationKind::kReduceScatter || kind == OperationKind::kAllReduce;
}

std::string_view reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kAverage:
      return "average";
    case Reduction::kScaledSum:
      return "scaled sum";
    case Reduction::kMax:
      return "greatest";
    case Reduction::kMin:
      return "least";
  }
  return "unknown reduction";
}

// Text of what must be equal on all ranks.
std::string text_of_all(const TensorOperation& own) {
  std::string text = operation_title(own);
  if (own.call.tag != 0) text += fmt::format(" tag {:#x}", own.call.tag);
  if (own.kind == OperationKind::kBarrier) return text;
  text += fmt::format(", {} elements of {}", own.call.count, dtype_name(own.call.dtype));
  if (own.kind == OperationKind::kBroadcast) text += fmt::format(", from rank {}", own.root);
  if (!reduces(own.kind)) return text;
  text += fmt::format(", {}", reduction_name(own.call.reduction));
  if (own.call.reduction == Reduction::kScaledSum) text += fmt::format(" by {}", own.call.scale);
  return text;
}

bool is_same_operation(const TensorOperation& a, const TensorOperation& b) {
  if (a.kind != b.kind || a.call.sequence != b.call.sequence || a.call.unit != b.call.unit ||
      a.call.tag != b.call.tag)
    return false;
  if (a.kind == OperationKind::kBarrier) return true;
  if (a.call.count != b.call.count || a.call.dtype != b.call.dtype || a.root != b.root)
    return false;
  if (!reduces(a.kind)) return true;
  return a.call.reduction == b.call.reduction &&
         (a.call.reduction != Reduction::kScaledSum || a.call.scale == b.call.scale);
}

Status wrong_operation(const TensorOperation& own, int32_t rank, std::string_view what) {
  return invalid_argument(fmt::format("rank {}: {} {}", rank, operation_title(own), what))
      .with_detail("rank", fmt::to_string(rank))
      .with_detail("unit", fmt::to_string(own.call.unit));
}

// How many parts lie in the memory that is read, and in what is written.
struct PartCounts {
  uint64_t in = 0;
  uint64_t out = 0;
};

PartCounts part_counts(OperationKind kind, int32_t world) {
  const auto all = static_cast<uint64_t>(world);
  switch (kind) {
    case OperationKind::kAllGather:
      return {1, all};
    case OperationKind::kAllToAll:
      return {all, all};
    case OperationKind::kReduceScatter:
      return {all, 1};
    case OperationKind::kAllReduce:
    case OperationKind::kBroadcast:
      return {0, 1};
    case OperationKind::kBarrier:
      return {0, 0};
  }
  return {0, 0};
}

Status check_memory(const TensorOperation& own, int32_t rank, int32_t world, uint64_t part_bytes) {
  const PartCounts counts = part_counts(own.kind, world);
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;
  if (!checked_multiply(part_bytes, counts.in, &in_bytes) ||
      !checked_multiply(part_bytes, counts.out, &out_bytes))
    return wrong_operation(own, rank, "is too large");
  if (own.in.size() == in_bytes && own.out.size() == out_bytes) return {};
  return wrong_operation(
      own, rank,
      fmt::format("of {} ranks and {} elements of {} reads {} bytes and writes {}, not {} and {}",
                  world, own.call.count, dtype_name(own.call.dtype), in_bytes, out_bytes,
                  own.in.size(), own.out.size()));
}

}  // namespace

std::string operation_title(const TensorOperation& own) {
  return fmt::format("{} number {} of unit {}", operation_name(own.kind), own.call.sequence,
                     own.call.unit);
}

Result<uint64_t> check_operation(const TensorOperation& own, int32_t rank, int32_t world) {
  if (own.kind == OperationKind::kBarrier) return uint64_t{0};
  if (own.root < 0 || own.root >= world)
    return wrong_operation(own, rank, fmt::format("has root {} of {} ranks", own.root, world));
  int64_t count = 0;
  if (!checked_cast(own.call.count, &count)) return wrong_operation(own, rank, "is too large");
  Result<uint64_t> part_bytes = dtype_packed_bytes(own.call.dtype, count);
  if (!part_bytes.ok()) return wrong_operation(own, rank, part_bytes.status().message());
  if (!dtype_fills_bytes(own.call.dtype, count))
    return wrong_operation(own, rank, "has parts that end inside a byte");
  SHW_RETURN_IF_ERROR(check_memory(own, rank, world, *part_bytes));
  if (reduces(own.kind)) {
    Status there = check_reduction(own.call.reduction, own.call.dtype);
    if (!there.ok()) return std::move(there).annotated(operation_title(own));
  }
  return part_bytes;
}

Status check_same(const TensorOperation& first, size_t first_rank, const TensorOperation& other,
                  size_t other_rank) {
  if (is_same_operation(first, other)) return {};
  const std::string expected = text_of_all(first);
  const std::string found = text_of_all(other);
  return aborted(fmt::format("ranks are out of step: rank {} calls {}; rank {} calls {}",
                             first_rank, expected, other_rank, found))
      .with_detail("rank", fmt::to_string(other_rank))
      .with_detail("expected", expected)
      .with_detail("found", found)
      .with_detail("sequence", fmt::to_string(other.call.sequence))
      .with_detail("unit", fmt::to_string(other.call.unit));
}

uint32_t operation_tag(const TensorOperation& own) {
  uint64_t mixed = static_cast<uint64_t>(own.kind);
  const auto mix = [&mixed](uint64_t value) {
    mixed = (mixed ^ value) * 0x9e37'79b9'7f4a'7c15;  // odd, so that no value is lost
    mixed ^= mixed >> 32;
  };
  mix(own.call.unit);
  mix(own.call.tag);
  if (own.kind == OperationKind::kBarrier) return static_cast<uint32_t>(mixed);
  mix(own.call.count);
  mix(static_cast<uint64_t>(own.call.dtype));
  mix(static_cast<uint64_t>(own.root));
  if (reduces(own.kind)) mix(static_cast<uint64_t>(own.call.reduction));
  if (reduces(own.kind) && own.call.reduction == Reduction::kScaledSum)
    mix(std::bit_cast<uint64_t>(own.call.scale));
  return static_cast<uint32_t>(mixed);
}

uint64_t received_bytes(const TensorOperation& own, uint64_t part_bytes, int32_t world) {
  const auto others = static_cast<uint64_t>(world - 1);
  switch (own.kind) {
    case OperationKind::kAllGather:
    case OperationKind::kAllToAll:
    case OperationKind::kReduceScatter:
      return part_bytes * others;
    case OperationKind::kAllReduce:  // a part of it of each other one, then the sums of theirs
      return 2 * (part_bytes / static_cast<uint64_t>(world)) * others;
    case OperationKind::kBroadcast:
      return others == 0 ? 0 : part_bytes;
    case OperationKind::kBarrier:
      return 0;
  }
  return 0;
}

}  // namespace shardwright::collective
