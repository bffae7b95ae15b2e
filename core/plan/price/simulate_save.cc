// SPDX-License-Identifier: Apache-2.0
//
// Runs the steps of a save for all ranks of a world, up to the point where bytes would move: by
// arithmetic where its tensors have layouts, else by the local plan of each rank.
#include <algorithm>
#include <numeric>

#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/plan/price/price_internal.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/local_plan.h"
#include "core/plan/symbolic/symbolic_plan.h"
#include "core/plan/world/describe_world.h"

namespace shardwright::plan {
namespace {

constexpr char kNoGeneration[] = "00000000000000000000000000000000";

uint64_t memory_of(const Catalog& catalog) {
  return catalog.texts.blob().size() + catalog.texts.ends().size() * sizeof(uint64_t) +
         catalog.shapes.size() * sizeof(int64_t) + catalog.tensors.size() * sizeof(TensorRecord) +
         catalog.chunks.size() * sizeof(ChunkRecord) + catalog.more.size() * sizeof(ExtentPair) +
         catalog.objects.size() * sizeof(ObjectRecord);
}

// What its ranks write of a merged plan.
void add_writes(const GlobalSavePlan& plan, Price* price) {
  const auto ranks = static_cast<size_t>(price->rank_count);
  price->moved_bytes.assign(ranks, 0);
  price->over_bytes.assign(ranks, 0);
  price->operations.assign(ranks, 0);
  price->files.assign(ranks, 0);
  for (size_t r = 0; r < ranks; ++r) {
    const WriteList& list = plan.lists[r];
    price->moved_bytes[r] = list.payload_bytes();
    price->operations[r] = list.items.size();
    price->files[r] = list.items.empty() ? 0 : 1;
  }
  price->tensor_count = plan.catalog.tensors.size();
  price->object_count = plan.catalog.objects.size();
  price->chunk_count = plan.catalog.chunks.size();
  price->file_count = static_cast<uint64_t>(std::ranges::count(price->files, 1U));
  price->stored_bytes = plan.catalog.payload_bytes();
}

// Looks the owner of a box up in a merged plan.
int32_t owner_in(const GlobalSavePlan& plan, const CatalogIndex& index, std::string_view name,
                 const Box& box) {
  const int64_t tensor = index.find_tensor(name, -1);
  if (tensor < 0) return -1;
  const std::vector<uint64_t> chunks = index.chunks_meeting(static_cast<size_t>(tensor), box);
  if (chunks.empty()) return -1;
  return static_cast<int32_t>(plan.catalog.chunks[chunks[0]].place);
}

SaveRules rules_of(const PriceOptions& options) {
  SaveRules rules;
  rules.owner = options.owner;
  rules.preset = options.preset;
  rules.verify_replicas = VerifyReplicas::kOff;  // there are no bytes to compare
  return rules;
}

// Fills in the price of the plan; held_bytes and the memory of local plans are there.
Result<SimulatedSave> priced(const World& world, const PriceOptions& options, SimulatedSave made) {
  Price& price = made.price;
  price.rank_count = world.rank_count;
  price.options = options;
  price.plan_bytes += memory_of(made.plan.catalog);
  add_writes(made.plan, &price);
  internal::add_memory(&price);
  const CatalogIndex index(made.plan.catalog);
  SHW_ASSIGN_OR_RETURN(price.pictures, internal::pictures_of(world, [&](auto name, const Box& box) {
                         return owner_in(made.plan, index, name, box);
                       }));
  return made;
}

}  // namespace

namespace internal {

void add_memory(Price* price) {
  const size_t ranks = price->held_bytes.size();
  price->staging_bytes.resize(ranks);
  price->peak_bytes.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    price->staging_bytes[r] = std::min(price->moved_bytes[r], price->options.memory_budget_bytes);
    price->peak_bytes[r] = price->held_bytes[r] + price->staging_bytes[r];
  }
  price->peak_bytes[0] += price->plan_bytes;
}

}  // namespace internal

Result<SimulatedSave> simulate_save(const World& world, const PriceOptions& options) {
  const SaveRules rules = rules_of(options);
  if (!follows_owner_rule(rules) || !has_layouts_only(world))
    return internal::simulate_explicit_save(world, options);
  SHW_ASSIGN_OR_RETURN(internal::WorldSizes sizes, internal::sizes_of(world));
  SHW_ASSIGN_OR_RETURN(RankDescriptions ranks, describe_world(world, save_rules_text(rules)));
  SHW_ASSIGN_OR_RETURN(const SymbolicSavePlan plan, make_symbolic_plan(std::move(ranks), rules));
  SimulatedSave made;
  made.price.held_bytes = std::move(sizes.held_bytes);
  made.price.plan_bytes = sizes.local_plan_bytes;
  SHW_ASSIGN_OR_RETURN(made.plan, plan.expand(kNoGeneration));
  return priced(world, options, std::move(made));
}

namespace internal {

Result<SimulatedSave> simulate_explicit_save(const World& world, const PriceOptions& options) {
  const SaveRules rules = rules_of(options);
  SHW_ASSIGN_OR_RETURN(WorldPlans plans, local_plans_of(world, rules));
  SimulatedSave made;
  made.price.held_bytes = std::move(plans.held_bytes);
  SHW_ASSIGN_OR_RETURN(made.plan, make_global_plan(plans.locals, rules, kNoGeneration));
  for (const LocalSavePlan& local : plans.locals) made.price.plan_bytes += memory_of(local.catalog);
  plans.locals.clear();
  plans.locals.shrink_to_fit();
  return priced(world, options, std::move(made));
}

}  // namespace internal

}  // namespace shardwright::plan
