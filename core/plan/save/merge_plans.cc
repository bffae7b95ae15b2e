// SPDX-License-Identifier: Apache-2.0
//
// The stages of merge_internal.h over plan buffers.
#include "core/plan/save/merge_plans.h"

#include <utility>

#include "core/plan/cover/cover_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/search/prove_disjoint_internal.h"
#include "core/plan/wire/open_locals.h"

namespace shardwright::plan {
namespace {

Status prove(const Catalog& catalog, const MergeRules& rules) {
  if (rules.cover == CoverRule::kOff) return {};
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    Status status = rules.cover == CoverRule::kFull
                        ? internal::prove_cover_naming(catalog, t, "rank")
                        : internal::prove_disjoint(catalog, t, "rank");
    if (!status.ok()) {
      return std::move(status).with_detail("cover",
                                           rules.cover == CoverRule::kFull ? "full" : "disjoint");
    }
  }
  return {};
}

// Memory for all plans with the merged one in it, whose columns go.
Result<PlanParts> begin_parts(uint64_t kept_bytes, internal::NumberedChunks* numbered) {
  GlobalSavePlan merged;
  merged.catalog = std::move(numbered->catalog);
  merged.listing = std::move(numbered->listing);
  PlanParts parts(merged_save_wire_bytes(merged) + kept_bytes);
  SHW_RETURN_IF_ERROR(parts.append_first(merged));
  return parts;
}

}  // namespace

Result<PlanParts> merge_plans(std::span<const std::span<const std::byte>> plans,
                              const MergeRules& rules) {
  const MergePolicy policy = merge_policy(rules.preset, rules.owner);
  SHW_ASSIGN_OR_RETURN(const RankPlans ranks, open_local_saves(plans));
  SHW_ASSIGN_OR_RETURN(const internal::MergedEntries entries, internal::merge_entries(ranks));
  SHW_RETURN_IF_ERROR(internal::check_replicas(ranks, entries, rules.verify_replicas, policy));
  SHW_ASSIGN_OR_RETURN(internal::Merged merged, internal::deduplicate(ranks, entries, policy));
  internal::choose_owners(ranks, entries, policy, &merged);
  // Replicas that are all kept are no overlap: then the distinct boxes are what must tile.
  const bool all = policy.choice == MergePolicy::Choice::kAll;
  if (all) SHW_RETURN_IF_ERROR(prove(merged.catalog, rules));
  internal::NumberedChunks numbered =
      internal::number_chunks(ranks, entries, std::move(merged), policy);
  if (!all) SHW_RETURN_IF_ERROR(prove(numbered.catalog, rules));

  internal::KeptPlans kept(ranks, numbered);
  const auto count = static_cast<uint32_t>(ranks.rank_count());
  uint64_t bytes = 0;
  for (uint32_t r = 0; r < count; ++r) bytes += kept.wire_bytes(r);
  SHW_ASSIGN_OR_RETURN(PlanParts parts, begin_parts(bytes, &numbered));
  for (uint32_t r = 0; r < count; ++r) {
    SHW_ASSIGN_OR_RETURN(const auto plan, kept.of(r));
    SHW_RETURN_IF_ERROR(parts.append(plan));
  }
  return parts;
}

}  // namespace shardwright::plan
