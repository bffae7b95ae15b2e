// SPDX-License-Identifier: Apache-2.0
//
// Step 2: all local plans to one global plan, in the stages of merge_internal.h.
#include "core/plan/save/global_plan.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/digest128.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/write_items.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::plan {
namespace {

// A local plan may describe objects of others' files; ours hold smaller ones.
Status check_object_sizes(const Catalog& catalog) {
  for (const ObjectRecord& object : catalog.objects) {
    if (object.size_bytes <= kMaxObjectBytes) continue;
    const std::string_view name = catalog.texts.at(object.name);
    return resource_exhausted(
               "object_bytes",
               fmt::format("object '{}' of rank {} has {} bytes, more than {}", escape_text(name),
                           object.place, object.size_bytes, kMaxObjectBytes))
        .with_detail("tensor", name)
        .with_detail("rank", std::to_string(object.place));
  }
  return {};
}

}  // namespace

Result<GlobalSavePlan> make_global_plan(const RankPlans& ranks, const SaveRules& rules) {
  SHW_ASSIGN_OR_RETURN(const MergePolicy policy, native_policy(rules.preset, rules.owner));
  SHW_ASSIGN_OR_RETURN(const internal::MergedEntries entries, internal::merge_entries(ranks));
  SHW_RETURN_IF_ERROR(internal::check_replicas(ranks, entries, rules.verify_replicas, policy));
  SHW_ASSIGN_OR_RETURN(internal::Merged merged, internal::deduplicate(ranks, entries, policy));
  internal::choose_owners(ranks, entries, policy, &merged);
  SHW_RETURN_IF_ERROR(check_object_sizes(merged.catalog));
  GlobalSavePlan plan;
  plan.writes = internal::list_writes(ranks, entries, merged);
  internal::finish_grids(&merged);
  plan.catalog = std::move(merged.catalog);
  SHW_RETURN_IF_ERROR(prove_all_covers(plan.catalog, Copies::kRefused, "rank"));
  SHW_ASSIGN_OR_RETURN(plan.plan_digest, catalog_digest(plan.catalog));
  return plan;
}

WriteList write_list_of(const GlobalSavePlan& plan, const RankView& rank) {
  WriteList list;
  list.rank = static_cast<int32_t>(rank.rank);
  list.world_size = static_cast<int32_t>(plan.rank_count());
  list.generation = plan.generation;
  list.plan_digest = plan.plan_digest;
  const KeptItems& kept = plan.writes.kept;
  list.items = write_items(rank, kept.bits(rank.rank), kept.order(rank.rank));
  return list;
}

}  // namespace shardwright::plan
