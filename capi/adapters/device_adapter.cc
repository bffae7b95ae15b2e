// SPDX-License-Identifier: Apache-2.0
//
// Lanes and events keep what they belong to alive. A task of the core becomes a function and a
// pointer; what it throws becomes a status before it reaches the table.
#include "capi/adapters/device_adapter.h"

#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/tensor_argument.h"
#include "capi/boundary/version.h"
#include "core/base/without_exceptions.h"
#include "core/device/devices.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::capi {
namespace {

using device::CopyKind;
using device::DeviceNumber;
using device::ElementCopy;
using device::Event;
using device::Lane;
using device::LaneDevice;

constexpr std::align_val_t kMemoryAlignment{64};

// The table, its name for messages, and what its functions lie in.
struct Table {
  Table(std::string of_name, std::shared_ptr<void> of_owner)
      : name(std::move(of_name)), owner(std::move(of_owner)) {}
  ~Table() {
    if (functions.release == nullptr) return;
    const CallbackScope scope;
    functions.release(functions.user);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  template <typename Body>
  Status call(const char* slot, Body&& body) const {
    shw_error* error = nullptr;
    shw_status code = SHW_OK;
    {
      const CallbackScope scope;
      code = body(&error);
    }
    if (code == SHW_OK && error == nullptr) return {};
    return without_exceptions(slot, [&] {
      return status_from_host(code, error, fmt::format("{} of device '{}'", slot, name).c_str());
    });
  }

  shw_device_vtable functions{};
  const std::string name;
  const std::shared_ptr<void> owner;
};
using TablePtr = std::shared_ptr<const Table>;

DeviceNumber number_of(const shw_device_vtable& vtable) {
  if (vtable.device_type != 0) return {vtable.device_type, vtable.device_id};
  const bool is_host = (vtable.flags & SHW_DEVICE_IS_HOST) != 0;
  return {is_host ? SHW_DEVICE_CPU : SHW_DEVICE_EXTENSION, vtable.device_id};
}

class TableEvent final : public Event {
 public:
  explicit TableEvent(TablePtr table) : table_(std::move(table)) {}
  ~TableEvent() override {
    if (event_ == nullptr) return;
    const CallbackScope scope;
    table_->functions.event_release(table_->functions.user, event_);
  }
  Status make() {
    return table_->call("event_create", [&](shw_error** error) {
      return table_->functions.event_create(table_->functions.user, &event_, error);
    });
  }
  void* get() const { return event_; }

  Result<bool> wait(int64_t timeout_ns) const override {
    bool passed = true;
    SHW_RETURN_IF_ERROR(table_->call("event_wait", [&](shw_error** error) -> shw_status {
      const shw_status code = table_->functions.event_wait(table_->functions.user, event_,
                                                           timeout_ns < 0 ? -1 : timeout_ns, error);
      passed = code != SHW_PENDING;
      return passed ? code : static_cast<shw_status>(SHW_OK);
    }));
    return passed;
  }
  bool has_passed() const override {
    const Result<bool> passed = wait(0);
    return passed.ok() && *passed;
  }

 private:
  const TablePtr table_;
  void* event_ = nullptr;
};

// A task on its way through the table; ends with its run.
struct SubmittedTask {
  std::function<Status()> run;
};

shw_status run_task(void* data, shw_error** err) {
  const std::unique_ptr<SubmittedTask> task(static_cast<SubmittedTask*>(data));
  const Status outcome = without_exceptions("a task of a lane", [&] { return task->run(); });
  if (outcome.ok()) return SHW_OK;
  if (err != nullptr) *err = error_from_status(outcome);
  return static_cast<shw_status>(outcome.code());
}

class TableLane final : public Lane {
 public:
  explicit TableLane(TablePtr table) : table_(std::move(table)) {}
  ~TableLane() override {
    if (lane_ == nullptr) return;
    const CallbackScope scope;
    table_->functions.lane_release(table_->functions.user, lane_);
  }
  Status make(int32_t priority) {
    return table_->call("lane_create", [&](shw_error** error) {
      return table_->functions.lane_create(table_->functions.user, priority, &lane_, error);
    });
  }
  void* get() const { return lane_; }

  Status submit(std::function<Status()> task) override {
    std::unique_ptr<SubmittedTask> submitted(new (std::nothrow) SubmittedTask{std::move(task)});
    if (submitted == nullptr) return out_of_memory();
    SHW_RETURN_IF_ERROR(table_->call("lane_submit", [&](shw_error** error) {
      return table_->functions.lane_submit(table_->functions.user, lane_, &run_task,
                                           submitted.get(), error);
    }));
    static_cast<void>(submitted.release());  // run_task has it, or had it already
    return {};
  }
  Status record(Event& event) override {
    return table_->call("lane_record", [&](shw_error** error) {
      return table_->functions.lane_record(table_->functions.user, lane_,
                                           static_cast<TableEvent&>(event).get(), error);
    });
  }
  Status wait_for(const Event& event) override {
    return table_->call("lane_wait", [&](shw_error** error) {
      return table_->functions.lane_wait(table_->functions.user, lane_,
                                         static_cast<const TableEvent&>(event).get(), error);
    });
  }
  Status synchronize() override {
    return table_->call("lane_synchronize", [&](shw_error** error) {
      return table_->functions.lane_synchronize(table_->functions.user, lane_, error);
    });
  }

 private:
  const TablePtr table_;
  void* lane_ = nullptr;
};

shw_element_copy table_copy(const ElementCopy& copy) {
  return {.struct_size = sizeof(shw_element_copy),
          .flags = copy.adds ? uint32_t{SHW_ELEMENT_COPY_ADD} : 0,
          .source = copy.source,
          .target = copy.target,
          .rows = copy.rows,
          .columns = copy.columns,
          .source_pitch = copy.source_pitch,
          .target_pitch = copy.target_pitch,
          .source_dtype = static_cast<int32_t>(copy.source_dtype),
          .target_dtype = static_cast<int32_t>(copy.target_dtype),
          .scale = copy.scale};
}

class TableDevice final : public LaneDevice {
 public:
  explicit TableDevice(TablePtr table) : table_(std::move(table)) {}
  std::string_view name() const override { return table_->name; }
  bool is_host() const override { return (functions().flags & SHW_DEVICE_IS_HOST) != 0; }
  DeviceNumber number() const override { return number_of(functions()); }

  Result<std::unique_ptr<Lane>> make_lane(int32_t priority) override {
    auto lane = std::make_unique<TableLane>(table_);
    SHW_RETURN_IF_ERROR(lane->make(priority));
    return std::unique_ptr<Lane>(std::move(lane));
  }
  Result<std::unique_ptr<Event>> make_event() override {
    auto event = std::make_unique<TableEvent>(table_);
    SHW_RETURN_IF_ERROR(event->make());
    return std::unique_ptr<Event>(std::move(event));
  }
  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    return allocate_by("memory_allocate", functions().memory_allocate, bytes);
  }
  // Memory that was never made is none of the table's.
  void release(std::span<std::byte> memory) noexcept override {
    if (memory.data() == nullptr) return;
    const CallbackScope scope;
    functions().memory_release(functions().user, memory.data(), memory.size());
  }
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    if (functions().pinned_allocate != nullptr)
      return allocate_by("pinned_allocate", functions().pinned_allocate, bytes);
    void* memory = ::operator new(bytes, kMemoryAlignment, std::nothrow);
    if (memory == nullptr)
      return resource_exhausted("memory", fmt::format("no memory for {} bytes of the host", bytes));
    return std::span(static_cast<std::byte*>(memory), bytes);
  }
  void release_pinned(std::span<std::byte> memory) noexcept override {
    if (memory.data() == nullptr) return;
    if (functions().pinned_release == nullptr) {
      ::operator delete(memory.data(), kMemoryAlignment);
      return;
    }
    const CallbackScope scope;
    functions().pinned_release(functions().user, memory.data(), memory.size());
  }
  Status copy(Lane& lane, CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    if (source.size() != target.size())
      return invalid_argument(fmt::format("a copy of {} bytes into {} on device '{}'",
                                          source.size(), target.size(), name()));
    return table_->call("copy", [&](shw_error** error) {
      return functions().copy(functions().user, static_cast<TableLane&>(lane).get(),
                              static_cast<int32_t>(kind), source.data(), target.data(),
                              source.size(), error);
    });
  }
  Status copy_elements(Lane& lane, const ElementCopy& copy) override {
    if (functions().copy_elements == nullptr)
      return is_host() ? device::submit_element_copy(lane, copy) : without("copy_elements");
    SHW_RETURN_IF_ERROR(device::check_element_copy(copy));
    const shw_element_copy made = table_copy(copy);
    return table_->call("copy_elements", [&](shw_error** error) {
      return functions().copy_elements(functions().user, static_cast<TableLane&>(lane).get(), &made,
                                       error);
    });
  }
  Status fill_zero(Lane& lane, std::span<std::byte> target) override {
    if (functions().fill_zero == nullptr)
      return is_host() ? device::submit_zeros(lane, target) : without("fill_zero");
    if (target.empty()) return {};
    return table_->call("fill_zero", [&](shw_error** error) {
      return functions().fill_zero(functions().user, static_cast<TableLane&>(lane).get(),
                                   target.data(), target.size(), error);
    });
  }
  uint64_t current_stream() const override {
    if (functions().current_stream == nullptr) return 0;
    const CallbackScope scope;
    return functions().current_stream(functions().user);
  }

 private:
  const shw_device_vtable& functions() const { return table_->functions; }

  Status without(const char* slot) const {
    return unimplemented(
        fmt::format("device '{}' has no {}, and its memory is not that of the host", name(), slot));
  }
  Result<std::span<std::byte>> allocate_by(const char* slot, shw_device_allocate_fn function,
                                           uint64_t bytes) {
    void* memory = nullptr;
    Status outcome = table_->call(
        slot, [&](shw_error** error) { return function(functions().user, bytes, &memory, error); });
    if (outcome.code() == StatusCode::kResourceExhausted && outcome.detail("resource").empty())
      return std::move(outcome).with_detail("resource", "memory");
    SHW_RETURN_IF_ERROR(outcome);
    if (memory == nullptr && bytes != 0)
      return resource_exhausted(
          "memory", fmt::format("{} of device '{}' gave NULL for {} bytes", slot, name(), bytes));
    return std::span(static_cast<std::byte*>(memory), bytes);
  }

  const TablePtr table_;
};

Status check_number(const shw_device_vtable& vtable) {
  const DeviceNumber number = number_of(vtable);
  if (!is_known_device(number.type))
    return bad_argument("vtable",
                        fmt::format("device_type is {}, which DLPack does not have", number.type));
  if (number.id < 0)
    return bad_argument("vtable", fmt::format("device_id is {}, below 0", number.id));
  const bool is_host = (vtable.flags & SHW_DEVICE_IS_HOST) != 0;
  if (device_is_host_accessible(number.type) == is_host) return {};
  return bad_argument(
      "vtable", fmt::format("memory lies on {}, and SHW_DEVICE_IS_HOST is {}",
                            device::device_text(number.type, number.id), is_host ? "set" : "not"));
}

}  // namespace

Status check_device_slots(const shw_device_vtable& vtable) {
  const auto need = [](auto slot, const char* name) -> Status {
    if (slot != nullptr) return {};
    return bad_argument("vtable", fmt::format("required slot '{}' is NULL", name))
        .with_detail("field", name);
  };
  SHW_RETURN_IF_ERROR(need(vtable.name, "name"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_create, "lane_create"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_release, "lane_release"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_submit, "lane_submit"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_synchronize, "lane_synchronize"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_record, "lane_record"));
  SHW_RETURN_IF_ERROR(need(vtable.lane_wait, "lane_wait"));
  SHW_RETURN_IF_ERROR(need(vtable.event_create, "event_create"));
  SHW_RETURN_IF_ERROR(need(vtable.event_release, "event_release"));
  SHW_RETURN_IF_ERROR(need(vtable.event_wait, "event_wait"));
  SHW_RETURN_IF_ERROR(need(vtable.memory_allocate, "memory_allocate"));
  SHW_RETURN_IF_ERROR(need(vtable.memory_release, "memory_release"));
  SHW_RETURN_IF_ERROR(need(vtable.copy, "copy"));
  if ((vtable.pinned_allocate == nullptr) != (vtable.pinned_release == nullptr))
    return bad_argument("vtable", "pinned_allocate and pinned_release belong together");
  if ((vtable.copy_elements == nullptr) != (vtable.fill_zero == nullptr))
    return bad_argument("vtable", "copy_elements and fill_zero belong together");
  SHW_RETURN_IF_ERROR(check_number(vtable));
  return check_interface(fmt::format("device '{}'", vtable.name), vtable.abi_major,
                         vtable.abi_minor);
}

std::shared_ptr<device::LaneDevice> make_host_table_device(const shw_device_vtable& vtable,
                                                           std::shared_ptr<void> owner) {
  auto table = std::make_shared<Table>(vtable.name, std::move(owner));
  auto device = std::make_shared<TableDevice>(table);
  table->functions = vtable;
  return device;
}

}  // namespace shardwright::capi
