// SPDX-License-Identifier: Apache-2.0
//
// Plans without local plans: what a rank offers, what the coordinator answers, and what both
// remember of it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/exec/stepwise_save_internal.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/symbolic/symbolic_plan.h"
#include "core/plan/wire/open_locals.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {
namespace {

std::vector<Bytes> same_for_all(const Answer& answer, size_t count) {
  return std::vector<Bytes>(count, encode_answer(answer));
}

// What is wrong with the description of a rank, or with what it adds to one.
Status of_rank(const Status& status, size_t rank) {
  return Status(status)
      .with_detail("rank", fmt::to_string(rank))
      .annotated(fmt::format("the description of rank {}", rank));
}

// The plan under another generation.
plan::GlobalSavePlan renamed(const plan::GlobalSavePlan& plan, const std::string& generation) {
  plan::GlobalSavePlan copy = plan;
  copy.generation = generation;
  for (plan::WriteList& list : copy.lists) list.generation = generation;
  return copy;
}

}  // namespace

Result<std::vector<Bytes>> encode_lists(const plan::GlobalSavePlan& plan) {
  std::vector<Bytes> lists;
  lists.reserve(plan.lists.size());
  for (const plan::WriteList& list : plan.lists) {
    SHW_ASSIGN_OR_RETURN(Bytes encoded, plan::encode(list));
    lists.push_back(std::move(encoded));
  }
  return lists;
}

Result<Bytes> StepwiseSave::offer(const CallContext& call) {
  SHW_RETURN_IF_ERROR(describe(call));
  SHW_ASSIGN_OR_RETURN(key_, plan::description_digest(*local_));
  memory_ = runtime_.plan_cache().find(key_);
  if (memory_ == nullptr) return full_offer();
  return encode_offer(plan::rank_share(key_, memory_->world, memory_->sets,
                                       {local_->tensor_digests, local_->object_digests}));
}

Result<Bytes> StepwiseSave::full_offer() const {
  if (!symbolic_.has_value()) return local_plan_offer();
  Bytes part;
  if (!symbolic_->part.empty()) {
    SHW_ASSIGN_OR_RETURN(part, plan::encode(symbolic_->part));
  }
  return encode_offer(key_, symbolic_->part.description_digest, part);
}

Result<Bytes> StepwiseSave::local_plan_offer() const {
  SHW_ASSIGN_OR_RETURN(const Bytes plan, plan::encode(*local_));
  return encode_offer(key_, plan);
}

Result<Bytes> StepwiseSave::further_offer(std::span<const std::byte> answer) {
  SHW_ASSIGN_OR_RETURN(const Answer asked, decode_answer(answer, 0, 0));
  switch (asked.kind) {
    case Answer::Kind::kSendOffer:
      return full_offer();
    case Answer::Kind::kSendLocalPlan:
      return local_plan_offer();
    case Answer::Kind::kWait:
      return encode_empty_offer();
    default:
      break;
  }
  if (asked.kind != Answer::Kind::kSendDescription || !symbolic_.has_value()) {
    return failed_precondition(
        fmt::format("the coordinator asked rank {} for what it did not offer", position_.rank));
  }
  SHW_ASSIGN_OR_RETURN(const Bytes description, plan::encode(symbolic_->description));
  return encode_description_offer(description);
}

Result<std::vector<Bytes>> StepwiseSave::answer(std::span<const Bytes> offers,
                                                const format::Location& location,
                                                const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const Offers read, read_offers(offers));
  if (gathering_.has_value()) return plan_descriptions(read.descriptions, location, call);
  if (read.share_count != 0) return answer_to_shares(read, offers.size(), location, call);
  if (read.local_plans.size() == offers.size()) return merge_local_plans(read, location, call);
  if (read.digests.size() == offers.size()) return gather_descriptions(read, location, call);
  Answer answer;
  answer.kind = Answer::Kind::kSendLocalPlan;
  return same_for_all(answer, offers.size());
}

Result<std::vector<Bytes>> StepwiseSave::answer_to_shares(const Offers& offers, size_t count,
                                                          const format::Location& location,
                                                          const CallContext& call) {
  const std::shared_ptr<const WorldMemory> known =
      offers.share_count == count ? runtime_.plan_cache().find(offers.sum) : nullptr;
  Answer answer;
  if (known == nullptr) return same_for_all(answer, count);
  SHW_RETURN_IF_ERROR(plan_world(
      location, call, [&](const std::string& generation) -> Result<plan::GlobalSavePlan> {
        return renamed(known->plan, generation);
      }));
  answer.kind = Answer::Kind::kAsBefore;
  answer.generation = merged_->generation;
  return same_for_all(answer, count);
}

Result<std::vector<Bytes>> StepwiseSave::merge_local_plans(const Offers& offers,
                                                           const format::Location& location,
                                                           const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const plan::LocalViews opened, plan::open_local_saves(offers.local_plans));
  SHW_RETURN_IF_ERROR(plan_world(location, call, [&](std::string generation) {
    return plan::make_global_plan(opened, options_.rules, std::move(generation));
  }));
  return answers_with_lists(offers.keys, plan::replica_sets(opened));
}

Result<std::vector<Bytes>> StepwiseSave::gather_descriptions(const Offers& offers,
                                                             const format::Location& location,
                                                             const CallContext& call) {
  Gathering gathering{offers.keys, offers.digests, {}};
  for (const OfferedPlan& offered : offers.parts) {
    Result<plan::SymbolicPart> part = plan::decode_symbolic_part(offered.bytes);
    if (!part.ok()) return of_rank(part.status(), offered.rank);
    if (std::cmp_not_equal(part->rank, offered.rank))
      return of_rank(invalid_argument(fmt::format("it is that of rank {}", part->rank)),
                     offered.rank);
    gathering.parts.push_back(std::move(*part));
  }
  gathering_ = std::move(gathering);
  Answer answer;
  answer.kind = Answer::Kind::kWait;
  std::vector<Bytes> answers = same_for_all(answer, offers.digests.size());
  answer.kind = Answer::Kind::kSendDescription;
  bool complete = true;
  for (const int32_t rank : plan::representative_ranks(offers.digests)) {
    const auto index = static_cast<size_t>(rank);
    if (offers.digests[index] == symbolic_->part.description_digest) continue;
    answers[index] = encode_answer(answer);
    complete = false;
  }
  return complete ? plan_descriptions({}, location, call) : std::move(answers);
}

Result<std::vector<Bytes>> StepwiseSave::plan_descriptions(
    std::span<const OfferedPlan> descriptions, const format::Location& location,
    const CallContext& call) {
  Gathering gathering = std::move(*gathering_);
  gathering_.reset();
  std::vector<plan::SymbolicDescription> distinct;
  for (const int32_t rank : plan::representative_ranks(gathering.digests)) {
    const auto index = static_cast<size_t>(rank);
    if (gathering.digests[index] == symbolic_->part.description_digest) {
      distinct.push_back(symbolic_->description);
      continue;
    }
    // They come in the order of their ranks.
    const auto sent = std::ranges::lower_bound(descriptions, index, {}, &OfferedPlan::rank);
    if (sent == descriptions.end() || sent->rank != index)
      return of_rank(invalid_argument("it was not sent"), index);
    Result<plan::SymbolicDescription> description = plan::decode_symbolic_save(sent->bytes);
    if (!description.ok()) return of_rank(description.status(), index);
    distinct.push_back(std::move(*description));
  }
  SHW_ASSIGN_OR_RETURN(plan::RankDescriptions ranks,
                       plan::make_rank_descriptions(gathering.digests, std::move(distinct),
                                                    std::move(gathering.parts)));
  std::optional<plan::SymbolicSavePlan> plan;
  SHW_RETURN_IF_ERROR(
      plan_world(location, call, [&](std::string generation) -> Result<plan::GlobalSavePlan> {
        SHW_ASSIGN_OR_RETURN(plan, plan::make_symbolic_plan(std::move(ranks), options_.rules));
        return plan->expand(std::move(generation));
      }));
  return answers_with_lists(gathering.keys, plan->replica_sets());
}

Result<std::vector<Bytes>> StepwiseSave::answers_with_lists(
    std::span<const Digest128> keys, Result<std::vector<plan::ReplicaSets>> sets) {
  Result<std::vector<Bytes>> lists = encode_lists(*merged_);
  if (!lists.ok() || !sets.ok()) {
    drop_world();
    return lists.ok() ? sets.status() : lists.status();
  }
  world_.emplace().world = plan::world_key(keys);
  std::vector<Bytes> answers;
  for (size_t rank = 0; rank < lists->size(); ++rank) {
    world_->expected += plan::key_share(keys[rank], world_->world);
    answers.push_back(encode_answer({Answer::Kind::kWriteList, "", world_->world,
                                     std::move((*sets)[rank]), std::move((*lists)[rank])}));
  }
  return answers;
}

Status StepwiseSave::take(std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(Answer answer,
                       decode_answer(bytes, state_->tensors().size(), state_->objects().size()));
  if (answer.kind == Answer::Kind::kWriteList) {
    SHW_RETURN_IF_ERROR(finish(answer.list));
    runtime_.plan_cache().keep(RankMemory{key_, answer.world, *list_, std::move(answer.sets)});
    return {};
  }
  if (answer.kind != Answer::Kind::kAsBefore || memory_ == nullptr) {
    return failed_precondition(fmt::format(
        "the coordinator answered rank {} as if it remembered its plan", position_.rank));
  }
  plan::WriteList list = memory_->list;
  list.generation = std::move(answer.generation);
  return accept(std::move(list));
}

}  // namespace shardwright::exec::internal
