// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime as the core sees them: failures as statuses, and the device that a
// thread calls for. The runtime is linked into the plugin and needs a driver only when it is used.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace shardwright::cuda {

// OK, or what the runtime says: RESOURCE_EXHAUSTED with detail resource=memory; UNAVAILABLE naming
// the driver and what to do where there is no driver or no device; INTERNAL for everything else. A
// failure that the runtime keeps for the next call is taken from it.
Status status_of(cudaError_t error, std::string_view doing) noexcept;

// OK where `device` is there. UNAVAILABLE naming the driver and what to do where nothing is;
// INVALID_ARGUMENT naming how many there are.
Status check_device(int32_t device);

// Calls of this thread are for `device` until the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t device) noexcept;
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  // Whether the device could be chosen; what else is called would be for another one.
  const Status& status() const { return status_; }

 private:
  int before_ = -1;
  Status status_;
};

}  // namespace shardwright::cuda
