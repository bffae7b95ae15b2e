// SPDX-License-Identifier: Apache-2.0
//
// Step 2: all local plans to one global plan, in the stages of merge_internal.h.
#include "core/plan/save/global_plan.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/digest.h"
#include "core/plan/generation_internal.h"
#include "core/plan/save/merge_internal.h"
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

Result<GlobalSavePlan> make_global_plan(const LocalViews& locals, const SaveRules& rules,
                                        std::string generation) {
  if (!internal::is_generation_text(generation)) {
    return invalid_argument(fmt::format("generation '{}' is not 32 lower-case hex digits",
                                        escape_text(generation)))
        .with_detail("generation", generation);
  }
  SHW_ASSIGN_OR_RETURN(const MergePolicy policy, native_policy(rules.preset, rules.owner));
  SHW_RETURN_IF_ERROR(internal::check_ranks(locals.views));
  SHW_ASSIGN_OR_RETURN(internal::MergedEntries groups, internal::merge_entries(locals));
  SHW_RETURN_IF_ERROR(
      internal::check_replicas(locals.views, &groups, rules.verify_replicas, policy));
  SHW_ASSIGN_OR_RETURN(internal::Deduplicated distinct,
                       internal::deduplicate(locals.views, &groups, policy));
  const std::vector<uint32_t> chosen = internal::choose_owners(locals.views, policy, &distinct);
  SHW_RETURN_IF_ERROR(check_object_sizes(distinct.catalog));
  const internal::Owners owners = internal::owners_of(distinct, chosen);

  GlobalSavePlan plan;
  plan.catalog = std::move(distinct.catalog);
  plan.lists.resize(locals.views.size());
  internal::list_writes(owners, &plan);
  internal::name_items(locals.views, &plan.lists);
  find_grids(&plan.catalog);
  SHW_RETURN_IF_ERROR(internal::prove_all_covers_naming(plan.catalog, "rank"));
  SHW_ASSIGN_OR_RETURN(plan.plan_digest, catalog_digest(plan.catalog));
  plan.generation = std::move(generation);
  for (size_t r = 0; r < plan.lists.size(); ++r) {
    WriteList& list = plan.lists[r];
    list.rank = static_cast<int32_t>(r);
    list.world_size = static_cast<int32_t>(plan.lists.size());
    list.generation = plan.generation;
    list.plan_digest = plan.plan_digest;
  }
  return plan;
}

Result<GlobalSavePlan> make_global_plan(std::span<const LocalSavePlan> locals,
                                        const SaveRules& rules, std::string generation) {
  return make_global_plan(views_of(locals), rules, std::move(generation));
}

}  // namespace shardwright::plan
