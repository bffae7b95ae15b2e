// SPDX-License-Identifier: Apache-2.0
//
// device.h: devices that HSDP puts work on.
#include "shardwright/device.h"

#include <memory>
#include <utility>

#include "capi/adapters/device_adapter.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/communicator_argument.h"
#include "capi/boundary/communicator_handles.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"

namespace shardwright::capi {

Result<shw_device*> device_of(std::shared_ptr<device::LaneDevice> device) {
  auto impl = std::make_shared<DeviceImpl>();
  impl->name = device->name();
  impl->device = std::move(device);
  return make_handle<shw_device>(std::move(impl));
}

Result<std::shared_ptr<device::LaneDevice>> read_device(const shw_device* device) {
  if (device == nullptr) return device::make_host_lane_device(false);
  SHW_ASSIGN_OR_RETURN(const auto impl, need(device, "device"));
  return impl->device;
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_device_vtable_init(shw_device_vtable* vtable, uint32_t struct_size) noexcept {
  capi::init_struct(vtable, struct_size);
  if (vtable == nullptr || struct_size < SHW_DEVICE_VTABLE_SIZE_V1) return;
  vtable->abi_major = SHW_ABI_MAJOR;
  vtable->abi_minor = SHW_ABI_MINOR;
}

shw_status shw_device_create(const shw_device_vtable* vtable, shw_device** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_device_vtable copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(vtable, "vtable", &copy));
    SHW_RETURN_IF_ERROR(capi::check_device_slots(copy));
    // The handle is made before the table is taken over, so that a failure consumes nothing.
    auto impl = std::make_shared<capi::DeviceImpl>();
    impl->name = copy.name;
    auto handle = std::make_unique<shw_device>();
    impl->device = capi::make_host_table_device(copy, nullptr);
    handle->impl = std::move(impl);
    *out = handle.release();
    return {};
  });
}

shw_status shw_device_create_host(shw_bool inline_lanes, shw_device** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(
        *out, capi::device_of(shardwright::device::make_host_lane_device(inline_lanes != 0)));
    return {};
  });
}

shw_status shw_context_open_device(shw_context* context, const char* plugin, const char* config,
                                   uint64_t config_size, shw_device** out,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plugin, "plugin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(config, config_size, "config"));
    SHW_ASSIGN_OR_RETURN(auto opened, impl->plugins().open_device(plugin, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::device_of(std::move(opened)));
    return {};
  });
}

const char* shw_device_name(const shw_device* device, uint64_t* size) noexcept {
  const auto* impl = capi::peek(device);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->name), size);
}

int32_t shw_device_type(const shw_device* device) noexcept {
  const auto* impl = capi::peek(device);
  return impl == nullptr ? 0 : impl->device->number().type;
}

int32_t shw_device_id(const shw_device* device) noexcept {
  const auto* impl = capi::peek(device);
  return impl == nullptr ? 0 : impl->device->number().id;
}

void shw_device_release(shw_device* device) noexcept {
  capi::release_handle(device);
}

}  // extern "C"
