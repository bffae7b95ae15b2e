// SPDX-License-Identifier: Apache-2.0
//
// Devices: which Device has which memory, by the device numbers of DLPack; host memory is always
// among them, and what a state brings an access for. The table of a runtime. Immutable,
// thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/device/device.h"
#include "core/state/state.h"

namespace shardwright::device {

struct DeviceEntry {
  int32_t type = 0;                // a DLPack device number other than those of host memory
  std::shared_ptr<Device> device;  // co-owned with whoever made it
};

// "cuda:1", "cpu"; "device type 99" for a number outside the table.
std::string device_text(int32_t type, int32_t id);

// A failure of a device and what was done with which tensor; success stays.
Status with_tensor(Status status, std::string_view doing, std::string_view name);

class Devices {
 public:
  // INVALID_ARGUMENT for a number that is no device, or that is there twice.
  static Result<std::unique_ptr<Devices>> create(std::vector<DeviceEntry> others);

  // Of memory that the host reads and writes itself.
  Device& host() const { return *host_; }
  // Null where there is none.
  Device* find(int32_t type) const;

  // Of this tensor: by the access that its state has to its memory, if there is one, else by where
  // it lies. Null where there is none.
  Device* find(const TensorSpan& tensor, const WindowAccess* access) const;

  // UNIMPLEMENTED naming the tensor, its device and what to do where there is none for it; then
  // nothing can read it, or write it. access: see find.
  Status check_readable(const TensorSpan& tensor, std::string_view name,
                        const WindowAccess* access = nullptr) const;
  // Also INVALID_ARGUMENT for read-only memory.
  Status check_writable(const TensorSpan& tensor, std::string_view name,
                        const WindowAccess* access = nullptr) const;

  // A window of the tensor's memory. UNIMPLEMENTED where no device has it.
  Result<DeviceWindow> place(const TensorSpan& tensor, StridedWindow elements,
                             WindowAccess* access = nullptr) const;
  // Of all of it; failures also those of window_of.
  Result<DeviceWindow> whole_window(const TensorSpan& tensor, WindowAccess* access = nullptr) const;
  // Window of the memory of a piece of a tensor, shaped like the piece's box; failures also those
  // of State::piece_window.
  Result<DeviceWindow> piece_window(const State& state, size_t tensor, size_t piece) const;

 private:
  static constexpr size_t kTypes = 32;

  Devices();

  std::unique_ptr<Device> host_;
  std::unique_ptr<Device> reached_;              // of memory that comes with an access
  std::vector<std::shared_ptr<Device>> others_;  // co-owned with whoever made them
  std::array<Device*, kTypes> by_type_{};
};

}  // namespace shardwright::device
