// SPDX-License-Identifier: Apache-2.0
//
// The stages of merge_internal.h over plan buffers.
#include "core/plan/save/merge_plans.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/plan/cover/cover_internal.h"
#include "core/plan/describe/explicit_plan.h"
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

// No column of a kept plan is larger than what the rank described. The buffer that a description came
// in says less: its columns may lie in the same bytes.
uint64_t capacity_for(std::span<const LocalView> locals, const GlobalSavePlan& merged) {
  uint64_t bytes = merged_save_wire_bytes(merged);
  for (const LocalView& local : locals) bytes += local_save_wire_bytes(local);
  return bytes;
}

// Memory for all plans with the merged one in it, whose columns go.
Result<PlanParts> begin_parts(std::span<const LocalView> locals, Catalog catalog, Listing listing) {
  GlobalSavePlan merged;
  merged.catalog = std::move(catalog);
  merged.listing = std::move(listing);
  PlanParts parts(capacity_for(locals, merged));
  SHW_RETURN_IF_ERROR(parts.append_first(merged));
  return parts;
}

// Buffers of which those by layouts are made explicit.
struct ExplicitBuffers {
  std::vector<std::span<const std::byte>> plans;
  std::vector<Bytes> made;  // stay where they are
};

Result<ExplicitBuffers> explicit_buffers(std::span<const std::span<const std::byte>> plans) {
  ExplicitBuffers buffers;
  buffers.plans.assign(plans.begin(), plans.end());
  buffers.made.reserve(plans.size());
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    const Result<PlanKind> kind = plan_kind(plans[rank]);
    if (!kind.ok() || *kind != PlanKind::kSymbolicLocal) continue;
    Result<Bytes> made = explicit_local_save(plans[rank]);
    if (!made.ok()) {
      return Status(made.status())
          .with_detail("rank", std::to_string(rank))
          .annotated(fmt::format("read the plan of rank {}", rank));
    }
    buffers.made.push_back(std::move(*made));
    buffers.plans[rank] = buffers.made.back();
  }
  return buffers;
}

}  // namespace

Result<PlanParts> merge_plans(std::span<const std::span<const std::byte>> given,
                              const MergeRules& rules) {
  SHW_ASSIGN_OR_RETURN(const ExplicitBuffers buffers, explicit_buffers(given));
  const std::span<const std::span<const std::byte>> plans = buffers.plans;
  const MergePolicy policy = merge_policy(rules.preset, rules.owner);
  SHW_ASSIGN_OR_RETURN(const LocalViews locals, open_local_saves(plans));
  SHW_RETURN_IF_ERROR(internal::check_ranks(locals.views));
  const RankPlans ranks = rank_plans_of(locals);
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

  SHW_ASSIGN_OR_RETURN(PlanParts parts, begin_parts(locals.views, std::move(numbered.catalog),
                                                    std::move(numbered.listing)));
  PlanEncoder encoder;
  LocalSavePlan kept;
  const std::span<const uint32_t> numbers = numbered.numbers;
  for (size_t r = 0; r < locals.views.size(); ++r) {
    const uint64_t begin = numbered.item_begins[r];
    internal::make_kept_plan(locals.views[r],
                             numbers.subspan(begin, numbered.item_begins[r + 1] - begin), &kept);
    SHW_ASSIGN_OR_RETURN(const auto bytes, encoder.encode(kept));
    SHW_RETURN_IF_ERROR(parts.append(bytes));
  }
  return parts;
}

}  // namespace shardwright::plan
