// SPDX-License-Identifier: Apache-2.0
//
// Plans without local plans: what a rank offers, what the coordinator answers, and what both
// remember of it.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/exec/stepwise_save_internal.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/write_items.h"
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

}  // namespace

Result<Bytes> StepwiseSave::offer(const CallContext& call) {
  SHW_RETURN_IF_ERROR(describe(call));
  SHW_ASSIGN_OR_RETURN(key_, plan::items_digest(*local_));
  memory_ = runtime_.plan_cache().find(key_);
  if (memory_ == nullptr) return full_offer();
  return encode_offer(
      plan::rank_share(key_, memory_->world, memory_->sets, plan::replica_digests_of(*local_)));
}

Result<Bytes> StepwiseSave::full_offer() const {
  Bytes part;
  if (!part_.empty()) {
    SHW_ASSIGN_OR_RETURN(part, plan::encode(local_->part));
  }
  return encode_offer(key_, local_->part.description_digest, part);
}

Result<Bytes> StepwiseSave::further_offer(std::span<const std::byte> answer) {
  SHW_ASSIGN_OR_RETURN(const Answer asked, decode_answer(answer, 0, 0));
  switch (asked.kind) {
    case Answer::Kind::kSendOffer:
      return full_offer();
    case Answer::Kind::kWait:
      return encode_empty_offer();
    default:
      break;
  }
  if (asked.kind != Answer::Kind::kSendDescription) {
    return failed_precondition(
        fmt::format("the coordinator asked rank {} for what it did not offer", position_.rank));
  }
  SHW_ASSIGN_OR_RETURN(const Bytes description, plan::encode(local_->description));
  return encode_description_offer(description);
}

Result<std::vector<Bytes>> StepwiseSave::answer(std::span<const Bytes> offers,
                                                const format::Location& location,
                                                const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const Offers read, read_offers(offers));
  if (gathering_.has_value()) return plan_descriptions(read.descriptions, location, call);
  if (read.share_count != 0) return answer_to_shares(read, offers.size(), location, call);
  if (read.digests.size() == offers.size()) return gather_descriptions(read, location, call);
  return invalid_argument(
      fmt::format("{} of {} ranks offered what they describe", read.digests.size(), offers.size()));
}

Result<std::vector<Bytes>> StepwiseSave::answer_to_shares(const Offers& offers, size_t count,
                                                          const format::Location& location,
                                                          const CallContext& call) {
  const std::shared_ptr<const WorldMemory> known =
      offers.share_count == count ? runtime_.plan_cache().find(offers.sum) : nullptr;
  Answer answer;
  if (known == nullptr) return same_for_all(answer, count);
  SHW_RETURN_IF_ERROR(
      plan_world(location, call, [&]() -> Result<plan::GlobalSavePlan> { return known->plan; }));
  answer.kind = Answer::Kind::kAsBefore;
  answer.generation = merged_->generation;
  return same_for_all(answer, count);
}

Result<std::vector<Bytes>> StepwiseSave::gather_descriptions(const Offers& offers,
                                                             const format::Location& location,
                                                             const CallContext& call) {
  Gathering gathering{offers.keys, offers.digests, {}};
  for (const OfferedPlan& offered : offers.parts) {
    Result<plan::LocalPart> part = plan::decode_local_part(offered.bytes);
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
    if (offers.digests[index] == local_->part.description_digest) continue;
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
  std::vector<plan::Description> distinct;
  for (const int32_t rank : plan::representative_ranks(gathering.digests)) {
    const auto index = static_cast<size_t>(rank);
    if (gathering.digests[index] == local_->part.description_digest) {
      distinct.push_back(local_->description);
      continue;
    }
    // They come in the order of their ranks.
    const auto sent = std::ranges::lower_bound(descriptions, index, {}, &OfferedPlan::rank);
    if (sent == descriptions.end() || sent->rank != index)
      return of_rank(invalid_argument("it was not sent"), index);
    Result<plan::Description> description = plan::decode_description(sent->bytes);
    if (!description.ok()) return of_rank(description.status(), index);
    distinct.push_back(std::move(*description));
  }
  SHW_ASSIGN_OR_RETURN(
      const plan::RankPlans ranks,
      plan::make_rank_plans(gathering.digests, std::move(distinct), std::move(gathering.parts)));
  SHW_RETURN_IF_ERROR(plan_ranks(ranks, location, call));
  Result<std::vector<Bytes>> answers = answers_with_plan(gathering.keys, ranks);
  if (!answers.ok()) drop_world();
  return answers;
}

Result<std::vector<Bytes>> StepwiseSave::answers_with_plan(std::span<const Digest128> keys,
                                                           const plan::RankPlans& ranks) {
  SHW_ASSIGN_OR_RETURN(std::vector<plan::ReplicaSets> sets, plan::replica_sets(ranks));
  world_.emplace().world = plan::world_key(keys);
  const plan::KeptItems& kept = merged_->writes.kept;
  std::vector<Bytes> answers;
  answers.reserve(ranks.rank_count());
  for (uint32_t rank = 0; rank < ranks.rank_count(); ++rank) {
    world_->expected += plan::key_share(keys[rank], world_->world);
    Answer answer;
    answer.kind = Answer::Kind::kPlan;
    answer.generation = merged_->generation;
    answer.plan_digest = merged_->plan_digest;
    answer.local_digest = plan::local_digest_of(ranks, rank);
    answer.world = world_->world;
    answer.sets = std::move(sets[rank]);
    answer.bit_count = kept.bit_counts[rank];
    answer.kept = kept.bits(rank);
    answer.order.assign(kept.order(rank).begin(), kept.order(rank).end());
    answers.push_back(encode_answer(answer));
  }
  return answers;
}

// What this rank writes of what it described.
Result<plan::WriteList> StepwiseSave::list_of(const Answer& answer) const {
  const size_t entries =
      local_->description.forms.size() + local_->description.catalog.objects.size();
  const bool ordered = answer.order.empty() || answer.order.size() == entries;
  if (answer.local_digest != local_digest_ || answer.bit_count != own().bit_count() || !ordered) {
    return failed_precondition(fmt::format(
        "the coordinator's answer to rank {} is that to another description: it says of "
        "{} items which are written, and {} were described",
        position_.rank, answer.bit_count, own().bit_count()));
  }
  plan::WriteList list;
  list.rank = position_.rank;
  list.world_size = position_.world_size;
  list.generation = answer.generation;
  list.plan_digest = answer.plan_digest;
  list.items = plan::write_items(own(), answer.kept, answer.order);
  return list;
}

Status StepwiseSave::take(std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(Answer answer,
                       decode_answer(bytes, state_->tensors().size(), state_->objects().size()));
  if (answer.kind == Answer::Kind::kPlan) {
    SHW_ASSIGN_OR_RETURN(plan::WriteList list, list_of(answer));
    SHW_RETURN_IF_ERROR(accept(std::move(list)));
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
