// SPDX-License-Identifier: Apache-2.0
//
// Sentences about ranks that contradict each other.
#include "core/plan/save/conflicts_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan::internal {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

Status entry_conflict(std::string_view noun, std::string_view name, std::string_view property,
                      const ConflictSide& first, const ConflictSide& other) {
  std::string message = fmt::format("{} '{}' has {} {} on rank {} and {} on rank {}", noun,
                                    escape_text(name), property, escape_text(first.value),
                                    first.rank, escape_text(other.value), other.rank);
  if (property == "kind") message += "; give it one kind on all ranks (a kind pattern does)";
  return invalid_argument(std::move(message))
      .with_detail("tensor", name)
      .with_detail("parameter", property)
      .with_detail("rank", std::to_string(first.rank))
      .with_detail("rank", std::to_string(other.rank))
      .with_detail("expected", first.value)
      .with_detail("found", other.value);
}

Status check_same_entry(std::string_view noun, std::string_view name, const EntryFacts& first,
                        const EntryFacts& other) {
  const auto conflict = [&](std::string_view property, std::string first_value,
                            std::string other_value) {
    return entry_conflict(noun, name, property, {first.rank, std::move(first_value)},
                          {other.rank, std::move(other_value)});
  };
  if (first.kind != other.kind) {
    return conflict("kind", std::string(entry_kind_name(first.kind)),
                    std::string(entry_kind_name(other.kind)));
  }
  if (first.kind == EntryKind::kRankLocal) return {};
  if (first.dtype != other.dtype) {
    return conflict("dtype", std::string(dtype_name(first.dtype)),
                    std::string(dtype_name(other.dtype)));
  }
  if (!std::ranges::equal(first.shape, other.shape))
    return conflict("shape", shape_text(first.shape), shape_text(other.shape));
  if (first.path != other.path)
    return conflict("path", std::string(first.path), std::string(other.path));
  return {};
}

Status replicas_differ(std::string_view name, std::string_view property, int32_t first_rank,
                       int32_t other_rank) {
  return invalid_argument(
             fmt::format(
                 "'{}' is held by several ranks, but its {} differs between rank {} and rank {}; "
                 "declare it "
                 "rank_local (kind pattern) or save with verify_replicas=off, which keeps one of "
                 "them",
                 escape_text(name), property, first_rank, other_rank))
      .with_detail("tensor", name)
      .with_detail("rank", std::to_string(first_rank))
      .with_detail("rank", std::to_string(other_rank))
      .with_detail("hint", "declare it rank_local (kind pattern) or verify_replicas=off");
}

Status listed_twice(std::string_view name, int32_t rank, const Box& box) {
  const std::string text = box_text(box);
  return invalid_argument(
             fmt::format("tensor '{}': rank {} lists box {} twice, so it overlaps itself",
                         escape_text(name), rank, text))
      .with_detail("tensor", name)
      .with_detail("rank", std::to_string(rank))
      .with_detail("box", text);
}

}  // namespace shardwright::plan::internal
