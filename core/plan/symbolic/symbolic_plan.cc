// SPDX-License-Identifier: Apache-2.0
//
// The public face of symbolic plans.
#include "core/plan/symbolic/symbolic_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/base/text.h"
#include "core/plan/digest.h"
#include "core/plan/generation_internal.h"
#include "core/plan/symbolic/expand_internal.h"
#include "core/plan/symbolic/plan_body_internal.h"
#include "core/plan/symbolic/rank_contents_internal.h"
#include "core/plan/symbolic/rank_writes_internal.h"

namespace shardwright::plan {
namespace {

using internal::SymbolicBody;

Status check_generation(std::string_view generation) {
  if (internal::is_generation_text(generation)) return {};
  return invalid_argument(fmt::format("generation '{}' is not 32 lower-case hex digits",
                                      escape_text(generation)))
      .with_detail("generation", generation);
}

template <typename Value>
void append_bytes(std::vector<std::byte>* bytes, std::span<const Value> values) {
  const auto more = std::as_bytes(values);
  bytes->insert(bytes->end(), more.begin(), more.end());
}

}  // namespace

bool follows_owner_rule(const SaveRules& rules) {
  return rules.owner == OwnerRule::kBalanced || rules.owner == OwnerRule::kLowestRank ||
         (rules.owner == OwnerRule::kExact && rules.preset == Preset::kMegatron);
}

Result<SymbolicSavePlan> make_symbolic_plan(RankDescriptions ranks, const SaveRules& rules) {
  if (!follows_owner_rule(rules))
    return unimplemented(
        "only owner 'balanced', 'lowest_rank' and, with preset 'megatron', 'exact' can be planned "
        "symbolically");
  auto body = std::make_shared<SymbolicBody>(std::move(ranks));
  body->owner = rules.owner;
  SHW_ASSIGN_OR_RETURN(body->merged, internal::merge_descriptions(body->ranks, body->parts, rules));
  SHW_RETURN_IF_ERROR(internal::classify_groups(body.get()));
  internal::choose_writers(body.get());
  SHW_RETURN_IF_ERROR(internal::prove_tensors(*body));
  return SymbolicSavePlan(std::move(body));
}

const RankDescriptions& SymbolicSavePlan::ranks() const {
  return body_->ranks;
}

SymbolicTotals SymbolicSavePlan::totals() const {
  const SymbolicBody& body = *body_;
  SymbolicTotals totals;
  totals.ranks = body.ranks.rank_count();
  totals.descriptions = body.ranks.descriptions.size();
  std::vector<uint64_t> ranks_of(body.ranks.descriptions.size(), 0);
  for (const uint32_t number : body.ranks.description_of_rank) ++ranks_of[number];
  for (size_t d = 0; d < ranks_of.size(); ++d) {
    const Catalog& catalog = body.ranks.descriptions[d].catalog;
    totals.items += ranks_of[d] * (catalog.tensors.size() + catalog.objects.size());
    for (const ObjectRecord& object : catalog.objects)
      totals.objects += object.kind == EntryKind::kRankLocal ? ranks_of[d] : uint64_t{0};
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const bool stored = catalog.tensors[t].kind == EntryKind::kRankLocal &&
                          body.ranks.descriptions[d].forms[t] == kWhole &&
                          element_count_of(catalog.shape(t)) != 0;
      totals.chunks += stored ? ranks_of[d] : uint64_t{0};
    }
  }
  totals.chunks += internal::listed_local_chunks(body);
  for (size_t g = 0; g < tensor_count(); ++g) totals.chunks += chunk_count(g);
  totals.objects += body.merged.objects.size();
  for (size_t r = 0; r < body.loads.size(); ++r) {
    totals.writers += body.writes_nothing[r] ? 0U : 1U;
    totals.bytes += body.loads[r];
    totals.most_bytes = std::max(totals.most_bytes, body.loads[r]);
  }
  return totals;
}

uint64_t SymbolicSavePlan::bytes_of_rank(int32_t rank) const {
  return body_->loads[static_cast<size_t>(rank)];
}

std::vector<int32_t> SymbolicSavePlan::writers() const {
  std::vector<int32_t> ranks;
  for (size_t r = 0; r < body_->writes_nothing.size(); ++r) {
    if (!body_->writes_nothing[r]) ranks.push_back(static_cast<int32_t>(r));
  }
  return ranks;
}

size_t SymbolicSavePlan::tensor_count() const {
  return body_->tensors.size();
}

std::string_view SymbolicSavePlan::tensor_name(size_t tensor) const {
  return body_->name(tensor);
}

std::optional<size_t> SymbolicSavePlan::find_tensor(std::string_view name) const {
  for (size_t g = 0; g < tensor_count(); ++g) {
    if (body_->name(g) == name) return g;
  }
  return std::nullopt;
}

uint64_t SymbolicSavePlan::chunk_count(size_t tensor) const {
  const internal::TensorPlan& plan = body_->tensors[tensor];
  return plan.grid == internal::kListed ? body_->listed[plan.map].chunk_count()
                                        : body_->grids[plan.grid].chunk_count();
}

Result<int32_t> SymbolicSavePlan::owner(size_t tensor, uint64_t chunk) const {
  if (tensor >= tensor_count() || chunk >= chunk_count(tensor)) {
    return out_of_range(
        fmt::format("the plan has no chunk {} of tensor {} of {}", chunk, tensor, tensor_count()));
  }
  const internal::TensorPlan& plan = body_->tensors[tensor];
  const uint32_t rank =
      plan.grid == internal::kListed
          ? body_->listed[plan.map].owner(chunk).rank
          : body_->column_owner(tensor, body_->grids[plan.grid].column_of_chunk(chunk));
  return static_cast<int32_t>(rank);
}

std::vector<ReplicaSets> SymbolicSavePlan::replica_sets() const {
  const internal::MergedDescriptions& merged = body_->merged;
  internal::ReplicaSetBuilder builder(body_->ranks.description_of_rank.size());
  internal::RankContents contents(body_->ranks, body_->parts);
  std::vector<internal::HeldContent> held;
  for (size_t g = 0; g < merged.tensors.size(); ++g) {
    contents.collect_tensor(merged.tensors.of(g), &held);
    builder.add_tensor(held);
  }
  for (size_t g = 0; g < merged.objects.size(); ++g) {
    contents.collect_object(merged.objects.of(g), &held);
    builder.add_object(held);
  }
  return builder.take();
}

Digest128 SymbolicSavePlan::digest() const {
  const RankDescriptions& ranks = body_->ranks;
  std::vector<std::byte> bytes;
  const auto owner = static_cast<uint32_t>(body_->owner);
  append_bytes(&bytes, std::span(&owner, 1));
  append_bytes(&bytes, std::span<const Digest128>(ranks.digests));
  append_bytes(&bytes, std::span<const uint32_t>(ranks.description_of_rank));
  for (const SymbolicPart& part : ranks.parts) {
    append_bytes(&bytes, std::span(&part.rank, 1));
    append_bytes(&bytes, std::span<const uint32_t>(part.box_counts));
    append_bytes(&bytes, std::span<const ExtentPair>(part.extents));
    append_bytes(&bytes, std::span<const uint64_t>(part.object_sizes));
  }
  return content_digest(bytes);
}

Result<WriteList> SymbolicSavePlan::write_list(int32_t rank, const Stamp& stamp) const {
  SHW_RETURN_IF_ERROR(check_generation(stamp.generation));
  if (rank < 0 || rank >= ranks().rank_count()) {
    return invalid_argument(
               fmt::format("the plan has no rank {} of {}", rank, ranks().rank_count()))
        .with_detail("rank", std::to_string(rank));
  }
  WriteList list;
  list.rank = rank;
  list.world_size = ranks().rank_count();
  list.generation = stamp.generation;
  list.plan_digest = stamp.plan_digest;
  list.items = internal::writes_of_rank(*body_, static_cast<uint32_t>(rank));
  return list;
}

Result<GlobalSavePlan> SymbolicSavePlan::expand(std::string generation) const {
  SHW_RETURN_IF_ERROR(check_generation(generation));
  return internal::expand_body(*body_, std::move(generation));
}

}  // namespace shardwright::plan
