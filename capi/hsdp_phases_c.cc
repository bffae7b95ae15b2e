// SPDX-License-Identifier: Apache-2.0
//
// hsdp_phases.h: a unit in an iteration. Its views are in hsdp_views_c.cc.
#include "shardwright/hsdp_phases.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/communicator_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/struct_reader.h"
#include "capi/hsdp/hsdp_handles.h"
#include "capi/hsdp/param_batch.h"
#include "capi/hsdp/settings.h"

namespace shardwright::capi {
namespace {

Result<hsdp::PhaseOptions> read_phase(const shw_hsdp_phase_options* given) {
  shw_hsdp_phase_options copy;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &copy));
  return hsdp::PhaseOptions{(copy.flags & SHW_HSDP_RECOMPUTE) != 0};
}

// Gives the host the work, or waits for it where it wants none.
Status hand_out(Result<collective::WorkPtr> work, const std::shared_ptr<HsdpUnitImpl>& unit,
                shw_work** out) {
  SHW_RETURN_IF_ERROR(work.status());
  if (out == nullptr) return (*work)->wait(-1).status();
  SHW_ASSIGN_OR_RETURN(*out, work_of(std::move(*work), unit));
  return {};
}

// Gradients as the caller names them; owners: one each, or none.
struct GivenGradients {
  const uint64_t* params = nullptr;
  const shw_tensor* grads = nullptr;
  uint64_t count = 0;
  int32_t mode = SHW_HSDP_ADD;
  std::span<const std::shared_ptr<const void>> owners{};
};

Result<std::vector<hsdp::GradientInput>> read_gradients(const HsdpUnitImpl& unit,
                                                        const GivenGradients& given) {
  SHW_ASSIGN_OR_RETURN(const auto numbers, list_argument(given.params, given.count, "params"));
  SHW_RETURN_IF_ERROR(list_argument(given.grads, given.count, "grads").status());
  SHW_RETURN_IF_ERROR(option_in_range(given.mode, SHW_HSDP_TAKE, "mode"));
  std::vector<hsdp::GradientInput> inputs(given.count);
  for (uint64_t each = 0; each < given.count; ++each) {
    shw_tensor tensor;
    SHW_RETURN_IF_ERROR(read_element(given.grads, each, "grads", &tensor));
    const auto read = read_tensor(tensor, device_of_unit(unit), "grads");
    if (!read.ok()) return read.status().annotated(fmt::format("grads[{}]", each));
    inputs[each].parameter = numbers[each];
    inputs[each].dtype = read->dtype;
    inputs[each].bytes = read->bytes;
    inputs[each].take = given.mode == SHW_HSDP_TAKE;
    inputs[each].on_device = read->on_device;
    if (!given.owners.empty()) inputs[each].owner = given.owners[each];
  }
  return inputs;
}

// They are ours only when all were taken.
template <typename T>
Status add_grads_dlpack(shw_hsdp_unit* unit, const uint64_t* params, T* const* managed,
                        uint64_t count, int32_t mode) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(unit, "unit"));
  SHW_ASSIGN_OR_RETURN(auto imported, import_tensors(managed, count));
  SHW_ASSIGN_OR_RETURN(const auto inputs, read_gradients(*impl, {params, imported.described.data(),
                                                                 count, mode, imported.owners}));
  SHW_RETURN_IF_ERROR(impl->unit->add_gradients(inputs));
  imported.arm();
  return {};
}

template <typename Value>
Status set_value(shw_hsdp_unit* unit, int32_t key, Value value) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(unit, "unit"));
  hsdp::UnitSettings settings = impl->unit->settings();
  SHW_RETURN_IF_ERROR(set_unit_setting(key, value, &settings));
  return impl->unit->set_settings(settings);
}

Result<std::vector<hsdp::Unit*>> read_units(shw_hsdp_unit* const* units, uint64_t count) {
  SHW_ASSIGN_OR_RETURN(const auto list, list_argument(units, count, "units"));
  std::vector<hsdp::Unit*> found;
  for (const shw_hsdp_unit* each : list) {
    SHW_ASSIGN_OR_RETURN(const auto impl, need(each, "units"));
    found.push_back(impl->unit);
  }
  return found;
}

// What a phase does with the unit behind the handle.
template <typename Call>
shw_status with_unit(shw_hsdp_unit* unit, shw_error** err, Call&& call) noexcept {
  return guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, need(unit, "unit"));
    return call(*impl->unit);
  });
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;
using shardwright::hsdp::Unit;

extern "C" {

void shw_hsdp_phase_options_init(shw_hsdp_phase_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_hsdp_unit_pre_forward(shw_hsdp_unit* unit, const shw_hsdp_phase_options* options,
                                     shw_error** err) noexcept {
  return capi::with_unit(unit, err, [&](Unit& core) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto phase, capi::read_phase(options));
    return core.pre_forward(phase);
  });
}

shw_status shw_hsdp_unit_post_forward(shw_hsdp_unit* unit, const shw_hsdp_phase_options* options,
                                      shw_error** err) noexcept {
  return capi::with_unit(unit, err, [&](Unit& core) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto phase, capi::read_phase(options));
    return core.post_forward(phase);
  });
}

shw_status shw_hsdp_unit_pre_backward(shw_hsdp_unit* unit, shw_error** err) noexcept {
  return capi::with_unit(unit, err, [](Unit& core) { return core.pre_backward(); });
}

shw_status shw_hsdp_unit_post_backward(shw_hsdp_unit* unit, shw_error** err) noexcept {
  return capi::with_unit(unit, err, [](Unit& core) { return core.post_backward(); });
}

shw_status shw_hsdp_unit_unshard(shw_hsdp_unit* unit, shw_work** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    return capi::hand_out(impl->unit->unshard(), impl, out);
  });
}

shw_status shw_hsdp_unit_wait(shw_hsdp_unit* unit, shw_error** err) noexcept {
  return capi::with_unit(unit, err, [](Unit& core) { return core.wait_unsharded(); });
}

shw_status shw_hsdp_unit_reshard(shw_hsdp_unit* unit, int32_t phase, shw_error** err) noexcept {
  return capi::with_unit(unit, err, [&](Unit& core) -> Status {
    SHW_RETURN_IF_ERROR(capi::option_in_range(phase, SHW_HSDP_BACKWARD, "phase"));
    return phase == SHW_HSDP_FORWARD ? core.reshard_after_forward() : core.reshard();
  });
}

shw_status shw_hsdp_unit_add_grads(shw_hsdp_unit* unit, const uint64_t* params,
                                   const shw_tensor* grads, uint64_t count, int32_t mode,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    SHW_ASSIGN_OR_RETURN(const auto inputs,
                         capi::read_gradients(*impl, {params, grads, count, mode}));
    return impl->unit->add_gradients(inputs);
  });
}

shw_status shw_hsdp_unit_add_grads_dlpack(shw_hsdp_unit* unit, const uint64_t* params,
                                          struct DLManagedTensorVersioned* const* managed,
                                          uint64_t count, int32_t mode, shw_error** err) noexcept {
  return capi::guarded(err,
                       [&] { return capi::add_grads_dlpack(unit, params, managed, count, mode); });
}

shw_status shw_hsdp_unit_add_grads_dlpack_legacy(shw_hsdp_unit* unit, const uint64_t* params,
                                                 struct DLManagedTensor* const* managed,
                                                 uint64_t count, int32_t mode,
                                                 shw_error** err) noexcept {
  return capi::guarded(err,
                       [&] { return capi::add_grads_dlpack(unit, params, managed, count, mode); });
}

shw_status shw_hsdp_unit_reduce(shw_hsdp_unit* unit, shw_work** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    return capi::hand_out(impl->unit->reduce(), impl, out);
  });
}

int32_t shw_hsdp_unit_state(const shw_hsdp_unit* unit) noexcept {
  const auto* impl = capi::peek(unit);
  return impl == nullptr ? SHW_HSDP_SHARDED : static_cast<int32_t>(impl->unit->state());
}

int32_t shw_hsdp_unit_grad_state(const shw_hsdp_unit* unit) noexcept {
  const auto* impl = capi::peek(unit);
  return impl == nullptr ? SHW_HSDP_GRAD_NONE : static_cast<int32_t>(impl->unit->gradient_state());
}

shw_status shw_hsdp_unit_set_i64(shw_hsdp_unit* unit, int32_t key, int64_t value,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::set_value(unit, key, value); });
}

shw_status shw_hsdp_unit_get_i64(const shw_hsdp_unit* unit, int32_t key, int64_t* out,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::unit_setting(key, impl->unit->settings()));
    return {};
  });
}

shw_status shw_hsdp_unit_get_f64(const shw_hsdp_unit* unit, int32_t key, double* out,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::real_unit_setting(key, impl->unit->settings()));
    return {};
  });
}

shw_status shw_hsdp_unit_set_f64(shw_hsdp_unit* unit, int32_t key, double value,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::set_value(unit, key, value); });
}

shw_status shw_hsdp_unit_set_units(shw_hsdp_unit* unit, int32_t key, shw_hsdp_unit* const* units,
                                   uint64_t count, shw_error** err) noexcept {
  return capi::with_unit(unit, err, [&](Unit& core) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto found, capi::read_units(units, count));
    if (key == SHW_HSDP_FORWARD_PREFETCH) return core.set_forward_prefetch(found);
    if (key == SHW_HSDP_BACKWARD_PREFETCH) return core.set_backward_prefetch(found);
    return capi::bad_argument("key", fmt::format("{} is no list of units", key));
  });
}

shw_status shw_hsdp_unit_set_frozen(shw_hsdp_unit* unit, uint64_t index, shw_bool frozen,
                                    shw_error** err) noexcept {
  return capi::with_unit(unit, err,
                         [&](Unit& core) { return core.set_frozen(index, frozen != 0); });
}

}  // extern "C"
