// SPDX-License-Identifier: Apache-2.0
//
// hsdp_phases.h: the memory of a unit as the host sees it, and memory that the host gives it.
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/struct_reader.h"
#include "capi/dlpack/dlpack_export.h"
#include "capi/hsdp/host_memory.h"
#include "capi/hsdp/hsdp_handles.h"
#include "capi/hsdp/lent_parameters.h"
#include "shardwright/hsdp_phases.h"

namespace shardwright::capi {
namespace {

// A view and the shapes that describe it; no bytes where there is no gradient.
struct View {
  std::span<std::byte> bytes;
  DType dtype = DType::kInvalid;
  const Dims* shape = nullptr;
  const Dims* strides = nullptr;
  device::DeviceNumber place{};
  std::shared_ptr<const void> owner{};  // of the bytes, where it is not the unit
};

Result<View> view_of_parameter(HsdpUnitImpl& unit, int32_t view, size_t index) {
  const LentParameter& lent = unit.parameters[index];
  const bool is_whole = view == SHW_HSDP_VIEW_FULL;
  View made{{},
            DType::kInvalid,
            is_whole ? &lent.global_shape : &lent.box.sizes,
            is_whole ? &lent.global_strides : &lent.local_strides,
            {},
            {}};
  Result<hsdp::ParameterView> found = view == SHW_HSDP_VIEW_LOCAL  ? unit.unit->local(index)
                                      : view == SHW_HSDP_VIEW_FULL ? unit.unit->full(index)
                                                                   : unit.unit->gradient(index);
  SHW_RETURN_IF_ERROR(found.status());
  made.bytes = found->bytes;
  made.dtype = found->dtype;
  made.place = found->place;
  made.owner = std::move(found->owner);
  return made;
}

shw_tensor tensor_of_view(const View& view) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = view.bytes.data();
  tensor.byte_size = view.bytes.size();
  tensor.device_type = view.place.type;
  tensor.device_id = view.place.id;
  tensor.dtype = static_cast<int32_t>(view.dtype);
  tensor.ndim = static_cast<int32_t>(view.shape->size());
  tensor.shape = view.shape->data();
  return tensor;
}

// Of a parameter that may have no gradient.
Result<shw_tensor> described_view(HsdpUnitImpl& unit, int32_t view, size_t index) {
  if (view == SHW_HSDP_VIEW_GRAD && !unit.unit->has_gradient(index)) {
    const LentParameter& lent = unit.parameters[index];
    return tensor_of_view(
        {{}, DType::kInvalid, &lent.box.sizes, &lent.local_strides, unit.unit->shard_place(), {}});
  }
  SHW_ASSIGN_OR_RETURN(const View made, view_of_parameter(unit, view, index));
  return tensor_of_view(made);
}

struct ViewRequest {
  std::shared_ptr<HsdpUnitImpl> unit;
  size_t first = 0;
};

Result<ViewRequest> read_request(shw_hsdp_unit* unit, int32_t view, uint64_t first,
                                 uint64_t count) {
  SHW_ASSIGN_OR_RETURN(auto impl, need(unit, "unit"));
  SHW_RETURN_IF_ERROR(option_in_range(view, SHW_HSDP_VIEW_GRAD, "view"));
  SHW_RETURN_IF_ERROR(check_parameters(*impl, first, count));
  return ViewRequest{std::move(impl), static_cast<size_t>(first)};
}

// What an exported view keeps: the unit, which has the shapes, and the bytes.
struct ViewOwner {
  std::shared_ptr<HsdpUnitImpl> unit;
  std::shared_ptr<const void> bytes;
};

template <typename Managed, typename Make>
Status export_view(shw_hsdp_unit* unit, int32_t view, uint64_t index, Managed** out, Make&& make) {
  SHW_RETURN_IF_ERROR(need_pointer(out, "out"));
  SHW_ASSIGN_OR_RETURN(const ViewRequest request, read_request(unit, view, index, 1));
  SHW_ASSIGN_OR_RETURN(View made, view_of_parameter(*request.unit, view, request.first));
  auto owner = std::make_shared<ViewOwner>(ViewOwner{request.unit, std::move(made.owner)});
  *out = make(ExportedTensor{made.bytes.data(), made.dtype, made.shape->span(),
                             made.strides->span(), made.place},
              std::move(owner));
  return {};
}

Result<std::vector<std::span<std::byte>>> read_memory(void* const* memory, const uint64_t* sizes,
                                                      uint64_t count) {
  SHW_ASSIGN_OR_RETURN(const auto addresses, list_argument(memory, count, "memory"));
  SHW_ASSIGN_OR_RETURN(const auto lengths, list_argument(sizes, count, "sizes"));
  std::vector<std::span<std::byte>> given;
  for (uint64_t each = 0; each < count; ++each) {
    if (addresses[each] == nullptr && lengths[each] != 0)
      return bad_argument("memory", fmt::format("memory[{}] is NULL, but sizes[{}] is {}", each,
                                                each, lengths[each]));
    given.emplace_back(static_cast<std::byte*>(addresses[each]), lengths[each]);
  }
  return given;
}

Status check_may_be_given(const HsdpUnitImpl& unit) {
  if (unit.memory == nullptr)
    return failed_precondition(
        fmt::format("unit '{}' was made without SHW_HSDP_UNIT_HOST_MEMORY", unit.unit->name()));
  if (unit.unit->state() == hsdp::UnitState::kUnsharded)
    return failed_precondition(fmt::format(
        "unit '{}' is UNSHARDED, its memory is in use: reshard it first", unit.unit->name()));
  return {};
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

shw_status shw_hsdp_unit_views(shw_hsdp_unit* unit, int32_t view, uint64_t first, uint64_t count,
                               shw_tensor* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto request, capi::read_request(unit, view, first, count));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    for (uint64_t each = 0; each < count; ++each) {
      shw_tensor* place = capi::element_at(out, each);
      SHW_RETURN_IF_ERROR(capi::check_out(place, "out"));
      SHW_ASSIGN_OR_RETURN(const shw_tensor made,
                           capi::described_view(*request.unit, view, request.first + each));
      capi::write_out(made, place);
    }
    return {};
  });
}

shw_status shw_hsdp_unit_view_dlpack(shw_hsdp_unit* unit, int32_t view, uint64_t index,
                                     struct DLManagedTensorVersioned** out,
                                     shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::export_view(unit, view, index, out, [](const auto& memory, auto owner) {
      return capi::export_dlpack(memory, std::move(owner));
    });
  });
}

shw_status shw_hsdp_unit_view_dlpack_legacy(shw_hsdp_unit* unit, int32_t view, uint64_t index,
                                            struct DLManagedTensor** out,
                                            shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::export_view(unit, view, index, out, [](const auto& memory, auto owner) {
      return capi::export_dlpack_legacy(memory, std::move(owner));
    });
  });
}

shw_status shw_hsdp_unit_set_memory(shw_hsdp_unit* unit, uint64_t first, uint64_t count,
                                    void* const* memory, const uint64_t* sizes,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    SHW_ASSIGN_OR_RETURN(const auto given, capi::read_memory(memory, sizes, count));
    SHW_RETURN_IF_ERROR(capi::check_parameters(*impl, first, count));
    SHW_RETURN_IF_ERROR(capi::check_may_be_given(*impl));
    impl->memory->give(first, given);
    return {};
  });
}

}  // extern "C"
