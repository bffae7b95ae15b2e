// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a save for all ranks of a job, up to the point where bytes would move.
#include <algorithm>
#include <optional>

#include "core/estimate/estimate_internal.h"
#include "core/job_description/describe_ranks.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/plan/options_text.h"
#include "core/plan/save/global_plan.h"

namespace shardwright::estimate {
namespace {

using plan::Catalog;
using plan::CatalogIndex;
using plan::ChunkRecord;
using plan::ExtentPair;
using plan::ObjectRecord;
using plan::RankPlans;
using plan::TensorRecord;

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

uint64_t memory_of(const RankPlans& ranks) {
  uint64_t bytes = ranks.description_of_rank.size() * sizeof(uint32_t);
  for (const plan::Description& description : ranks.descriptions) {
    bytes += memory_of(description.catalog) + description.forms.size() * sizeof(uint32_t) +
             description.axes.size() * sizeof(ShardAxis);
  }
  for (const plan::PartView& part : ranks.parts) {
    bytes += part.lists.size() * sizeof(plan::BoxList) + part.boxes.size() * sizeof(ChunkRecord) +
             part.more.size() * sizeof(ExtentPair);
  }
  return bytes;
}

// What its ranks write of a merged plan.
void add_writes(const GlobalSavePlan& plan, Estimate* estimate) {
  const plan::RankWrites& writes = plan.writes;
  estimate->moved_bytes = writes.bytes;
  estimate->over_bytes.assign(writes.bytes.size(), 0);
  estimate->operations.assign(writes.item_counts.begin(), writes.item_counts.end());
  estimate->files.clear();
  for (const uint32_t items : writes.item_counts) estimate->files.push_back(items == 0 ? 0 : 1);
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
    uint64_t staged = estimate->moved_bytes[r];
    if (estimate->is_load) staged += estimate->received_bytes[r];
    estimate->staging_bytes[r] = std::min(staged, estimate->options.memory_budget_bytes);
    estimate->peak_bytes[r] = estimate->held_bytes[r] + estimate->staging_bytes[r];
  }
  estimate->peak_bytes[0] += estimate->plan_bytes;
}

}  // namespace internal

Result<SimulatedSave> simulate_save(const JobDescription& job, const EstimateOptions& options) {
  const SaveRules rules = rules_of(options);
  SimulatedSave made;
  SHW_ASSIGN_OR_RETURN(made.estimate.held_bytes, internal::held_bytes_of(job));
  SHW_ASSIGN_OR_RETURN(const RankPlans ranks, describe_ranks(job, save_rules_text(rules)));
  made.estimate.plan_bytes = memory_of(ranks);
  SHW_ASSIGN_OR_RETURN(made.plan, make_global_plan(ranks, rules));
  return estimated(job, options, std::move(made));
}

}  // namespace shardwright::estimate
