// SPDX-License-Identifier: Apache-2.0
//
// Plans without local plans: what a rank requests, what the coordinator replies, and what both
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

std::vector<Bytes> same_for_all(const PlanReply& reply, size_t count) {
  return std::vector<Bytes>(count, encode_reply(reply));
}

// What is wrong with the description of a rank, or with what it adds to one.
Status of_rank(const Status& status, size_t rank) {
  return Status(status)
      .with_detail("rank", fmt::to_string(rank))
      .annotated(fmt::format("the description of rank {}", rank));
}

}  // namespace

Result<Bytes> StepwiseSave::request(const CallContext& call) {
  SHW_RETURN_IF_ERROR(describe(call));
  SHW_ASSIGN_OR_RETURN(key_, plan::items_digest(*local_));
  memory_ = runtime_.plan_cache().find(key_);
  if (memory_ == nullptr) return full_request();
  return encode_request(
      plan::rank_checksum(key_, memory_->world, memory_->sets, plan::replica_digests_of(*local_)));
}

Result<Bytes> StepwiseSave::full_request() const {
  Bytes part;
  if (!part_.empty()) {
    SHW_ASSIGN_OR_RETURN(part, plan::encode(local_->part));
  }
  return encode_request(key_, local_->part.description_digest, part);
}

Result<Bytes> StepwiseSave::next_request(std::span<const std::byte> reply) {
  SHW_ASSIGN_OR_RETURN(const PlanReply asked, decode_reply(reply, 0, 0));
  switch (asked.kind) {
    case PlanReply::Kind::kSendRequest:
      return full_request();
    case PlanReply::Kind::kWait:
      return encode_empty_request();
    default:
      break;
  }
  if (asked.kind != PlanReply::Kind::kSendDescription) {
    return failed_precondition(
        fmt::format("the coordinator asked rank {} for what it did not request", position_.rank));
  }
  SHW_ASSIGN_OR_RETURN(const Bytes description, plan::encode(local_->description));
  return encode_description_request(description);
}

Result<std::vector<Bytes>> StepwiseSave::reply(std::span<const Bytes> requests,
                                               const format::Location& location,
                                               const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const PlanRequests read, read_requests(requests));
  if (gathering_.has_value()) return plan_descriptions(read.descriptions, location, call);
  if (read.checksum_count != 0) return reply_to_checksums(read, requests.size(), location, call);
  if (read.digests.size() == requests.size()) return gather_descriptions(read, location, call);
  return invalid_argument(
      fmt::format("{} of {} ranks sent what they describe", read.digests.size(), requests.size()));
}

Result<std::vector<Bytes>> StepwiseSave::reply_to_checksums(const PlanRequests& requests,
                                                            size_t count,
                                                            const format::Location& location,
                                                            const CallContext& call) {
  const std::shared_ptr<const WorldMemory> known =
      requests.checksum_count == count ? runtime_.plan_cache().find(requests.sum) : nullptr;
  PlanReply reply;
  if (known == nullptr) return same_for_all(reply, count);
  SHW_RETURN_IF_ERROR(
      plan_world(location, call, [&]() -> Result<plan::GlobalSavePlan> { return known->plan; }));
  reply.kind = PlanReply::Kind::kAsBefore;
  reply.generation = merged_->generation;
  return same_for_all(reply, count);
}

Result<std::vector<Bytes>> StepwiseSave::gather_descriptions(const PlanRequests& requests,
                                                             const format::Location& location,
                                                             const CallContext& call) {
  Gathering gathering{requests.keys, requests.digests, {}};
  for (const SentPlan& sent : requests.parts) {
    Result<plan::LocalPart> part = plan::decode<plan::LocalPart>(sent.bytes);
    if (!part.ok()) return of_rank(part.status(), sent.rank);
    if (std::cmp_not_equal(part->rank, sent.rank))
      return of_rank(invalid_argument(fmt::format("it is that of rank {}", part->rank)), sent.rank);
    gathering.parts.push_back(std::move(*part));
  }
  gathering_ = std::move(gathering);
  PlanReply reply;
  reply.kind = PlanReply::Kind::kWait;
  std::vector<Bytes> replies = same_for_all(reply, requests.digests.size());
  reply.kind = PlanReply::Kind::kSendDescription;
  bool complete = true;
  for (const int32_t rank : plan::representative_ranks(requests.digests)) {
    const auto index = static_cast<size_t>(rank);
    if (requests.digests[index] == local_->part.description_digest) continue;
    replies[index] = encode_reply(reply);
    complete = false;
  }
  return complete ? plan_descriptions({}, location, call) : std::move(replies);
}

Result<std::vector<Bytes>> StepwiseSave::plan_descriptions(std::span<const SentPlan> descriptions,
                                                           const format::Location& location,
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
    const auto sent = std::ranges::lower_bound(descriptions, index, {}, &SentPlan::rank);
    if (sent == descriptions.end() || sent->rank != index)
      return of_rank(invalid_argument("it was not sent"), index);
    Result<plan::Description> description = plan::decode<plan::Description>(sent->bytes);
    if (!description.ok()) return of_rank(description.status(), index);
    distinct.push_back(std::move(*description));
  }
  SHW_ASSIGN_OR_RETURN(
      const plan::RankPlans ranks,
      plan::make_rank_plans(gathering.digests, std::move(distinct), std::move(gathering.parts)));
  SHW_RETURN_IF_ERROR(plan_ranks(ranks, location, call));
  Result<std::vector<Bytes>> replies = replies_with_plan(gathering.keys, ranks);
  if (!replies.ok()) drop_world();
  return replies;
}

Result<std::vector<Bytes>> StepwiseSave::replies_with_plan(std::span<const Digest128> keys,
                                                           const plan::RankPlans& ranks) {
  SHW_ASSIGN_OR_RETURN(std::vector<plan::ReplicaSets> sets, plan::replica_sets(ranks));
  world_.emplace().world = plan::world_key(keys);
  const plan::KeptItems& kept = merged_->writes.kept;
  std::vector<Bytes> replies;
  replies.reserve(ranks.rank_count());
  for (uint32_t rank = 0; rank < ranks.rank_count(); ++rank) {
    world_->expected += plan::key_checksum(keys[rank], world_->world);
    PlanReply reply;
    reply.kind = PlanReply::Kind::kPlan;
    reply.generation = merged_->generation;
    reply.plan_digest = merged_->plan_digest;
    reply.local_digest = plan::local_digest_of(ranks, rank);
    reply.world = world_->world;
    reply.sets = std::move(sets[rank]);
    reply.bit_count = kept.bit_counts[rank];
    reply.kept = kept.bits(rank);
    reply.order.assign(kept.order(rank).begin(), kept.order(rank).end());
    replies.push_back(encode_reply(reply));
  }
  return replies;
}

// What this rank writes of what it described.
Result<plan::WriteList> StepwiseSave::list_of(const PlanReply& reply) const {
  const size_t entries =
      local_->description.forms.size() + local_->description.catalog.objects.size();
  const bool ordered = reply.order.empty() || reply.order.size() == entries;
  if (reply.local_digest != local_digest_ || reply.bit_count != own().bit_count() || !ordered) {
    return failed_precondition(
        fmt::format("the coordinator's reply to rank {} is that to another description: it says of "
                    "{} items which are written, and {} were described",
                    position_.rank, reply.bit_count, own().bit_count()));
  }
  plan::WriteList list;
  list.rank = position_.rank;
  list.world_size = position_.world_size;
  list.generation = reply.generation;
  list.plan_digest = reply.plan_digest;
  list.items = plan::write_items(own(), reply.kept, reply.order);
  return list;
}

Status StepwiseSave::take(std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(PlanReply reply,
                       decode_reply(bytes, state_->tensors().size(), state_->objects().size()));
  if (reply.kind == PlanReply::Kind::kPlan) {
    SHW_ASSIGN_OR_RETURN(plan::WriteList list, list_of(reply));
    SHW_RETURN_IF_ERROR(accept(std::move(list)));
    runtime_.plan_cache().keep(RankMemory{key_, reply.world, *list_, std::move(reply.sets)});
    return {};
  }
  if (reply.kind != PlanReply::Kind::kAsBefore || memory_ == nullptr) {
    return failed_precondition(fmt::format(
        "the coordinator replied to rank {} as if it remembered its plan", position_.rank));
  }
  plan::WriteList list = memory_->list;
  list.generation = std::move(reply.generation);
  return accept(std::move(list));
}

}  // namespace shardwright::exec::internal
