// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit.h"

#include <cmath>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/hsdp/dtype_policy.h"
#include "core/hsdp/group_gradients_internal.h"
#include "core/hsdp/layout_agreement_internal.h"
#include "core/hsdp/parameter_groups.h"
#include "core/hsdp/runtime_internal.h"
#include "core/hsdp/unit_group_internal.h"

namespace shardwright::hsdp {
namespace {

Status check_input(const std::string& unit, const ParameterInput& input) {
  const std::string where = fmt::format("parameter '{}' of unit '{}'", input.spec.fqn, unit);
  if (!dtype_is_valid(input.spec.dtype) || dtype_is_subbyte(input.spec.dtype))
    return invalid_argument(fmt::format("{} is of dtype {}, which cannot be sharded", where,
                                        dtype_name(input.spec.dtype)));
  const Result<int64_t> elements = checked_element_count(input.spec.shape);
  if (!elements.ok()) return elements.status().annotated(where);
  SHW_ASSIGN_OR_RETURN(const uint64_t bytes, dtype_packed_bytes(input.spec.dtype, *elements));
  if (input.full.data() == nullptr || input.full.size() == bytes) return {};
  return invalid_argument(
      fmt::format("{} has {} bytes by its shape, {} were given", where, bytes, input.full.size()));
}

Status check_values(const UnitSettings& settings, int32_t shard_size) {
  const int32_t policy = static_cast<int32_t>(settings.reshard_after_forward);
  if (policy < 0 || policy > static_cast<int32_t>(ReshardPolicy::kSecondary))
    return invalid_argument(fmt::format("reshard_after_forward is {}, not 0 to 3", policy));
  if (settings.reshard_after_forward == ReshardPolicy::kSecondary) {
    const int32_t size = settings.secondary_size;
    if (size < 2 || size >= shard_size || shard_size % size != 0)
      return invalid_argument(fmt::format(
          "secondary_size is {}: not a divisor of the {} ranks of the shard axis between the two",
          size, shard_size));
  }
  if (settings.unused != UnusedPolicy::kZero && settings.unused != UnusedPolicy::kSkip)
    return invalid_argument(
        fmt::format("unused is {}, not 0 or 1", static_cast<int32_t>(settings.unused)));
  if (settings.operation != GradientOperation::kAverage &&
      settings.operation != GradientOperation::kSum)
    return invalid_argument(
        fmt::format("operation is {}, not 0 or 1", static_cast<int32_t>(settings.operation)));
  if (!(settings.divide_factor >= 0) || std::isinf(settings.divide_factor))
    return invalid_argument(
        fmt::format("divide_factor is {}; it must be positive, or 0 for the "
                    "number of ranks that share data",
                    settings.divide_factor));
  return {};
}

}  // namespace

Unit::Unit(internal::Runtime& runtime, UnitId id, std::string name, const UnitOptions& options)
    : runtime_(runtime), id_(id), name_(std::move(name)), options_(options) {}

Unit::~Unit() = default;

Status Unit::check_sealed() const {
  if (sealed_) return {};
  return failed_precondition(fmt::format("unit '{}' is not sealed yet", name_));
}

Status Unit::check_parameter(size_t parameter) const {
  SHW_RETURN_IF_ERROR(check_sealed());
  if (parameter < places_.size()) return {};
  return out_of_range(
      fmt::format("parameter {} of the {} of unit '{}'", parameter, places_.size(), name_));
}

Status Unit::add_parameters(std::vector<ParameterInput> parameters) {
  const MutexLock lock(mutex_);
  if (sealed_)
    return failed_precondition(fmt::format("unit '{}' is sealed; it takes no parameters", name_));
  for (const ParameterInput& each : parameters) SHW_RETURN_IF_ERROR(check_input(name_, each));
  for (ParameterInput& each : parameters) inputs_.push_back(std::move(each));
  return {};
}

Status Unit::set_allocator(std::shared_ptr<ParameterAllocator> allocator) {
  const MutexLock lock(mutex_);
  if (sealed_)
    return failed_precondition(
        fmt::format("unit '{}' is sealed; whose memory it uses is decided", name_));
  allocator_ = std::move(allocator);
  return {};
}

// Parameters in the order in which they were added, in as many groups as there are kinds.
Status Unit::make_groups() {
  std::vector<ParameterSpec> specs;
  specs.reserve(inputs_.size());
  for (const ParameterInput& input : inputs_) specs.push_back(input.spec);
  SHW_ASSIGN_OR_RETURN(std::vector<ParameterGroup> kinds,
                       group_parameters(std::move(specs), options_));
  places_.assign(inputs_.size(), {});
  groups_.clear();
  const internal::UnitGroup::Owner owner{&runtime_, id_, &name_, allocator_.get(), offloads()};
  for (ParameterGroup& each : kinds) {
    for (size_t index = 0; index < each.numbers.size(); ++index)
      places_[each.numbers[index]] = {groups_.size(), index};
    SHW_ASSIGN_OR_RETURN(
        std::unique_ptr<internal::UnitGroup> group,
        internal::UnitGroup::create(owner, each.dtypes, options_.layout_mode, std::move(each.specs),
                                    std::move(each.numbers)));
    groups_.push_back(std::move(group));
  }
  return {};
}

Status Unit::agree_on_layout() {
  const Status mine = make_groups();
  internal::UnitDescription description;
  description.unit = name_;
  description.failure = mine;
  for (const auto& each : groups_)
    description.add(each->layout().digest(), each->dtypes(), each->is_replicated());
  const Status agreed = internal::agree_on_layout(runtime_, description);
  return mine.ok() ? agreed : mine;
}

Status Unit::seal() {
  return runtime_.enter([&]() -> Status {
    const MutexLock lock(mutex_);
    if (sealed_) return failed_precondition(fmt::format("unit '{}' is sealed already", name_));
    SHW_RETURN_IF_ERROR(agree_on_layout());
    gradients_.clear();
    for (const auto& each : groups_) {
      SHW_RETURN_IF_ERROR(each->allocate_shard());
      gradients_.push_back(std::make_unique<internal::GroupGradients>(*each));
    }
    frozen_.clear();
    for (size_t number = 0; number < inputs_.size(); ++number) {
      const ParameterInput& input = inputs_[number];
      frozen_.push_back(input.spec.frozen);
      if (!input.full.empty())
        SHW_RETURN_IF_ERROR(groups_[places_[number].group]->fill(places_[number].index, input.full,
                                                                 input.on_device));
    }
    inputs_.clear();
    frozen_changed_ = true;
    SHW_RETURN_IF_ERROR(apply_frozen());
    sealed_ = true;
    return {};
  });
}

bool Unit::is_sealed() const {
  const MutexLock lock(mutex_);
  return sealed_;
}

// Which parameters have gradients; those that are not floating point never do.
Status Unit::apply_frozen() {
  if (!frozen_changed_) return {};
  for (size_t group = 0; group < groups_.size(); ++group) {
    std::vector<bool> trained(groups_[group]->size(), false);
    for (size_t each = 0; each < trained.size(); ++each)
      trained[each] = carries_gradients(groups_[group]->dtypes().stored) &&
                      !frozen_[groups_[group]->number_in_unit(each)];
    SHW_RETURN_IF_ERROR(gradients_[group]->set_trained(trained));
  }
  frozen_changed_ = false;
  return {};
}

size_t Unit::parameter_count() const {
  const MutexLock lock(mutex_);
  return sealed_ ? places_.size() : inputs_.size();
}

const ParameterSpec& Unit::spec(size_t parameter) const {
  const MutexLock lock(mutex_);
  const Place& place = places_[parameter];
  return groups_[place.group]->layout().specs()[place.index];
}

bool Unit::offloads() const {
  return options_.offload && !runtime_.device().is_host();
}

device::DeviceNumber Unit::shard_place() const {
  return runtime_.shard_home(offloads()).number;
}

Result<ParameterView> Unit::local(size_t parameter) {
  const MutexLock lock(mutex_);
  SHW_RETURN_IF_ERROR(check_parameter(parameter));
  const Place& place = places_[parameter];
  const internal::UnitGroup& group = *groups_[place.group];
  return ParameterView{group.local(place.index),
                       group.layout().local_shape(place.index, group.shard_rank()),
                       group.dtypes().stored, nullptr, group.home().number};
}

Result<ParameterView> Unit::full(size_t parameter) {
  const MutexLock lock(mutex_);
  SHW_RETURN_IF_ERROR(check_parameter(parameter));
  if (state_ != UnitState::kUnsharded)
    return failed_precondition(
        fmt::format("unit '{}' is {}; its whole parameters are there only while it is UNSHARDED",
                    name_, unit_state_name(state_)));
  const Place& place = places_[parameter];
  const internal::UnitGroup& group = *groups_[place.group];
  return ParameterView{group.full(place.index), group.layout().specs()[place.index].shape,
                       group.dtypes().compute, nullptr, runtime_.device().number()};
}

bool Unit::has_gradient(size_t parameter) {
  const MutexLock lock(mutex_);
  if (!sealed_ || parameter >= places_.size()) return false;
  const Place& place = places_[parameter];
  return gradients_[place.group]->has_shard_gradient(place.index);
}

Result<ParameterView> Unit::gradient(size_t parameter) {
  const MutexLock lock(mutex_);
  SHW_RETURN_IF_ERROR(check_parameter(parameter));
  const Place& place = places_[parameter];
  const internal::UnitGroup& group = *groups_[place.group];
  if (!gradients_[place.group]->has_shard_gradient(place.index))
    return failed_precondition(fmt::format("parameter '{}' of unit '{}' has no gradient",
                                           group.layout().specs()[place.index].fqn, name_));
  return ParameterView{gradients_[place.group]->shard_gradient(place.index),
                       group.layout().local_shape(place.index, group.shard_rank()),
                       group.dtypes().gradient, gradients_[place.group]->shard_gradient_owner(),
                       group.home().number};
}

Result<Box> Unit::box(size_t parameter) {
  const MutexLock lock(mutex_);
  SHW_RETURN_IF_ERROR(check_parameter(parameter));
  const Place& place = places_[parameter];
  const internal::UnitGroup& group = *groups_[place.group];
  return group.layout().box(place.index, group.shard_rank());
}

UnitSettings Unit::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

Status Unit::check_settings(const UnitSettings& settings) const {
  SHW_RETURN_IF_ERROR(
      check_values(settings, runtime_.mesh().axis_size(runtime_.options().shard_axis)));
  if (settings.reshard_after_forward != ReshardPolicy::kSecondary) return {};
  return runtime_.secondary_channel(settings.secondary_size).status();
}

Status Unit::set_settings(const UnitSettings& settings) {
  SHW_RETURN_IF_ERROR(check_settings(settings));
  const MutexLock lock(mutex_);
  settings_ = settings;
  return {};
}

Status Unit::set_prefetch(std::span<Unit* const> units, std::vector<UnitId>* list) {
  std::vector<UnitId> numbers;
  for (const Unit* each : units) {
    if (each == nullptr || &each->runtime_ != &runtime_)
      return invalid_argument(
          fmt::format("unit '{}' can only gather units of its own context ahead", name_));
    numbers.push_back(each->id_);
  }
  const MutexLock lock(mutex_);
  *list = std::move(numbers);
  return {};
}

Status Unit::set_forward_prefetch(std::span<Unit* const> units) {
  return set_prefetch(units, &forward_prefetch_);
}

Status Unit::set_backward_prefetch(std::span<Unit* const> units) {
  return set_prefetch(units, &backward_prefetch_);
}

Status Unit::set_frozen(size_t parameter, bool frozen) {
  const MutexLock lock(mutex_);
  SHW_RETURN_IF_ERROR(check_parameter(parameter));
  frozen_[parameter] = frozen;
  frozen_changed_ = true;
  return {};
}

bool Unit::is_frozen(size_t parameter) const {
  const MutexLock lock(mutex_);
  if (!sealed_ || parameter >= places_.size()) return true;
  const Place& place = places_[parameter];
  return !gradients_[place.group]->is_trained(place.index);
}

}  // namespace shardwright::hsdp
