// SPDX-License-Identifier: Apache-2.0
//
// A device whose memory the host must not touch: its addresses lie in a range in which every access
// faults, and what lies there is kept elsewhere. Code that reads or writes a tensor other than
// through the interface ends the test program. Thread-safe but for what prepares a test.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/devices.h"
#include "core/state/state.h"

namespace shardwright::test {

class GuardedDevice final : public device::Device {
 public:
  static constexpr int32_t kType = 12;  // "extension"
  static constexpr int32_t kId = 3;
  static constexpr uint64_t kStream = 77;

  explicit GuardedDevice(uint64_t size_bytes);
  ~GuardedDevice() override;
  GuardedDevice(const GuardedDevice&) = delete;
  GuardedDevice& operator=(const GuardedDevice&) = delete;

  // An address of the device with as many bytes behind it.
  std::byte* allocate(uint64_t size_bytes);
  // What lies at an address.
  std::byte* behind(std::byte* address) const;
  // The same view of a copy of its memory on the device; strides stay.
  TensorView moved(const TensorSpan& tensor);
  // The entries of a state, their memory copied to the device.
  std::shared_ptr<State> moved(const State& state);

  // The call with this number, counted from now on, fails; -1: none.
  void fail_call(int64_t number);
  int64_t calls() const { return calls_; }

  std::string_view name() const override { return "guarded"; }
  std::span<std::byte> host_bytes(const device::DeviceWindow&) const override { return {}; }
  Status gather(const device::DeviceWindow& from, uint64_t begin, std::span<std::byte> to) override;
  Result<Digest128> gather_and_digest(const device::DeviceWindow& from, uint64_t begin,
                                      std::span<std::byte> to) override;
  Status scatter(std::span<const std::byte> from, const device::DeviceWindow& to,
                 uint64_t begin) override;
  Status copy(const StridedWindow& from, const device::DeviceWindow& to,
              ElementRange range) override;
  bool casts(DType from, DType to) const override;
  Status cast(const StridedWindow& from, DType stored, const device::DeviceWindow& to, DType wanted,
              ElementRange range) override;
  Status fill_zero(const device::DeviceWindow& to) override;

 private:
  // Counts the call and gives the window of what lies behind it.
  Result<device::DeviceWindow> enter(const device::DeviceWindow& window);

  const std::unique_ptr<device::Device> host_;
  const uint64_t size_bytes_;
  std::byte* guarded_ = nullptr;
  std::vector<std::byte> memory_;
  uint64_t used_ = 0;
  std::atomic<int64_t> calls_{0};
  std::atomic<int64_t> failing_{-1};
};

}  // namespace shardwright::test
