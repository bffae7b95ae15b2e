// SPDX-License-Identifier: Apache-2.0
//
// SymbolicSavePlan: who writes what of what all ranks describe, by arithmetic. It equals the plan
// that make_global_plan makes of the ranks' explicit local plans, chunk by chunk and byte by byte,
// and nothing proportional to ranks x tensors is allocated or computed: the cost is O(entries of the
// distinct descriptions) and, for every kind of tensor (equal shape, cuts and holders), O(ranks).
// Boxes that follow no shared rule cost what they cost the explicit planner. A plan is a pure
// function of descriptions and rules, so every rank that knows the digests and the representatives
// makes the same one. Immutable; copies share the body; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan_options.h"
#include "core/plan/save/replica_sets.h"
#include "core/plan/save_plan.h"
#include "core/plan/symbolic/rank_descriptions.h"

namespace shardwright::plan {

namespace internal {
struct SymbolicBody;
}

struct SymbolicTotals {
  int32_t ranks = 0;
  uint64_t items = 0;         // entries of all ranks: what explicit local plans would list
  uint64_t chunks = 0;        // stored chunks
  uint64_t objects = 0;       // stored objects
  uint64_t writers = 0;       // ranks that write something
  uint64_t bytes = 0;         // of all chunks and objects
  uint64_t most_bytes = 0;    // of the rank that writes most
  uint64_t descriptions = 0;  // distinct
};

class SymbolicSavePlan {
 public:
  const RankDescriptions& ranks() const;
  SymbolicTotals totals() const;
  // Chunks and objects that the rank writes, without padding. rank < ranks().rank_count().
  uint64_t bytes_of_rank(int32_t rank) const;
  // Ranks that write something, ascending.
  std::vector<int32_t> writers() const;

  // Tensors that are not rank_local, in catalog order.
  size_t tensor_count() const;
  std::string_view tensor_name(size_t tensor) const;
  std::optional<size_t> find_tensor(std::string_view name) const;  // linear
  uint64_t chunk_count(size_t tensor) const;
  // Rank that writes the chunk, numbered as in the explicit catalog. OUT_OF_RANGE.
  Result<int32_t> owner(size_t tensor, uint64_t chunk) const;

  // Equal on all ranks that made the plan of the same descriptions under the same rules, 16 bytes instead
  // of the explicit catalog's digest, which would need the catalog.
  Digest128 digest() const;

  // By which later saves compare contents, per rank, as replica_sets has them of explicit plans.
  std::vector<ReplicaSets> replica_sets() const;

  // What one rank writes; all of it equals the explicit plan's list. INVALID_ARGUMENT for a rank
  // outside the job or a wrong generation. O(entries of the rank).
  struct Stamp {
    std::string generation;
    Digest128 plan_digest{};  // that of the catalog that will be committed
  };
  Result<WriteList> write_list(int32_t rank, const Stamp& stamp) const;

  // The explicit plan, equal to make_global_plan's in every byte. O(all chunks).
  Result<GlobalSavePlan> expand(std::string generation) const;

 private:
  friend Result<SymbolicSavePlan> make_symbolic_plan(RankDescriptions ranks,
                                                     const SaveRules& rules);
  explicit SymbolicSavePlan(std::shared_ptr<const internal::SymbolicBody> body)
      : body_(std::move(body)) {}
  std::shared_ptr<const internal::SymbolicBody> body_;  // co-owned by the copies of the plan
};

// False for owner rules that only the explicit planner follows.
bool follows_owner_rule(const SaveRules& rules);

// The failures of make_global_plan, in its words where both look for the same; UNIMPLEMENTED for
// rules that only the explicit planner follows.
Result<SymbolicSavePlan> make_symbolic_plan(RankDescriptions ranks, const SaveRules& rules);

}  // namespace shardwright::plan
