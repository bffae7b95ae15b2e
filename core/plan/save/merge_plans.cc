// SPDX-License-Identifier: Apache-2.0
//
// The stages of merge_internal.h over plan buffers.
#include "core/plan/save/merge_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/plan/cover/cover_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/search/chunk_search_internal.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

Status prove(const Catalog& catalog, const MergeRules& rules) {
  if (rules.cover == CoverRule::kOff) return {};
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    Status status = rules.cover == CoverRule::kFull
                        ? prove_cover(catalog, t, Copies::kRefused, "rank")
                        : internal::prove_disjoint(catalog, t, "rank");
    if (!status.ok()) {
      return std::move(status).with_detail("cover",
                                           rules.cover == CoverRule::kFull ? "full" : "disjoint");
    }
  }
  return {};
}

// What a rank keeps. numbers: of each of its items.
Status append_kept(const RankView& rank, std::span<const uint32_t> numbers, PlanParts* parts) {
  const PartView& part = rank.part;
  const bool as_they_stand = !rank.numbers.has_ruled && part.listing.object_begins.empty();
  std::vector<uint32_t> items;  // in the order of the entries
  if (!as_they_stand) {
    for_each_item(rank, [&](uint32_t item) {
      if (item < rank.tensor_item(0) || !box_is_empty(rank.box_of(item))) items.push_back(item);
    });
  }
  SHW_ASSIGN_OR_RETURN(const auto kept,
                       parts->append(as_they_stand ? numbers.size() : items.size()));
  if (as_they_stand) {
    std::ranges::copy(numbers, kept.begin());
  } else {
    std::ranges::transform(items, kept.begin(), [&](uint32_t item) { return numbers[item]; });
  }
  return {};
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

  GlobalSavePlan plan;
  plan.catalog = std::move(numbered.catalog);
  plan.listing = std::move(numbered.listing);
  SHW_ASSIGN_OR_RETURN(PlanParts parts, PlanParts::create(plan, numbered.numbers.size()));
  plan = {};
  const std::span<const uint32_t> numbers = numbered.numbers;
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    const uint64_t begin = numbered.item_begins[r];
    SHW_RETURN_IF_ERROR(append_kept(
        ranks.of(r), numbers.subspan(begin, numbered.item_begins[r + 1] - begin), &parts));
  }
  return parts;
}

}  // namespace shardwright::plan
