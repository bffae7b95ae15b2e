// SPDX-License-Identifier: Apache-2.0
//
// A unit through its states. No function holds two units' locks, and none waits for another rank
// but where it says so.
#include <algorithm>

#include <fmt/format.h>

#include "core/hsdp/group_gradients_internal.h"
#include "core/hsdp/reduction_internal.h"
#include "core/hsdp/runtime_internal.h"
#include "core/hsdp/unit.h"
#include "core/hsdp/unit_group_internal.h"

namespace shardwright::hsdp {

// Does nothing once the gather has ended in another way (waited for, or dropped).
class Unit::GatherWork final : public collective::Work {
 public:
  GatherWork(Unit& unit, uint64_t number) : unit_(unit), number_(number) {}
  Result<bool> wait(int64_t timeout_ns) override { return unit_.wait_gather(number_, timeout_ns); }
  Result<bool> test() override { return unit_.wait_gather(number_, 0); }

 private:
  Unit& unit_;
  uint64_t number_;
};

class Unit::ReductionWork final : public collective::Work {
 public:
  ReductionWork(internal::Runtime& runtime, uint64_t number) : runtime_(runtime), number_(number) {}
  Result<bool> wait(int64_t timeout_ns) override {
    if (runtime_.has_ended(number_)) return true;
    if (!runtime_.failure().ok()) return runtime_.failure();
    return runtime_.enter([&] { return runtime_.bring_on_reductions(number_, timeout_ns); });
  }
  Result<bool> test() override { return wait(0); }

 private:
  internal::Runtime& runtime_;
  uint64_t number_;
};

Result<UnitStep> Unit::step_of(UnitCall call) const {
  SHW_RETURN_IF_ERROR(check_sealed());
  return unit_step(state_, call, name_);
}

bool Unit::keeps_secondary() const {
  return settings_.reshard_after_forward == ReshardPolicy::kSecondary;
}

Status Unit::start_gather(UnitStep step) {
  internal::Channel* channel = runtime_.gather_channel();
  if (step == UnitStep::kGatherSecondary) {
    SHW_ASSIGN_OR_RETURN(channel, runtime_.secondary_channel(settings_.secondary_size));
  }
  for (size_t group = 0; group < groups_.size(); ++group) {
    const Status outcome = groups_[group]->start_gather(channel);
    if (outcome.ok()) continue;
    // Nothing was issued: the unit is as it was. Else the other ranks wait for the rest.
    return group == 0 ? outcome : runtime_.fail(outcome);
  }
  state_ = UnitState::kGathering;
  ++gathers_;
  return {};
}

Result<bool> Unit::finish_gather(int64_t timeout_ns) {
  for (const auto& each : groups_) {
    const Result<bool> ended = each->wait_gather(timeout_ns);
    if (!ended.ok()) return runtime_.fail(ended.status());
    if (!*ended) return false;
  }
  for (const auto& each : groups_) {
    const bool keeps = keeps_secondary() && !each->is_whole() && !each->has_secondary();
    SHW_RETURN_IF_ERROR(each->finish_gather(keeps ? settings_.secondary_size : 0));
  }
  state_ = UnitState::kUnsharded;
  ended_gathers_ = gathers_;
  return true;
}

Status Unit::discard_gather() {
  for (const auto& each : groups_) {
    const Result<bool> ended = each->wait_gather(-1);
    if (!ended.ok()) return runtime_.fail(ended.status());
  }
  ended_gathers_ = gathers_;
  free_parameters();
  return {};
}

void Unit::free_parameters() {
  for (const auto& each : groups_) {
    each->discard_gather();
    each->release_full(settings_.keep_unsharded_memory);
    each->release_secondary();
  }
  state_ = UnitState::kSharded;
}

Status Unit::follow_policy() {
  ReshardPolicy policy = settings_.reshard_after_forward;
  if (policy == ReshardPolicy::kAutomatic)
    policy = is_root_ ? ReshardPolicy::kKeep : ReshardPolicy::kReshard;
  if (policy == ReshardPolicy::kKeep) return {};
  bool has_secondary = policy == ReshardPolicy::kSecondary;
  for (const auto& each : groups_)
    if (!each->is_whole() && !each->has_secondary()) has_secondary = false;
  if (!has_secondary) {
    free_parameters();
    return {};
  }
  for (const auto& each : groups_) each->release_full(settings_.keep_unsharded_memory);
  state_ = UnitState::kSecondary;
  return {};
}

Status Unit::reshard_step(UnitCall call) {
  SHW_ASSIGN_OR_RETURN(const UnitStep step, step_of(call));
  switch (step) {
    case UnitStep::kDiscard:
      return discard_gather();
    case UnitStep::kFree:
      free_parameters();
      return {};
    case UnitStep::kFinishThenPolicy:
      SHW_RETURN_IF_ERROR(finish_gather(-1).status());
      return follow_policy();
    case UnitStep::kPolicy:
      return follow_policy();
    default:
      return {};
  }
}

Status Unit::start_unshard() {
  const MutexLock lock(mutex_);
  SHW_ASSIGN_OR_RETURN(const UnitStep step, step_of(UnitCall::kUnshard));
  return step == UnitStep::kNothing ? Status() : start_gather(step);
}

Status Unit::start_unshard_for_backward() {
  {
    const MutexLock lock(mutex_);
    if (!settings_.unshard_in_backward) return {};
  }
  return start_unshard();
}

Status Unit::unshard_and_wait() {
  const MutexLock lock(mutex_);
  SHW_ASSIGN_OR_RETURN(const UnitStep begin, step_of(UnitCall::kUnshard));
  if (begin != UnitStep::kNothing) SHW_RETURN_IF_ERROR(start_gather(begin));
  SHW_ASSIGN_OR_RETURN(const UnitStep end, step_of(UnitCall::kWait));
  return end == UnitStep::kNothing ? Status() : finish_gather(-1).status();
}

Result<bool> Unit::wait_gather(uint64_t number, int64_t timeout_ns) {
  {
    const MutexLock lock(mutex_);
    if (number <= ended_gathers_) return true;
  }
  if (!runtime_.failure().ok()) return runtime_.failure();
  return runtime_.enter([&]() -> Result<bool> {
    const MutexLock lock(mutex_);
    return finish_gather(timeout_ns);
  });
}

Result<collective::WorkPtr> Unit::unshard() {
  return runtime_.enter([&]() -> Result<collective::WorkPtr> {
    {
      const MutexLock lock(mutex_);
      SHW_RETURN_IF_ERROR(check_sealed());
      if (state_ == UnitState::kSharded) SHW_RETURN_IF_ERROR(apply_frozen());
    }
    SHW_RETURN_IF_ERROR(start_unshard());
    const MutexLock lock(mutex_);
    return collective::WorkPtr(std::make_unique<GatherWork>(*this, gathers_));
  });
}

Status Unit::wait_unsharded() {
  return runtime_.enter([&]() -> Status {
    const MutexLock lock(mutex_);
    SHW_ASSIGN_OR_RETURN(const UnitStep step, step_of(UnitCall::kWait));
    return step == UnitStep::kFinish ? finish_gather(-1).status() : Status();
  });
}

Status Unit::reshard() {
  return runtime_.enter([&]() -> Status {
    const MutexLock lock(mutex_);
    return reshard_step(UnitCall::kReshardBackward);
  });
}

Status Unit::reshard_after_forward() {
  return runtime_.enter([&]() -> Status {
    const MutexLock lock(mutex_);
    return reshard_step(UnitCall::kReshardForward);
  });
}

Status Unit::pre_forward(const PhaseOptions& phase) {
  return runtime_.enter([&]() -> Status {
    std::vector<UnitId> next;
    {
      const MutexLock lock(mutex_);
      SHW_RETURN_IF_ERROR(check_sealed());
      if (!phase.recompute) {
        SHW_RETURN_IF_ERROR(apply_frozen());
        ran_forward_ = true;
      }
      next = forward_prefetch_;
    }
    SHW_RETURN_IF_ERROR(unshard_and_wait());
    if (phase.recompute) return {};
    const std::vector<UnitId> foretold = runtime_.begin_forward(id_);
    return runtime_.prefetch(next.empty() ? foretold : next, internal::Direction::kForward);
  });
}

Status Unit::post_forward(const PhaseOptions& phase) {
  return runtime_.enter([&]() -> Status {
    if (phase.recompute) return {};
    const bool is_root = runtime_.end_forward(id_);
    const MutexLock lock(mutex_);
    is_root_ = is_root_ || is_root;
    return reshard_step(UnitCall::kReshardForward);
  });
}

Status Unit::pre_backward() {
  return runtime_.enter([&]() -> Status {
    std::vector<UnitId> next;
    bool needs_parameters = true;
    {
      const MutexLock lock(mutex_);
      SHW_RETURN_IF_ERROR(check_sealed());
      ran_forward_ = true;
      next = backward_prefetch_;
      needs_parameters = settings_.unshard_in_backward;
    }
    if (needs_parameters) {
      SHW_RETURN_IF_ERROR(unshard_and_wait());
      const MutexLock lock(mutex_);
      for (const auto& each : groups_) each->release_secondary();
    }
    const std::vector<UnitId> foretold = runtime_.begin_backward(id_);
    return runtime_.prefetch(next.empty() ? foretold : next, internal::Direction::kBackward);
  });
}

Status Unit::post_backward() {
  return runtime_.enter([&]() -> Status {
    bool reduces = false;
    {
      const MutexLock lock(mutex_);
      SHW_RETURN_IF_ERROR(check_sealed());
      // Gathered and not needed after all.
      if (state_ == UnitState::kGathering || state_ == UnitState::kSecondary)
        SHW_RETURN_IF_ERROR(reshard_step(UnitCall::kReshardBackward));
      for (const auto& each : gradients_) reduces = reduces || each->has_local();
      reduces = settings_.requires_gradient_sync && (reduces || ran_forward_);
      if (!reduces && state_ == UnitState::kUnsharded && settings_.reshard_after_backward)
        free_parameters();
    }
    return reduces ? begin_reduction() : Status();
  });
}

Status Unit::add_gradients(std::span<const GradientInput> gradients) {
  return runtime_.enter([&]() -> Status {
    const MutexLock lock(mutex_);
    SHW_RETURN_IF_ERROR(check_sealed());
    const bool without_parameters = state_ == UnitState::kSharded && !settings_.unshard_in_backward;
    if (!without_parameters) SHW_RETURN_IF_ERROR(step_of(UnitCall::kAddGradients).status());
    for (const GradientInput& each : gradients) SHW_RETURN_IF_ERROR(check_gradient(each));
    for (size_t each = 0; each < gradients.size(); ++each) {
      const Status outcome = add_gradient(gradients[each]);
      if (outcome.ok()) continue;
      // Those before it are in: a host that tries again would count them twice.
      return each == 0 ? outcome : runtime_.fail(outcome);
    }
    return {};
  });
}

Status Unit::add_gradient(const GradientInput& gradient) {
  const Place& place = places_[gradient.parameter];
  internal::LocalGradient& local = gradients_[place.group]->local(place.index);
  const DType reduce = groups_[place.group]->dtypes().reduce;
  if (!gradient.on_device && !runtime_.device().is_host()) {
    // It is given back when this call has ended; the sum has room of its own.
    SHW_ASSIGN_OR_RETURN(const Buffer there, runtime_.memory().acquire(BufferKind::kLocalGradient,
                                                                       id_, gradient.bytes.size()));
    SHW_RETURN_IF_ERROR(runtime_.work().upload(gradient.bytes, there.bytes()));
    return local.add(runtime_.memory(), runtime_.work(), id_, reduce,
                     {gradient.dtype, there.bytes()});
  }
  if (gradient.take && local.is_empty()) {
    local.take({gradient.dtype, gradient.bytes}, gradient.owner);
    return {};
  }
  return local.add(runtime_.memory(), runtime_.work(), id_, reduce,
                   {gradient.dtype, gradient.bytes});
}

Status Unit::check_gradient(const GradientInput& gradient) const {
  SHW_RETURN_IF_ERROR(check_parameter(gradient.parameter));
  const Place& place = places_[gradient.parameter];
  const internal::UnitGroup& group = *groups_[place.group];
  const std::string& fqn = group.layout().specs()[place.index].fqn;
  if (!gradients_[place.group]->is_trained(place.index))
    return invalid_argument(
        fmt::format("a gradient of parameter '{}' of unit '{}', which is frozen", fqn, name_));
  if (!carries_gradients(gradient.dtype))
    return invalid_argument(fmt::format("a gradient of dtype {} of parameter '{}' of unit '{}'",
                                        dtype_name(gradient.dtype), fqn, name_));
  SHW_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      dtype_packed_bytes(gradient.dtype, group.layout().slot(place.index).elements()));
  if (bytes == gradient.bytes.size()) return {};
  return invalid_argument(
      fmt::format("the gradient of parameter '{}' of unit '{}' has {} bytes, not {}", fqn, name_,
                  gradient.bytes.size(), bytes));
}

Result<std::unique_ptr<internal::UnitReduction>> Unit::pack_gradients() {
  const internal::ReductionPlan plan{settings_.unused, settings_.requires_all_reduce,
                                     settings_.operation, settings_.divide_factor};
  auto reduction = std::make_unique<internal::UnitReduction>(id_);
  for (const auto& each : gradients_) {
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<internal::GroupReduction> group,
                         internal::GroupReduction::pack(*each, plan));
    if (group != nullptr) reduction->add(std::move(group));
  }
  // Their owners may use the memory again.
  if (const Status packed = runtime_.work().finish(); !packed.ok()) return runtime_.fail(packed);
  for (const auto& each : gradients_) each->clear_local();
  return reduction;
}

// Waits for older reductions, as many as the limit asks for.
Status Unit::begin_reduction() {
  SHW_RETURN_IF_ERROR(runtime_.make_room_for_reduction());
  std::unique_ptr<internal::UnitReduction> reduction;
  {
    const MutexLock lock(mutex_);
    SHW_ASSIGN_OR_RETURN(const UnitStep step, step_of(UnitCall::kReduce));
    SHW_ASSIGN_OR_RETURN(reduction, pack_gradients());
    ran_forward_ = false;
    if (step == UnitStep::kReduceThenFree && settings_.reshard_after_backward) free_parameters();
  }
  if (reduction->is_empty()) return {};
  const Status issued = reduction->issue();
  if (!issued.ok()) return runtime_.fail(issued);
  runtime_.add_reduction(std::move(reduction));
  return {};
}

Result<collective::WorkPtr> Unit::reduce() {
  return runtime_.enter([&]() -> Result<collective::WorkPtr> {
    {
      const MutexLock lock(mutex_);
      SHW_RETURN_IF_ERROR(step_of(UnitCall::kReduce).status());
      bool has_local = ran_forward_;
      for (const auto& each : gradients_) has_local = has_local || each->has_local();
      if (!has_local && state_ == UnitState::kSharded)
        return collective::WorkPtr(std::make_unique<ReductionWork>(runtime_, 0));
    }
    SHW_RETURN_IF_ERROR(begin_reduction());
    return collective::WorkPtr(
        std::make_unique<ReductionWork>(runtime_, runtime_.issued_reductions()));
  });
}

Status Unit::finish_iteration() {
  const MutexLock lock(mutex_);
  if (state_ == UnitState::kGathering || state_ == UnitState::kSecondary)
    return reshard_step(UnitCall::kReshardBackward);
  if (state_ == UnitState::kUnsharded && settings_.reshard_after_backward) free_parameters();
  return {};
}

Status Unit::forget_parameters() {
  const MutexLock lock(mutex_);
  if (!sealed_) return {};
  return reshard_step(UnitCall::kReshardBackward);
}

void Unit::give_up_gather() {
  const MutexLock lock(mutex_);
  for (const auto& each : groups_) each->discard_gather();
}

void Unit::drop_everything() {
  const MutexLock lock(mutex_);
  free_parameters();
  for (const auto& each : groups_) each->release_full(false);
  for (const auto& each : gradients_) {
    each->clear_local();
    each->clear_partial();
    each->clear_shard_gradient();
  }
  ended_gathers_ = gathers_;
  ran_forward_ = false;
}

void Unit::drop_gradients() {
  const MutexLock lock(mutex_);
  for (const auto& each : gradients_) each->clear_shard_gradient();
}

bool Unit::has_partial() const {
  const MutexLock lock(mutex_);
  for (const auto& each : gradients_)
    if (each->has_partial()) return true;
  return false;
}

bool Unit::has_pending_gradients() const {
  const MutexLock lock(mutex_);
  bool pending = ran_forward_;
  for (const auto& each : gradients_) pending = pending || each->has_local();
  return sealed_ && pending;
}

std::vector<internal::GroupGradients*> Unit::gradients() {
  const MutexLock lock(mutex_);
  std::vector<internal::GroupGradients*> result;
  for (const auto& each : gradients_) result.push_back(each.get());
  return result;
}

UnitState Unit::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

GradientState Unit::gradient_state() const {
  const GradientState travelling = runtime_.gradient_state(id_);
  const MutexLock lock(mutex_);
  GradientState result = GradientState::kNone;
  for (const auto& each : gradients_) {
    if (each->has_local()) result = std::max(result, GradientState::kLocal);
    if (each->has_partial()) result = std::max(result, GradientState::kPartial);
    if (!each->shard_gradients().empty()) result = std::max(result, GradientState::kReady);
  }
  return travelling == GradientState::kNone ? result : travelling;
}

int64_t Unit::padding_bytes() const {
  const MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& each : groups_) {
    if (each->is_replicated()) continue;
    bytes += static_cast<int64_t>(each->shard().size());
    for (size_t index = 0; index < each->size(); ++index)
      bytes -= static_cast<int64_t>(each->local(index).size());
  }
  return bytes;
}

uint64_t Unit::gathered_bytes() const {
  const MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& each : groups_) bytes += each->gathered_bytes();
  return bytes;
}

}  // namespace shardwright::hsdp
