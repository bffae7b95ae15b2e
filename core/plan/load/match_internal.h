// SPDX-License-Identifier: Apache-2.0
//
// Parts of make_load_plan. Pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/plan/plan_options.h"
#include "core/plan/search/chunk_search_internal.h"
#include "core/state/state.h"

namespace shardwright::plan::internal {

// What counts for one name: the first strict pattern that matches it, else the general rules.
struct NameRules {
  MissingRule missing = MissingRule::kError;
  UnexpectedRule unexpected = UnexpectedRule::kReport;
  CastRule cast = CastRule::kError;
  ShapeRule shape = ShapeRule::kError;
};
NameRules rules_of(const LoadRules& rules, std::string_view name);

// Stored entry that an entry of the state takes, or -1.
int64_t stored_tensor(const CatalogIndex& stored, const TensorRef& wanted, int32_t rank);
int64_t stored_object(const CatalogIndex& stored, const ObjectEntry& wanted, int32_t rank);

// NOT_FOUND for a wanted tensor or object that is not stored for this rank, with the nearest names.
Status not_stored(const CatalogIndex& stored, std::string_view noun, std::string_view name,
                  int32_t rank);

// Names that rank could take from the catalog but the state does not want: tensors, then objects,
// in catalog order.
std::vector<std::string> unexpected_names(const State& state, const Catalog& stored, int32_t rank);

// INVALID_ARGUMENT when two boxes of the entry lie on the same elements of its local tensor: a load
// would overwrite one with the other. Linear for boxes in ascending order, else O(n log n).
Status check_local_runs_apart(const TensorRef& wanted);

// The common boxes of every piece of the entry with the chunks of a stored tensor, and the proof
// that they fill each piece exactly once, as far as it lies inside the stored shape. INTERNAL when
// they do not. Adds the reads of the entry in the order of their keys.
Status match_pieces(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted,
                    uint32_t entry, ReadColumn* reads);

// Reads that match_pieces will add when the chunks are a grid, else a guess for reserving memory.
uint64_t expected_reads(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted);

}  // namespace shardwright::plan::internal
