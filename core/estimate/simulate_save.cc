// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a save for all ranks of a job, up to the point where bytes would move: by
// arithmetic where its tensors have layouts, else by the local plan of each rank.
#include <algorithm>
#include <optional>

#include "core/estimate/estimate_internal.h"
#include "core/job_description/describe_ranks.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/local_plan.h"
#include "core/plan/symbolic/symbolic_plan.h"

namespace shardwright::estimate {
namespace {

using plan::Catalog;
using plan::CatalogIndex;
using plan::ChunkRecord;
using plan::ExtentPair;
using plan::ObjectRecord;
using plan::RankDescriptions;
using plan::SymbolicSavePlan;
using plan::TensorRecord;
using plan::WriteList;

constexpr char kNoGeneration[] = "00000000000000000000000000000000";

uint64_t grid_bytes_of(const Catalog& catalog) {
  uint64_t bytes = catalog.grids.size() * sizeof(uint32_t);
  for (const plan::DimSplit& split : catalog.splits)
    bytes += sizeof(plan::DimSplit) + split.runs().size_bytes();
  for (const plan::RankMap& map : catalog.rank_maps)
    bytes += sizeof(plan::RankMap) + map.levels().size_bytes() + map.column().size_bytes();
  return bytes;
}

uint64_t memory_of(const Catalog& catalog) {
  return catalog.texts.blob().size() + catalog.texts.ends().size() * sizeof(uint64_t) +
         catalog.shapes.size() * sizeof(int64_t) + catalog.tensors.size() * sizeof(TensorRecord) +
         catalog.boxes.size() * sizeof(ChunkRecord) + catalog.more.size() * sizeof(ExtentPair) +
         grid_bytes_of(catalog) + catalog.objects.size() * sizeof(ObjectRecord);
}

// What its ranks write of a merged plan.
void add_writes(const GlobalSavePlan& plan, Estimate* estimate) {
  const auto ranks = static_cast<size_t>(estimate->rank_count);
  estimate->moved_bytes.assign(ranks, 0);
  estimate->over_bytes.assign(ranks, 0);
  estimate->operations.assign(ranks, 0);
  estimate->files.assign(ranks, 0);
  for (size_t r = 0; r < ranks; ++r) {
    const WriteList& list = plan.lists[r];
    estimate->moved_bytes[r] = list.payload_bytes();
    estimate->operations[r] = list.items.size();
    estimate->files[r] = list.items.empty() ? 0 : 1;
  }
  estimate->tensor_count = plan.catalog.tensors.size();
  estimate->object_count = plan.catalog.objects.size();
  estimate->chunk_count = plan.catalog.chunk_count();
  estimate->file_count = static_cast<uint64_t>(std::ranges::count(estimate->files, 1U));
  estimate->stored_bytes = plan.catalog.payload_bytes();
}

// Looks the owner of a box up in a merged plan.
int32_t owner_in(const GlobalSavePlan& plan, const CatalogIndex& index, std::string_view name,
                 const Box& box) {
  const int64_t tensor = index.find_tensor(name, -1);
  if (tensor < 0) return -1;
  const std::vector<uint64_t> chunks = index.chunks_meeting(static_cast<size_t>(tensor), box);
  if (chunks.empty()) return -1;
  return static_cast<int32_t>(plan.catalog.place_of(chunks[0]));
}

SaveRules rules_of(const EstimateOptions& options) {
  SaveRules rules;
  rules.owner = options.owner;
  rules.preset = options.preset;
  rules.verify_replicas = plan::VerifyReplicas::kOff;  // there are no bytes to compare
  return rules;
}

// Fills in the estimate of the plan; held_bytes and the memory of local plans are there.
Result<SimulatedSave> estimated(const JobDescription& job, const EstimateOptions& options,
                                SimulatedSave made) {
  Estimate& estimate = made.estimate;
  estimate.rank_count = job.rank_count;
  estimate.options = options;
  estimate.plan_bytes += memory_of(made.plan.catalog);
  add_writes(made.plan, &estimate);
  internal::add_memory(&estimate);
  std::optional<CatalogIndex> index;
  if (options.listed_chunks != 0) index.emplace(made.plan.catalog);
  const auto owner_of = [&](std::string_view name, const Box& box) {
    return owner_in(made.plan, *index, name, box);
  };
  SHW_ASSIGN_OR_RETURN(estimate.groups,
                       internal::tensor_groups_of(job, options.listed_chunks, owner_of));
  return made;
}

}  // namespace

namespace internal {

void add_memory(Estimate* estimate) {
  const size_t ranks = estimate->held_bytes.size();
  estimate->staging_bytes.resize(ranks);
  estimate->peak_bytes.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    estimate->staging_bytes[r] =
        std::min(estimate->moved_bytes[r], estimate->options.memory_budget_bytes);
    estimate->peak_bytes[r] = estimate->held_bytes[r] + estimate->staging_bytes[r];
  }
  estimate->peak_bytes[0] += estimate->plan_bytes;
}

}  // namespace internal

Result<SimulatedSave> simulate_save(const JobDescription& job, const EstimateOptions& options) {
  const SaveRules rules = rules_of(options);
  if (!follows_owner_rule(rules) || !has_layouts_only(job))
    return internal::simulate_explicit_save(job, options);
  SHW_ASSIGN_OR_RETURN(internal::JobSizes sizes, internal::sizes_of(job));
  SHW_ASSIGN_OR_RETURN(RankDescriptions ranks, describe_ranks(job, save_rules_text(rules)));
  SHW_ASSIGN_OR_RETURN(const SymbolicSavePlan plan, make_symbolic_plan(std::move(ranks), rules));
  SimulatedSave made;
  made.estimate.held_bytes = std::move(sizes.held_bytes);
  made.estimate.plan_bytes = sizes.local_plan_bytes;
  SHW_ASSIGN_OR_RETURN(made.plan, plan.expand(kNoGeneration));
  return estimated(job, options, std::move(made));
}

namespace internal {

Result<SimulatedSave> simulate_explicit_save(const JobDescription& job,
                                             const EstimateOptions& options) {
  const SaveRules rules = rules_of(options);
  SHW_ASSIGN_OR_RETURN(JobPlans plans, local_plans_of(job, rules));
  SimulatedSave made;
  made.estimate.held_bytes = std::move(plans.held_bytes);
  SHW_ASSIGN_OR_RETURN(made.plan, make_global_plan(plans.locals, rules, kNoGeneration));
  for (const LocalSavePlan& local : plans.locals)
    made.estimate.plan_bytes += memory_of(local.catalog);
  plans.locals.clear();
  plans.locals.shrink_to_fit();
  return estimated(job, options, std::move(made));
}

}  // namespace internal

}  // namespace shardwright::estimate
