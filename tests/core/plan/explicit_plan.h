// SPDX-License-Identifier: Apache-2.0
//
// Explicit local plans of states, and what ranks exchange of local plans.
#pragma once

#include <vector>

#include "core/plan/describe/describe_state.h"
#include "core/plan/describe/explicit_plan.h"
#include "core/plan/describe/gather_descriptions.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan::test {

// The explicit local plan of a state.
inline Result<LocalSavePlan> make_local_plan(const State& state, const SaveRules& rules,
                                             RankPosition position, const ReplicaDigests& digests) {
  SHW_ASSIGN_OR_RETURN(const LocalSymbolicPlan plan,
                       describe_state(state, rules, position, digests, save_rules_text(rules)));
  return expand_local_plan(plan);
}

// What ranks exchange: digests, the representatives' descriptions and parts, all through buffers.
inline Result<RankDescriptions> gather(const std::vector<LocalSymbolicPlan>& locals) {
  std::vector<Digest128> digests;
  for (const LocalSymbolicPlan& local : locals) digests.push_back(local.part.description_digest);
  std::vector<SymbolicDescription> descriptions;
  for (const int32_t rank : representative_ranks(digests)) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         encode(locals[static_cast<size_t>(rank)].description));
    SHW_ASSIGN_OR_RETURN(SymbolicDescription description, decode_symbolic_save(bytes));
    descriptions.push_back(std::move(description));
  }
  std::vector<SymbolicPart> parts;
  for (const LocalSymbolicPlan& local : locals) {
    if (local.part.empty()) continue;
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, encode(local.part));
    SHW_ASSIGN_OR_RETURN(SymbolicPart part, decode_symbolic_part(bytes));
    parts.push_back(std::move(part));
  }
  return make_rank_descriptions(digests, std::move(descriptions), std::move(parts));
}

}  // namespace shardwright::plan::test
