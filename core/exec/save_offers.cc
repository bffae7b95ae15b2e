// SPDX-License-Identifier: Apache-2.0
//
// Plans without local plans: what a rank offers, what the coordinator answers, and what both
// remember of it.
#include <utility>

#include <fmt/format.h>

#include "core/exec/stepwise_save_internal.h"
#include "core/plan/wire/open_locals.h"

namespace shardwright::exec::internal {
namespace {

std::vector<Bytes> same_for_all(const Answer& answer, size_t count) {
  return std::vector<Bytes>(count, encode_answer(answer));
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

Result<Bytes> StepwiseSave::full_offer() {
  SHW_ASSIGN_OR_RETURN(const Bytes plan, plan::encode(*local_));
  return encode_offer(key_, plan);
}

Result<std::vector<Bytes>> StepwiseSave::answer(std::span<const Bytes> offers,
                                                const format::Location& location,
                                                const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const Offers read, read_offers(offers));
  if (read.share_count == 0) return answer_with_lists(read, location, call);
  const std::shared_ptr<const WorldMemory> known =
      read.share_count == offers.size() ? runtime_.plan_cache().find(read.sum) : nullptr;
  Answer answer;
  if (known == nullptr) return same_for_all(answer, offers.size());
  SHW_RETURN_IF_ERROR(plan_world(
      location, call, [&](const std::string& generation) -> Result<plan::GlobalSavePlan> {
        return renamed(known->plan, generation);
      }));
  answer.kind = Answer::Kind::kAsBefore;
  answer.generation = merged_->generation;
  return same_for_all(answer, offers.size());
}

Result<std::vector<Bytes>> StepwiseSave::answer_with_lists(const Offers& offers,
                                                           const format::Location& location,
                                                           const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const plan::LocalViews opened, plan::open_local_saves(offers.local_plans));
  SHW_RETURN_IF_ERROR(plan_world(location, call, [&](std::string generation) {
    return plan::make_global_plan(opened, options_.rules, std::move(generation));
  }));
  Result<std::vector<Bytes>> lists = encode_lists(*merged_);
  Result<std::vector<plan::ReplicaSets>> sets = plan::replica_sets(opened);
  if (!lists.ok() || !sets.ok()) {
    drop_world();
    return lists.ok() ? sets.status() : lists.status();
  }
  world_.emplace().world = plan::world_key(offers.keys);
  std::vector<Bytes> answers;
  for (size_t rank = 0; rank < lists->size(); ++rank) {
    world_->expected += plan::key_share(offers.keys[rank], world_->world);
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
