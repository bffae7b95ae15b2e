// SPDX-License-Identifier: Apache-2.0
#include "core/base/cuda/cuda_calls.h"

#include <string>

#include <fmt/format.h>

#include "core/base/without_exceptions.h"

namespace shardwright::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// What stands between the process and a device.
std::string driver_text() {
  int driver = 0;
  int runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));  // 0 where there is no driver
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  const std::string wanted = version_text(runtime);
  if (driver == 0)
    return fmt::format(
        "no NVIDIA driver was found (libcuda.so.1); install one for CUDA {} or newer, and run "
        "where `nvidia-smi` lists a GPU",
        wanted);
  if (driver / 1000 < runtime / 1000)
    return fmt::format(
        "the NVIDIA driver is for CUDA {} and this plugin was compiled for CUDA {}; install a "
        "newer driver",
        version_text(driver), wanted);
  return fmt::format(
      "the NVIDIA driver for CUDA {} shows no GPU to this process; see whether `nvidia-smi` lists "
      "one and CUDA_VISIBLE_DEVICES leaves it visible",
      version_text(driver));
}

bool is_without_device(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status status_of(cudaError_t error, std::string_view doing) noexcept {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return without_exceptions("describing a failure of CUDA", [&]() -> Status {
    const std::string text = fmt::format("{}: {} ({}, {})", doing, cudaGetErrorString(error),
                                         cudaGetErrorName(error), static_cast<int>(error));
    if (error == cudaErrorMemoryAllocation) return resource_exhausted("memory", text);
    if (is_without_device(error))
      return unavailable(fmt::format("{}: {}", text, driver_text())).with_retryable(false);
    return internal_error(text);
  });
}

Status check_device(int32_t device) {
  int count = 0;
  SHW_RETURN_IF_ERROR(status_of(cudaGetDeviceCount(&count), "no CUDA device can be used"));
  if (count == 0) return status_of(cudaErrorNoDevice, "no CUDA device can be used");
  if (device >= 0 && device < count) return {};
  return invalid_argument(fmt::format("CUDA device {} is not one of the {} that this process sees",
                                      device, count))
      .with_detail("parameter", "device");
}

DeviceScope::DeviceScope(int32_t device) noexcept {
  if (cudaGetDevice(&before_) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    before_ = -1;
  }
  if (before_ == device) return;
  status_ = status_of(cudaSetDevice(device), "choosing a CUDA device");
  if (!status_.ok()) before_ = -1;
}

DeviceScope::~DeviceScope() {
  if (before_ >= 0) static_cast<void>(cudaSetDevice(before_));  // it was this thread's before
}

}  // namespace shardwright::cuda
