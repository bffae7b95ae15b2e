// SPDX-License-Identifier: Apache-2.0
//
// Load planning: matches the boxes that a state wants with the chunks that a checkpoint stores.
// Pure. The result lists what is read from which chunk into which piece, and proves that every
// wanted element is filled exactly once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/load/read_column.h"
#include "core/plan/plan_options.h"
#include "core/state/state.h"

namespace shardwright::plan {

struct ObjectRead {
  uint32_t entry = 0;   // object in the State
  uint64_t object = 0;  // object in the stored catalog
};

struct CastNote {
  uint32_t entry = 0;
  DType stored = DType::kInvalid;
  DType wanted = DType::kInvalid;
};

// An entry whose global shape differs from the stored one: both are anchored at the origin, what
// lies outside the stored shape becomes zero, what lies outside the wanted shape is not read.
struct ShapeNote {
  uint32_t entry = 0;
  uint64_t tensor = 0;  // tensor in the stored catalog
};

struct LoadPlan {
  int32_t rank = 0;
  std::string generation;  // of the checkpoint; execute refuses another one
  ReadColumn reads;        // ascending keys
  std::vector<ObjectRead> objects;
  std::vector<std::string> loaded;      // names
  std::vector<std::string> missing;     // wanted, not stored
  std::vector<std::string> unexpected;  // stored, not wanted
  std::vector<CastNote> casts;          // ascending entry
  std::vector<ShapeNote> shapes;        // ascending entry
};

namespace internal {
class ChunkSearch;
}

// Index over stored entries, built once per checkpoint: (name, rank) to entry by a hash table,
// wanted box to chunks by arithmetic where the chunks of a tensor are a grid (rows included) and by
// a tree of bounding boxes where they are not. Linear to build for grids, O(n log n) for others.
// Immutable, any thread; the catalog must outlive it.
class CatalogIndex {
 public:
  // The catalog passed check_catalog.
  explicit CatalogIndex(const Catalog& catalog);
  ~CatalogIndex();
  CatalogIndex(CatalogIndex&&) noexcept;
  CatalogIndex& operator=(CatalogIndex&&) noexcept;

  const Catalog& catalog() const;
  // Entry usable by rank: its own rank_local one, else the shared one; -1 when absent. Rank -1: the
  // shared one.
  int64_t find_tensor(std::string_view name, int32_t rank) const;
  int64_t find_object(std::string_view name, int32_t rank) const;
  // Chunks of tensor whose box has an element in common with the wanted box, in chunk order; of
  // copies the first one only.
  std::vector<uint64_t> chunks_meeting(size_t tensor, const Box& wanted) const;
  const internal::ChunkSearch& search(size_t tensor) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

// stored must have passed check_catalog and prove_all_covers (copies allowed: each element is read
// once, from the copy with the lowest number). Failures: NOT_FOUND with the three nearest names
// (missing = error), INVALID_ARGUMENT for shape or dtype that differ (both values), for unexpected =
// error, for boxes of one entry that share local memory; UNIMPLEMENTED for a sub-byte tensor of
// another shape. A rank_local entry of the state matches only the stored entry of the same rank;
// others match what CatalogIndex finds. Replicated wants match sharded chunks and the other way
// round. Stored entries that belong to other ranks are not unexpected. generation of the result is
// empty: the caller that knows it sets it. The preset does not change what a load plan says.
Result<LoadPlan> make_load_plan(const State& state, const Catalog& stored, const LoadRules& rules,
                                int32_t rank);
// The same with an index that is there already.
Result<LoadPlan> make_load_plan(const State& state, const CatalogIndex& stored,
                                const LoadRules& rules, int32_t rank);

// Numbers of the reads in the order in which their chunks lie in the files: file, then position,
// then read. stored: a manifest's catalog.
std::vector<uint64_t> reads_in_file_order(const LoadPlan& plan, const Catalog& stored);

// Whether the plan, which may come from elsewhere, fits this state and this catalog: every number
// in range, every read inside both its chunk and its piece, every element of every loaded entry
// filled exactly once (by corner sums, linear), every dtype and every shape that differ listed.
// FAILED_PRECONDITION naming what differs; INVALID_ARGUMENT for boxes of one entry that share local
// memory.
Status check_load_plan(const LoadPlan& plan, const State& state, const Catalog& stored);

}  // namespace shardwright::plan
