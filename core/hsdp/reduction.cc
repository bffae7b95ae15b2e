// SPDX-License-Identifier: Apache-2.0
//
// 1. Pack: the whole gradients of this rank, cast to the reduce dtype, as the parts of all ranks of
//    the shard axis; scaled where the dtype needs room (divide_factors.h).
// 2. Scatter: each rank gets the sum of its parts over the shard axis, in rank order.
// 3. Join: sums of earlier micro-batches that wait for the replicas come first.
// 4. Replicate: the sums of all replicas, in rank order.
// 5. Scale. 6. Cast. 7. Add to the gradient of the shard.
#include "core/hsdp/reduction_internal.h"

#include <algorithm>

#include "core/hsdp/divide_factors.h"
#include "core/hsdp/runtime_internal.h"

namespace shardwright::hsdp::internal {
namespace {

DivideFactors factors_of(const Runtime& runtime, const ReductionPlan& plan, DType reduce) {
  if (plan.operation == GradientOperation::kSum) return {};
  if (plan.divide_factor > 0) return divide_factors(plan.divide_factor, reduce);
  const HsdpMesh& mesh = runtime.mesh();
  const int64_t ranks = int64_t{mesh.axis_size(runtime.options().shard_axis)} *
                        mesh.axis_size(runtime.options().replicate_axis);
  return divide_factors(static_cast<double>(ranks), reduce);
}

}  // namespace

GroupReduction::GroupReduction(GroupGradients& gradients, const ReductionPlan& plan,
                               GradientSetPtr set)
    : gradients_(gradients),
      plan_(plan),
      set_(std::move(set)),
      memory_(std::make_shared<Memory>()) {}

// A transport may still write into what was given up until its work is gone.
GroupReduction::~GroupReduction() {
  step_ = LaneStep();
  work_.reset();
}

Result<std::unique_ptr<GroupReduction>> GroupReduction::pack(GroupGradients& gradients,
                                                             const ReductionPlan& plan) {
  GradientSetPtr set = gradients.travelling(plan.unused);
  if (set == nullptr) return std::unique_ptr<GroupReduction>();
  auto result =
      std::unique_ptr<GroupReduction>(new GroupReduction(gradients, plan, std::move(set)));
  const UnitGroup& group = gradients.group();
  UnitMemory& memory = group.owner().runtime->memory();
  const UnitId unit = group.owner().unit;
  Memory& mine = *result->memory_;
  SHW_ASSIGN_OR_RETURN(mine.packed, memory.acquire(BufferKind::kPacked, unit,
                                                   gradients.packed_bytes(*result->set_)));
  SHW_RETURN_IF_ERROR(gradients.pack(*result->set_, mine.packed.bytes()));
  const DType reduce = group.dtypes().reduce;
  const DivideFactors factors = factors_of(*group.owner().runtime, plan, reduce);
  if (factors.pre != 1.0)
    SHW_RETURN_IF_ERROR(
        result->runtime().work().scale(reduce, 1.0 / factors.pre, mine.packed.bytes()));
  result->scale_ = 1.0 / factors.post;
  if (group.is_whole()) return result;
  SHW_ASSIGN_OR_RETURN(mine.scattered, memory.acquire(BufferKind::kScattered, unit,
                                                      gradients.sum_bytes(*result->set_)));
  const Channel* channel = group.owner().runtime->reduce_channel();
  if (!channel->sums_in_order(result->runtime().options().unordered)) {
    SHW_ASSIGN_OR_RETURN(mine.landing,
                         memory.acquire(BufferKind::kLanding, unit, mine.packed.bytes().size()));
  }
  return result;
}

ChannelCall GroupReduction::channel_call(uint64_t bytes) const {
  const UnitGroup& group = gradients_.group();
  ChannelCall call;
  call.unit = group.owner().unit;
  call.unit_name = group.owner().unit_name;
  call.dtype = group.dtypes().reduce;
  call.count = bytes / (static_cast<uint64_t>(dtype_bits(call.dtype)) / 8);
  call.memory = memory_;
  return call;
}

Status GroupReduction::issue() {
  Channel* channel = runtime().reduce_channel();
  if (channel == nullptr) return {};  // a shard axis of one rank: packed is the sum
  if (!gradients_.group().is_replicated()) return issue_scatter(*channel);
  const std::span<std::byte> data = memory_->packed.bytes();
  Result<ChannelWork> work = channel->all_reduce(channel_call(data.size()), data);
  if (!work.ok()) return work.status();
  work_ = *std::move(work);
  return {};
}

Status GroupReduction::issue_scatter(Channel& channel) {
  Memory& memory = *memory_;
  const std::span<std::byte> sum = memory.scattered.bytes();
  if (sum.empty()) return {};
  const ChannelCall call = channel_call(sum.size());
  const bool lands = static_cast<bool>(memory.landing);
  Result<ChannelWork> work =
      lands ? channel.all_to_all(call, memory.packed.bytes(), memory.landing.bytes())
            : channel.reduce_scatter(call, memory.packed.bytes(), sum);
  if (!work.ok()) return work.status();
  work_ = *std::move(work);
  device::Lane* lane = runtime().lane(LaneRole::kReduce);
  on_lane_ = lane != nullptr;
  step_ = LaneStep::start(
      runtime().device(), lane,
      [this, lands, dtype = call.dtype, world = static_cast<size_t>(channel.size())] {
        SHW_RETURN_IF_ERROR(work_.wait(-1).status());
        if (!lands) return Status();
        return runtime().work().add_in_order(dtype, memory_->landing.bytes(), world,
                                             memory_->scattered.bytes());
      });
  return {};
}

Result<bool> GroupReduction::wait_scatter(int64_t timeout_ns) {
  if (on_lane_) return step_.wait(timeout_ns);
  return work_ ? work_.wait(timeout_ns) : Result<bool>(true);
}

Status GroupReduction::finish_scatter() {
  Memory& memory = *memory_;
  if (gradients_.group().is_whole()) {
    if (work_) {
      if (const Result<bool> ended = work_.wait(-1); !ended.ok()) return ended.status();
    }
    SHW_RETURN_IF_ERROR(memory.packed.retag(BufferKind::kScattered));
    memory.scattered = std::move(memory.packed);
  } else if (const Result<bool> ended = step_.wait(-1); !ended.ok()) {
    return ended.status();
  }
  work_.reset();
  memory.packed = Buffer();
  memory.landing = Buffer();
  Channel* replicas = runtime().replicate_channel();
  if (replicas == nullptr) return {};
  if (!plan_.all_reduce) {
    waits_ = true;
    return gradients_.add_partial(*set_, std::move(memory.scattered));
  }
  SHW_ASSIGN_OR_RETURN(memory.scattered,
                       gradients_.join_partial(&set_, std::move(memory.scattered)));
  const std::span<std::byte> data = memory.scattered.bytes();
  if (data.empty()) return {};
  Result<ChannelWork> work = replicas->all_reduce(channel_call(data.size()), data);
  if (!work.ok()) return work.status();
  work_ = *std::move(work);
  return {};
}

Result<bool> GroupReduction::wait_sum(int64_t timeout_ns) {
  return work_ ? work_.wait(timeout_ns) : Result<bool>(true);
}

Status GroupReduction::finish() {
  if (waits_) return {};
  if (work_) {
    if (const Result<bool> ended = work_.wait(-1); !ended.ok()) return ended.status();
    work_.reset();
  }
  Buffer sum = std::move(memory_->scattered);
  if (scale_ != 1.0)
    SHW_RETURN_IF_ERROR(
        runtime().work().scale(gradients_.group().dtypes().reduce, scale_, sum.bytes()));
  return gradients_.add_to_shard(*set_, std::move(sum));
}

Status UnitReduction::issue() {
  for (const auto& group : groups_) SHW_RETURN_IF_ERROR(group->issue());
  return {};
}

Result<bool> UnitReduction::wait_scatter(int64_t timeout_ns) {
  for (const auto& group : groups_) {
    if (!scattering_) break;
    SHW_ASSIGN_OR_RETURN(const bool ended, group->wait_scatter(timeout_ns));
    if (!ended) return false;
  }
  return true;
}

Status UnitReduction::finish_scatter() {
  if (!scattering_) return {};
  for (const auto& group : groups_) SHW_RETURN_IF_ERROR(group->finish_scatter());
  scattering_ = false;
  return {};
}

Result<bool> UnitReduction::wait_sums(int64_t timeout_ns) {
  for (const auto& group : groups_) {
    SHW_ASSIGN_OR_RETURN(const bool ended, group->wait_sum(timeout_ns));
    if (!ended) return false;
  }
  return true;
}

bool UnitReduction::has_come() const {
  return !scattering_ &&
         std::ranges::all_of(groups_, [](const auto& group) { return group->has_come(); });
}

Status UnitReduction::finish() {
  SHW_RETURN_IF_ERROR(finish_scatter());
  for (const auto& group : groups_) SHW_RETURN_IF_ERROR(group->finish());
  return {};
}

}  // namespace shardwright::hsdp::internal
