// SPDX-License-Identifier: Apache-2.0
//
// hsdp_unit.h: what a unit is made of.
#include "shardwright/hsdp_unit.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/hsdp/host_memory.h"
#include "capi/hsdp/hsdp_handles.h"
#include "capi/hsdp/lent_parameters.h"
#include "capi/hsdp/param_batch.h"
#include "core/hsdp/state_entries.h"

namespace shardwright::capi {
namespace {

// A parameter of a sealed unit.
struct SealedParameter {
  std::shared_ptr<HsdpUnitImpl> impl;
  size_t index = 0;
};

Result<SealedParameter> sealed_parameter(shw_hsdp_unit* unit, uint64_t index) {
  SHW_ASSIGN_OR_RETURN(auto impl, need(unit, "unit"));
  SHW_RETURN_IF_ERROR(check_parameters(*impl, index, 1));
  return SealedParameter{std::move(impl), static_cast<size_t>(index)};
}

// Adds DLPack tensors of either kind; they are ours only when all were added.
template <typename T>
Status add_params_dlpack(shw_hsdp_unit* unit, const shw_hsdp_param_batch* given,
                         T* const* managed) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(unit, "unit"));
  shw_hsdp_param_batch batch;
  SHW_RETURN_IF_ERROR(read_struct(given, "batch", &batch));
  if (batch.tensors != nullptr)
    return bad_argument("batch", "tensors must be NULL when DLPack tensors are given");
  SHW_ASSIGN_OR_RETURN(auto imported, import_tensors(managed, batch.count));
  batch.tensors = imported.described.data();
  SHW_ASSIGN_OR_RETURN(auto inputs,
                       read_param_batch(batch, imported.owners, device_of_unit(*impl)));
  SHW_RETURN_IF_ERROR(impl->unit->add_parameters(std::move(inputs)));
  imported.arm();
  return {};
}

Status create_unit(const std::shared_ptr<HsdpImpl>& owner, std::string name,
                   const UnitDescription& description, HsdpUnitImpl* impl) {
  impl->owner = owner;
  SHW_ASSIGN_OR_RETURN(impl->unit, owner->hsdp->create_unit(std::move(name), description.options,
                                                            description.settings));
  if (!description.host_memory) return {};
  impl->memory = std::make_shared<GivenMemory>(impl->unit->name());
  return impl->unit->set_allocator(impl->memory);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_hsdp_unit_options_init(shw_hsdp_unit_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

void shw_hsdp_param_batch_init(shw_hsdp_param_batch* batch, uint32_t struct_size) noexcept {
  capi::init_struct(batch, struct_size);
}

void shw_hsdp_box_init(shw_hsdp_box* box, uint32_t struct_size) noexcept {
  capi::init_struct(box, struct_size);
}

void shw_hsdp_allocator_init(shw_hsdp_allocator* allocator, uint32_t struct_size) noexcept {
  capi::init_struct(allocator, struct_size);
}

shw_status shw_hsdp_unit_create(shw_hsdp* hsdp, const char* name, uint64_t name_size,
                                const shw_hsdp_unit_options* options, shw_hsdp_unit** out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto owner, capi::need(hsdp, "hsdp"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(name, "name"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    SHW_ASSIGN_OR_RETURN(const auto description, capi::read_unit_options(options));
    auto impl = std::make_shared<capi::HsdpUnitImpl>();
    auto handle = std::make_unique<shw_hsdp_unit>();
    SHW_RETURN_IF_ERROR(capi::create_unit(owner, std::string(text), description, impl.get()));
    handle->impl = std::move(impl);
    *out = handle.release();
    return {};
  });
}

shw_status shw_hsdp_unit_add_params(shw_hsdp_unit* unit, const shw_hsdp_param_batch* batch,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    shw_hsdp_param_batch copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(batch, "batch", &copy));
    SHW_ASSIGN_OR_RETURN(auto inputs,
                         capi::read_param_batch(copy, {}, capi::device_of_unit(*impl)));
    return impl->unit->add_parameters(std::move(inputs));
  });
}

shw_status shw_hsdp_unit_add_params_dlpack(shw_hsdp_unit* unit, const shw_hsdp_param_batch* batch,
                                           struct DLManagedTensorVersioned* const* managed,
                                           shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::add_params_dlpack(unit, batch, managed); });
}

shw_status shw_hsdp_unit_add_params_dlpack_legacy(shw_hsdp_unit* unit,
                                                  const shw_hsdp_param_batch* batch,
                                                  struct DLManagedTensor* const* managed,
                                                  shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::add_params_dlpack(unit, batch, managed); });
}

shw_status shw_hsdp_unit_set_allocator(shw_hsdp_unit* unit, const shw_hsdp_allocator* allocator,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    shw_hsdp_allocator copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(allocator, "allocator", &copy));
    if (impl->memory != nullptr)
      return shardwright::failed_precondition(
          fmt::format("unit '{}' was made with SHW_HSDP_UNIT_HOST_MEMORY, it has no allocator",
                      impl->unit->name()));
    if (impl->unit->is_sealed())
      return shardwright::failed_precondition(
          fmt::format("unit '{}' is sealed; whose memory it uses is decided", impl->unit->name()));
    SHW_ASSIGN_OR_RETURN(auto made, capi::make_host_allocator(copy, impl->unit->name()));
    return impl->unit->set_allocator(std::move(made));
  });
}

shw_status shw_hsdp_unit_seal(shw_hsdp_unit* unit, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    return impl->unit->seal();
  });
}

uint64_t shw_hsdp_unit_param_count(const shw_hsdp_unit* unit) noexcept {
  const auto* impl = capi::peek(unit);
  return impl == nullptr ? 0 : impl->unit->parameter_count();
}

const char* shw_hsdp_unit_param_name(const shw_hsdp_unit* unit, uint64_t index,
                                     uint64_t* size) noexcept {
  const auto* impl = capi::peek(unit);
  const bool is_there =
      impl != nullptr && impl->unit->is_sealed() && index < impl->unit->parameter_count();
  return capi::text_out(is_there ? std::string_view(impl->unit->spec(index).fqn) : "", size);
}

shw_status shw_hsdp_unit_box(shw_hsdp_unit* unit, uint64_t index, shw_hsdp_box* out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto at, capi::sealed_parameter(unit, index));
    const capi::LentParameter& lent = at.impl->parameters[at.index];
    shw_hsdp_box box = SHW_HSDP_BOX_INIT;
    box.ndim = static_cast<int32_t>(lent.global_shape.size());
    box.offsets = lent.box.offsets.data();
    box.sizes = lent.box.sizes.data();
    box.global_shape = lent.global_shape.data();
    capi::write_out(box, out);
    return {};
  });
}

shw_status shw_hsdp_unit_layout(shw_hsdp_unit* unit, uint64_t index, shw_layout** out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto at, capi::sealed_parameter(unit, index));
    auto impl = std::make_shared<capi::LayoutImpl>();
    SHW_ASSIGN_OR_RETURN(impl->layout, shardwright::hsdp::parameter_layout(
                                           *at.impl->owner->hsdp, *at.impl->unit, at.index));
    if (impl->layout == nullptr)
      return shardwright::unimplemented(
          fmt::format("the cut of parameter '{}' of the ragged unit '{}' is no rule of a mesh: use "
                      "shw_hsdp_unit_box",
                      at.impl->unit->spec(at.index).fqn, at.impl->unit->name()));
    *out = capi::make_handle<shw_layout>(std::move(impl));
    return {};
  });
}

void shw_hsdp_unit_release(shw_hsdp_unit* unit) noexcept {
  capi::release_handle(unit);
}

}  // extern "C"
