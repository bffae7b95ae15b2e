// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/hsdp.h"

#include <fmt/format.h>

#include "core/device/lane_access.h"
#include "core/hsdp/global_norm_internal.h"
#include "core/hsdp/group_gradients_internal.h"
#include "core/hsdp/runtime_internal.h"

namespace shardwright::hsdp {

Result<std::unique_ptr<Hsdp>> Hsdp::create(const HsdpOptions& options,
                                           std::shared_ptr<HsdpMesh> mesh,
                                           std::shared_ptr<device::LaneDevice> device) {
  auto context = std::unique_ptr<Hsdp>(new Hsdp());
  SHW_ASSIGN_OR_RETURN(context->runtime_,
                       internal::Runtime::create(options, std::move(mesh), std::move(device)));
  return context;
}

// Reductions under way use their units.
Hsdp::~Hsdp() {
  if (runtime_ != nullptr) runtime_->release();
}

Result<Unit*> Hsdp::create_unit(std::string name, const UnitOptions& options,
                                const UnitSettings& settings) {
  SHW_RETURN_IF_ERROR(runtime_->check_usable());
  auto made = std::make_unique<Unit>(*runtime_, units_.size(), std::move(name), options);
  SHW_RETURN_IF_ERROR(made->set_settings(settings));
  units_.reserve(units_.size() + 1);
  Unit* unit = made.get();
  runtime_->add_unit(unit);
  units_.push_back(std::move(made));
  return unit;
}

Status Hsdp::finalize_backward() {
  return runtime_->enter([&]() -> Status {
    // The last one ran first in backward.
    for (size_t left = units_.size(); left-- > 0;)
      if (units_[left]->has_pending_gradients()) SHW_RETURN_IF_ERROR(units_[left]->post_backward());
    if (!is_last_backward_) return {};
    SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
    for (const auto& each : units_) SHW_RETURN_IF_ERROR(each->finish_iteration());
    runtime_->finish_iteration();
    return runtime_->compare_order();
  });
}

Status Hsdp::step_event() {
  return runtime_->enter([&]() -> Status {
    SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
    for (const auto& each : units_) {
      if (!each->has_partial()) continue;
      return failed_precondition(fmt::format(
          "gradients of unit '{}' still wait for the replicas: the last backward before a step "
          "needs requires_all_reduce",
          each->name()));
    }
    for (const auto& each : units_) SHW_RETURN_IF_ERROR(each->forget_parameters());
    return {};
  });
}

Status Hsdp::reset() {
  if (runtime_->failure().ok()) {
    const Status outcome = runtime_->enter([&]() -> Status {
      SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
      for (const auto& each : units_) SHW_RETURN_IF_ERROR(each->forget_parameters());
      return {};
    });
    // A transport that fails now is what this call is for.
    if (!outcome.ok() && runtime_->failure().ok()) return outcome;
  }
  SHW_RETURN_IF_ERROR(runtime_->renew());
  for (const auto& each : units_) each->drop_everything();
  is_last_backward_ = true;
  return {};
}

Result<double> Hsdp::global_norm(double p) {
  return runtime_->enter([&]() -> Result<double> {
    SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
    internal::GlobalNorm norm(p);
    SHW_RETURN_IF_ERROR(norm.check());
    for (const auto& unit : units_)
      for (internal::GroupGradients* group : unit->gradients())
        SHW_RETURN_IF_ERROR(norm.add(*group));
    return norm.finish(*runtime_);
  });
}

Status Hsdp::scale_gradients(double factor) {
  return runtime_->enter([&]() -> Status {
    SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
    for (const auto& unit : units_)
      for (internal::GroupGradients* group : unit->gradients())
        SHW_RETURN_IF_ERROR(group->group().home().work->scale(group->group().dtypes().gradient,
                                                              factor, group->shard_gradients()));
    return {};
  });
}

Status Hsdp::zero_gradients() {
  return runtime_->enter([&]() -> Status {
    SHW_RETURN_IF_ERROR(runtime_->finish_all_reductions());
    for (const auto& each : units_) each->drop_gradients();
    return {};
  });
}

Status Hsdp::set_max_inflight_reduce(int32_t count) {
  if (count < 1) return invalid_argument(fmt::format("max_inflight_reduce is {}, below 1", count));
  runtime_->options().max_inflight_reduce = count;
  return {};
}

Status Hsdp::set_prefetch_depth(int32_t depth) {
  if (depth < 0) return invalid_argument(fmt::format("prefetch_depth is {}, below 0", depth));
  runtime_->options().prefetch_depth = depth;
  return {};
}

const HsdpMesh& Hsdp::mesh() const {
  return runtime_->mesh();
}
const device::LaneDevice& Hsdp::device() const {
  return runtime_->device();
}
std::shared_ptr<WindowAccess> Hsdp::memory_access() const {
  return runtime_->device().is_host() ? nullptr
                                      : device::make_lane_access(runtime_->shared_device());
}
const HsdpOptions& Hsdp::options() const {
  return runtime_->options();
}

HsdpStats Hsdp::stats() const {
  HsdpStats stats;
  stats.memory = runtime_->memory().stats();
  for (const auto& each : units_) {
    if (each->state() != UnitState::kSharded) stats.unsharded.push_back(each->name());
    stats.padding_bytes += each->padding_bytes();
  }
  return stats;
}

}  // namespace shardwright::hsdp
