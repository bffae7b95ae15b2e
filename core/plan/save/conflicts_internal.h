// SPDX-License-Identifier: Apache-2.0
//
// What is said when ranks contradict each other, the same by whichever engine it was found. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/layout/box.h"
#include "core/state/tensor_entry.h"

namespace shardwright::plan::internal {

struct ConflictSide {
  int32_t rank = 0;
  std::string value;
};
// "<noun> 'name' has <property> a on rank i and b on rank k".
Status entry_conflict(std::string_view noun, std::string_view name, std::string_view property,
                      const ConflictSide& first, const ConflictSide& other);

// What the entries of one name must agree on.
struct EntryFacts {
  int32_t rank = 0;
  EntryKind kind = EntryKind::kReplicated;
  std::string_view path;
  DType dtype = DType::kInvalid;  // of both or of none: objects have no dtype and no shape
  std::span<const int64_t> shape;
};
// INVALID_ARGUMENT for a kind that differs, and unless the entry is rank_local, for a dtype, shape
// or path.
Status check_same_entry(std::string_view noun, std::string_view name, const EntryFacts& first,
                        const EntryFacts& other);

// Replicas whose content digests, sizes or content types (`property`) differ.
Status replicas_differ(std::string_view name, std::string_view property, int32_t first_rank,
                       int32_t other_rank);

// A rank that gives the same box of a tensor twice.
Status listed_twice(std::string_view name, int32_t rank, const Box& box);

}  // namespace shardwright::plan::internal
