// SPDX-License-Identifier: Apache-2.0
//
// The catalog that a symbolic plan stores, and the write lists of all ranks beside it.
#pragma once

#include <string>

#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {

Result<Catalog> stored_catalog(const SymbolicBody& body);
Result<GlobalSavePlan> expand_body(const SymbolicBody& body, std::string generation);

// Chunks of rank_local tensors that come as boxes, of all ranks.
uint64_t listed_local_chunks(const SymbolicBody& body);

}  // namespace shardwright::plan::internal
