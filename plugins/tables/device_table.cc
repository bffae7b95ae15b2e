// SPDX-License-Identifier: Apache-2.0
#include "plugins/tables/device_table.h"

#include <cstddef>
#include <utility>

#include "core/base/without_exceptions.h"
#include "plugins/tables/host_errors.h"

namespace shardwright::plugin_tables {
namespace {

using device::CopyKind;
using device::ElementCopy;
using device::Event;
using device::EventPtr;
using device::Lane;
using device::LaneDevice;
using device::LanePtr;
using DevicePtr = std::shared_ptr<LaneDevice>;  // co-owned by whoever made it

LaneDevice& of(void* user) {
  return **static_cast<DevicePtr*>(user);
}

Lane& lane_of(void* lane) {
  return *static_cast<Lane*>(lane);
}

// call() of the core as a function of the table.
template <typename Call>
shw_status answer(const char* what, shw_error** err, const Call& call) {
  return give(without_exceptions(what, call), err);
}

shw_status on_lane_create(void* user, int32_t priority, void** out, shw_error** err) {
  return answer("making a lane", err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(LanePtr made, of(user).make_lane(priority));
    *out = made.release();
    return {};
  });
}

void on_lane_release(void*, void* lane) {
  delete &lane_of(lane);
}

// What the host's task says becomes the failure that the lane keeps.
Status run_task(shw_device_task_fn task, void* data) {
  shw_error* error = nullptr;
  const shw_status code = task(data, &error);
  return code == SHW_OK && error == nullptr ? Status() : taken_from_host(code, error);
}

shw_status on_lane_submit(void*, void* lane, shw_device_task_fn task, void* data, shw_error** err) {
  return answer("submitting to a lane", err, [&] {
    return lane_of(lane).submit([task, data] { return run_task(task, data); });
  });
}

shw_status on_lane_synchronize(void*, void* lane, shw_error** err) {
  return answer("waiting for a lane", err, [&] { return lane_of(lane).synchronize(); });
}

shw_status on_lane_record(void*, void* lane, void* event, shw_error** err) {
  return answer("recording an event", err,
                [&] { return lane_of(lane).record(*static_cast<Event*>(event)); });
}

shw_status on_lane_wait(void*, void* lane, void* event, shw_error** err) {
  return answer("waiting for an event on a lane", err,
                [&] { return lane_of(lane).wait_for(*static_cast<Event*>(event)); });
}

shw_status on_event_create(void* user, void** out, shw_error** err) {
  return answer("making an event", err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(EventPtr made, of(user).make_event());
    *out = made.release();
    return {};
  });
}

void on_event_release(void*, void* event) {
  delete static_cast<Event*>(event);
}

shw_status on_event_wait(void*, void* event, int64_t timeout_ns, shw_error** err) {
  const Result<bool> passed = without_exceptions(
      "waiting for an event", [&] { return static_cast<Event*>(event)->wait(timeout_ns); });
  if (!passed.ok()) return give(passed.status(), err);
  return *passed ? SHW_OK : SHW_PENDING;
}

// Both kinds of memory.
template <typename Allocate>
shw_status allocate_by(void** out, shw_error** err, const Allocate& allocate) {
  return answer("allocating memory of a device", err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const std::span<std::byte> memory, allocate());
    *out = memory.data();
    return {};
  });
}

std::span<std::byte> span_of(void* memory, uint64_t bytes) {
  return {static_cast<std::byte*>(memory), static_cast<size_t>(bytes)};
}

shw_status on_memory_allocate(void* user, uint64_t bytes, void** out, shw_error** err) {
  return allocate_by(out, err, [&] { return of(user).allocate(bytes); });
}

void on_memory_release(void* user, void* memory, uint64_t bytes) {
  of(user).release(span_of(memory, bytes));
}

shw_status on_pinned_allocate(void* user, uint64_t bytes, void** out, shw_error** err) {
  return allocate_by(out, err, [&] { return of(user).allocate_pinned(bytes); });
}

void on_pinned_release(void* user, void* memory, uint64_t bytes) {
  of(user).release_pinned(span_of(memory, bytes));
}

shw_status on_copy(void* user, void* lane, int32_t kind, const void* source, void* target,
                   uint64_t bytes, shw_error** err) {
  return answer("submitting a copy", err, [&] {
    return of(user).copy(
        lane_of(lane), static_cast<CopyKind>(kind),
        std::span(static_cast<const std::byte*>(source), static_cast<size_t>(bytes)),
        span_of(target, bytes));
  });
}

shw_status on_copy_elements(void* user, void* lane, const shw_element_copy* given,
                            shw_error** err) {
  const ElementCopy copy{.source = static_cast<const std::byte*>(given->source),
                         .target = static_cast<std::byte*>(given->target),
                         .rows = given->rows,
                         .columns = given->columns,
                         .source_pitch = given->source_pitch,
                         .target_pitch = given->target_pitch,
                         .source_dtype = static_cast<DType>(given->source_dtype),
                         .target_dtype = static_cast<DType>(given->target_dtype),
                         .scale = given->scale == 0 ? 1.0 : given->scale,
                         .adds = (given->flags & SHW_ELEMENT_COPY_ADD) != 0};
  return answer("submitting a copy of elements", err,
                [&] { return of(user).copy_elements(lane_of(lane), copy); });
}

shw_status on_fill_zero(void* user, void* lane, void* target, uint64_t bytes, shw_error** err) {
  return answer("submitting zeros", err,
                [&] { return of(user).fill_zero(lane_of(lane), span_of(target, bytes)); });
}

uint64_t on_current_stream(void* user) {
  return of(user).current_stream();
}

void on_release(void* user) {
  delete static_cast<DevicePtr*>(user);
}

}  // namespace

shw_device_vtable device_functions(const char* name) {
  shw_device_vtable table = SHW_DEVICE_VTABLE_INIT;
  table.name = name;
  table.lane_create = on_lane_create;
  table.lane_release = on_lane_release;
  table.lane_submit = on_lane_submit;
  table.lane_synchronize = on_lane_synchronize;
  table.lane_record = on_lane_record;
  table.lane_wait = on_lane_wait;
  table.event_create = on_event_create;
  table.event_release = on_event_release;
  table.event_wait = on_event_wait;
  table.memory_allocate = on_memory_allocate;
  table.memory_release = on_memory_release;
  table.pinned_allocate = on_pinned_allocate;
  table.pinned_release = on_pinned_release;
  table.copy = on_copy;
  table.copy_elements = on_copy_elements;
  table.fill_zero = on_fill_zero;
  table.current_stream = on_current_stream;
  table.release = on_release;
  return table;
}

void fill_table(std::shared_ptr<LaneDevice> device, shw_device_vtable* table) {
  if (device->is_host()) table->flags |= SHW_DEVICE_IS_HOST;
  // A host of an older interface has no room for them.
  if (table->struct_size > offsetof(shw_device_vtable, device_id)) {
    table->device_type = device->number().type;
    table->device_id = device->number().id;
  }
  table->user = std::make_unique<DevicePtr>(std::move(device)).release();
}

}  // namespace shardwright::plugin_tables
