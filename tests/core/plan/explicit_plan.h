// SPDX-License-Identifier: Apache-2.0
//
// Local plans of states that list every box, and what ranks exchange of local plans.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan/describe/builder.h"
#include "core/plan/describe/describe_state.h"
#include "core/plan/options_text.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan::test {

// The same said without rules: every tensor by the boxes that hold an element.
inline Result<LocalPlan> listed_plan(const LocalPlan& plan) {
  const Description& from = plan.description;
  const EntryNumbers numbers(from);
  const PartView part = view_of(plan.part);
  const RankView rank{from, numbers, part, static_cast<uint32_t>(part.rank)};
  SHW_ASSIGN_OR_RETURN(
      DescriptionBuilder builder,
      DescriptionBuilder::create({}, from.options_text, {part.rank, part.world_size}));
  for (uint32_t t = 0; t < from.forms.size(); ++t) {
    const TensorRecord& record = from.catalog.tensors[t];
    DescriptionBuilder::Tensor tensor{from.catalog.tensor_name(t),
                                      from.catalog.texts.at(record.path),
                                      record.dtype,
                                      record.kind,
                                      from.catalog.shape(t),
                                      {}};
    if (!from.tensor_digests.empty()) tensor.digest = from.tensor_digests[t];
    for (size_t i = 0; i < part.digest_tensors.size(); ++i) {
      if (part.digest_tensors[i] == t) tensor.digest = part.tensor_digests[i];
    }
    std::vector<Box> boxes;
    std::vector<uint32_t> pieces;
    const std::vector<Box> held = rank.boxes_of(t);
    for (size_t b = 0; b < held.size(); ++b) {
      if (box_is_empty(held[b])) continue;
      boxes.push_back(held[b]);
      pieces.push_back(from.forms[t] == kBoxes ? part.boxes[rank.list(t).begin + b].place : 0);
    }
    SHW_RETURN_IF_ERROR(builder.add_listed(tensor, boxes, pieces));
  }
  for (uint32_t i = 0; i < from.catalog.objects.size(); ++i) {
    const ObjectRecord& object = from.catalog.objects[i];
    DescriptionBuilder::Object added{from.catalog.object_name(i),
                                     from.catalog.texts.at(object.path),
                                     from.catalog.texts.at(object.content_type),
                                     object.kind,
                                     rank.object_bytes(i),
                                     {},
                                     kMaxDescribedObjectBytes};
    if (!from.object_digests.empty()) added.digest = from.object_digests[i];
    SHW_RETURN_IF_ERROR(builder.add_object(added));
  }
  return builder.finish();
}

// The listed local plan of a state.
inline Result<LocalPlan> make_local_plan(const State& state, const SaveRules& rules,
                                         RankPosition position, const ReplicaDigests& digests) {
  SHW_ASSIGN_OR_RETURN(const LocalPlan plan,
                       describe_state(state, rules, position, digests, save_rules_text(rules)));
  return listed_plan(plan);
}

// What ranks exchange: digests, the representatives' descriptions and parts, all through buffers.
inline Result<RankPlans> gather(std::span<const LocalPlan> locals) {
  std::vector<Digest128> digests;
  for (const LocalPlan& local : locals) digests.push_back(local.part.description_digest);
  std::vector<Description> descriptions;
  for (const int32_t rank : representative_ranks(digests)) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         encode(locals[static_cast<size_t>(rank)].description));
    SHW_ASSIGN_OR_RETURN(Description description, decode<Description>(bytes));
    descriptions.push_back(std::move(description));
  }
  std::vector<LocalPart> parts;
  for (const LocalPlan& local : locals) {
    if (view_of(local.part).empty()) continue;
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, encode(local.part));
    SHW_ASSIGN_OR_RETURN(LocalPart part, decode<LocalPart>(bytes));
    parts.push_back(std::move(part));
  }
  return make_rank_plans(digests, std::move(descriptions), std::move(parts));
}

// The same by the buffers of their local plans, which the ranks own.
inline Result<RankPlans> opened(std::span<const LocalPlan> locals) {
  std::vector<std::vector<std::byte>> buffers;
  for (const LocalPlan& local : locals) {
    SHW_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, encode(local));
    buffers.push_back(std::move(bytes));
  }
  const auto kept = std::make_shared<const std::vector<std::vector<std::byte>>>(std::move(buffers));
  SHW_ASSIGN_OR_RETURN(RankPlans ranks, open_local_saves(std::vector<std::span<const std::byte>>(
                                            kept->begin(), kept->end())));
  ranks.owned.push_back(kept);
  return ranks;
}

// The local plan of one of them.
inline LocalPlan local_of(const RankPlans& ranks, uint32_t rank) {
  const PartView& part = ranks.part(rank);
  const auto copy = [](const auto& from, auto* to) { to->assign(from.begin(), from.end()); };
  LocalPlan plan;
  plan.description = ranks.of(rank).description;
  plan.part.rank = static_cast<int32_t>(rank);
  plan.part.world_size = static_cast<int32_t>(ranks.rank_count());
  plan.part.description_digest = ranks.digests[ranks.description_of_rank[rank]];
  copy(part.lists, &plan.part.lists);
  copy(part.boxes, &plan.part.boxes);
  copy(part.more, &plan.part.more);
  copy(part.object_sizes, &plan.part.object_sizes);
  copy(part.digest_tensors, &plan.part.digest_tensors);
  copy(part.tensor_digests, &plan.part.tensor_digests);
  return plan;
}

// The same ranks by their boxes alone.
inline Result<RankPlans> listed_ranks(const RankPlans& ranks) {
  std::vector<LocalPlan> locals;
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    SHW_ASSIGN_OR_RETURN(LocalPlan listed, listed_plan(local_of(ranks, r)));
    locals.push_back(std::move(listed));
  }
  return gather(locals);
}

}  // namespace shardwright::plan::test
