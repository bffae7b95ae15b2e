// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/collective/operation_internal.h"

namespace shardwright::collective::internal {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kBarrier:
      return "barrier";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kAllGatherV:
      return "all_gather_v";
    case Kind::kGatherV:
      return "gather_v";
    case Kind::kScatterV:
      return "scatter_v";
    case Kind::kAllToAllV:
      return "all_to_all_v";
    case Kind::kAllReduce:
      return "all_reduce";
  }
  return "unknown";
}

namespace {

// Text of what must be equal on all ranks.
std::string signature(const Operation& own) {
  std::string text =
      fmt::format("{} number {} tag {:#x}", kind_name(own.kind), own.call.sequence, own.call.tag);
  switch (own.kind) {
    case Kind::kBarrier:
    case Kind::kAllToAllV:
      break;
    case Kind::kBroadcast:
      text += fmt::format(" of {} bytes from rank {}", own.out_bytes, own.root);
      break;
    case Kind::kAllGather:
      text += fmt::format(" of {} bytes", own.in_bytes);
      break;
    case Kind::kAllGatherV:
      text += fmt::format(" of {} bytes in all", own.out_bytes);
      break;
    case Kind::kGatherV:
    case Kind::kScatterV:
      text += fmt::format(" with root {}", own.root);
      break;
    case Kind::kAllReduce:
      text += fmt::format(" {} of {} values", static_cast<int32_t>(own.reduction), own.value_count);
      break;
  }
  return text;
}

bool has_root(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kGatherV || kind == Kind::kScatterV;
}

bool is_same(const Operation& a, const Operation& b) {
  if (a.kind != b.kind || a.call.sequence != b.call.sequence || a.call.tag != b.call.tag ||
      a.root != b.root || a.reduction != b.reduction || a.value_count != b.value_count) {
    return false;
  }
  if (a.kind == Kind::kGatherV || a.kind == Kind::kScatterV || a.kind == Kind::kAllToAllV)
    return true;
  return a.out_bytes == b.out_bytes && std::ranges::equal(a.sizes, b.sizes);
}

Status bad_argument(size_t rank, std::string text) {
  return invalid_argument(fmt::format("rank {}: {}", rank, text))
      .with_detail("rank", fmt::to_string(rank));
}

// Sizes that a rank gives, one per rank, and how much memory it has for all of them.
struct Row {
  std::span<const uint64_t> sizes;
  uint64_t memory_bytes = 0;
};

Status check_row(Kind kind, size_t rank, size_t world, const Row& row) {
  const std::string_view name = kind_name(kind);
  if (row.sizes.size() != world) {
    return bad_argument(
        rank, fmt::format("{} with {} sizes for {} ranks", name, row.sizes.size(), world));
  }
  uint64_t total = 0;
  for (const uint64_t size : row.sizes) {
    if (!checked_add(total, size, &total))
      return bad_argument(rank, fmt::format("{} is too large", name));
  }
  if (total == row.memory_bytes) return {};
  return bad_argument(rank, fmt::format("{} of {} bytes in all with {} bytes of memory", name,
                                        total, row.memory_bytes));
}

Status wrong_part(Kind kind, size_t rank, uint64_t own, uint64_t told) {
  return bad_argument(
      rank, fmt::format("{} has {} bytes where {} were told", kind_name(kind), own, told));
}

// What rank `to` expects of rank `from` against what that one sends it.
Status check_pair(const Operation& receiver, size_t to, const Operation& sender, size_t from) {
  const uint64_t expected = receiver.out_sizes[from];
  const uint64_t sent = sender.sizes[to];
  if (expected == sent) return {};
  return bad_argument(to, fmt::format("{} expects {} bytes of rank {}, which sends {}",
                                      kind_name(receiver.kind), expected, from, sent));
}

}  // namespace

Status check_own(const Operation& own, size_t rank, size_t world) {
  if (has_root(own.kind) && (own.root < 0 || std::cmp_greater_equal(own.root, world))) {
    return bad_argument(
        rank, fmt::format("{} with root {} of {} ranks", kind_name(own.kind), own.root, world));
  }
  uint64_t gathered = 0;
  const bool counts = checked_multiply(own.in_bytes, static_cast<uint64_t>(world), &gathered);
  if (own.kind == Kind::kAllGather && (!counts || own.out_bytes != gathered)) {
    return bad_argument(rank, fmt::format("all_gather of {} bytes from {} ranks into {} bytes",
                                          own.in_bytes, world, own.out_bytes));
  }
  const bool is_root = std::cmp_equal(own.root, rank);
  const Row sent{own.sizes, own.in_bytes};
  const Row received{own.sizes, own.out_bytes};
  if (own.kind == Kind::kGatherV && is_root) return check_row(own.kind, rank, world, received);
  if (own.kind == Kind::kScatterV && is_root) return check_row(own.kind, rank, world, sent);
  if (own.kind == Kind::kAllToAllV) {
    SHW_RETURN_IF_ERROR(check_row(own.kind, rank, world, sent));
    return check_row(own.kind, rank, world, {own.out_sizes, own.out_bytes});
  }
  if (own.kind != Kind::kAllGatherV) return {};
  SHW_RETURN_IF_ERROR(check_row(own.kind, rank, world, received));
  if (own.sizes[rank] == own.in_bytes) return {};
  return wrong_part(own.kind, rank, own.in_bytes, own.sizes[rank]);
}

Status check_arguments(std::span<const Operation> ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    SHW_RETURN_IF_ERROR(check_own(ranks[rank], rank, ranks.size()));
  return {};
}

Status check_in_step(std::span<const Operation> ranks) {
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (is_same(ranks[0], ranks[rank])) continue;
    return aborted(fmt::format("ranks are out of step: rank 0 calls {}, rank {} calls {}",
                               signature(ranks[0]), rank, signature(ranks[rank])))
        .with_detail("rank", fmt::to_string(rank))
        .with_detail("expected", signature(ranks[0]))
        .with_detail("found", signature(ranks[rank]))
        .with_detail("sequence", fmt::to_string(ranks[rank].call.sequence))
        .with_detail("tag", fmt::to_string(ranks[rank].call.tag));
  }
  return {};
}

Status check_parts(std::span<const Operation> ranks) {
  const Kind kind = ranks[0].kind;
  for (size_t to = 0; kind == Kind::kAllToAllV && to < ranks.size(); ++to) {
    for (size_t from = 0; from < ranks.size(); ++from)
      SHW_RETURN_IF_ERROR(check_pair(ranks[to], to, ranks[from], from));
  }
  if (kind != Kind::kGatherV && kind != Kind::kScatterV) return {};
  const Operation& root = ranks[static_cast<size_t>(ranks[0].root)];
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const uint64_t own = kind == Kind::kGatherV ? ranks[rank].in_bytes : ranks[rank].out_bytes;
    if (own != root.sizes[rank]) return wrong_part(kind, rank, own, root.sizes[rank]);
  }
  return {};
}

bool reduce_value(ReduceOperation reduction, int64_t value, int64_t* total) {
  switch (reduction) {
    case ReduceOperation::kMin:
      *total = std::min(*total, value);
      return true;
    case ReduceOperation::kMax:
      *total = std::max(*total, value);
      return true;
    case ReduceOperation::kSum:
      return checked_add(*total, value, total);
  }
  return false;
}

Status sum_too_large(size_t value, size_t ranks) {
  return out_of_range(
      fmt::format("the sum of value {} over {} ranks does not fit 64 bits", value, ranks));
}

uint64_t sum_before(std::span<const uint64_t> sizes, size_t rank) {
  uint64_t sum = 0;
  for (const uint64_t size : sizes.first(rank)) sum += size;
  return sum;
}

}  // namespace shardwright::collective::internal
