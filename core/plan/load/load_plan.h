// SPDX-License-Identifier: Apache-2.0
//
// Load planning: matches the boxes that a state wants with the chunks that a checkpoint stores. Pure. The result lists
// what is read from which chunk into which piece, and proves that every wanted element is filled exactly once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/plan_options.h"
#include "core/state/state.h"

namespace shardwright::plan {

// The common box of stored chunk and wanted piece.
struct ReadItem {
  uint32_t entry = 0;   // tensor in the State
  uint32_t piece = 0;
  uint64_t chunk = 0;   // chunk in the stored catalog
  Box box;              // in global index space, never empty
};

struct ObjectRead {
  uint32_t entry = 0;   // object in the State
  uint64_t object = 0;  // object in the stored catalog
};

struct CastNote {
  uint32_t entry = 0;
  DType stored = DType::kInvalid;
  DType wanted = DType::kInvalid;
};

struct LoadPlan {
  int32_t rank = 0;
  std::string generation;              // of the checkpoint; execute refuses another one
  std::vector<ReadItem> reads;         // ascending chunk
  std::vector<ObjectRead> objects;
  std::vector<std::string> loaded;     // names
  std::vector<std::string> missing;    // wanted, not stored
  std::vector<std::string> unexpected; // stored, not wanted
  std::vector<CastNote> casts;
};

// stored must have passed check_catalog and prove_all_covers. Failures: NOT_FOUND with the three nearest names
// (missing = error), INVALID_ARGUMENT for shape or dtype that differ (both values), for unexpected = error.
// A rank_local entry matches only the stored entry of the same rank. Replicated wants match sharded chunks and the
// other way round.
Result<LoadPlan> make_load_plan(const State& state, const Catalog& stored, const LoadRules& rules, int32_t rank);

// Index from (name, rank) to stored entries, built once per checkpoint. Immutable; the catalog must outlive it.
class CatalogIndex {
 public:
  explicit CatalogIndex(const Catalog& catalog);
  // Entry usable by rank: its own rank_local one, else the shared one; -1 when absent.
  int64_t find_tensor(std::string_view name, int32_t rank) const;
  int64_t find_object(std::string_view name, int32_t rank) const;
  // Chunks of tensor whose box meets the wanted box, in chunk order.
  std::vector<uint64_t> chunks_meeting(size_t tensor, const Box& wanted) const;

 private:
  const Catalog* catalog_;
  std::vector<uint32_t> tensors_by_name_;
  std::vector<uint32_t> objects_by_name_;
};

}  // namespace shardwright::plan
