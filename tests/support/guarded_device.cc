// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_device.h"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "core/device/host/host_device.h"

namespace shardwright::test {
namespace {

constexpr uint64_t kAlignment = 16;

// Bytes from the first element to behind the last.
uint64_t reach_of(const TensorSpan& tensor) {
  const Dims origin(tensor.shape.size(), 0);
  const Result<StridedWindow> window = window_of(tensor, origin, tensor.shape);
  if (!window.ok() || window_is_empty(*window)) return 0;
  int64_t last = 0;
  for (size_t d = 0; d < window->shape.size(); ++d)
    last += (window->shape[d] - 1) * window->strides[d];
  return (static_cast<uint64_t>(last) + 1) * window->element_bytes;
}

}  // namespace

GuardedDevice::GuardedDevice(uint64_t size_bytes)
    : host_(device::make_host_device()), size_bytes_(size_bytes), memory_(size_bytes) {
  void* const range =
      mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range != MAP_FAILED) guarded_ = static_cast<std::byte*>(range);
}

GuardedDevice::~GuardedDevice() {
  if (guarded_ != nullptr) munmap(guarded_, size_bytes_);
}

std::byte* GuardedDevice::allocate(uint64_t size_bytes) {
  EXPECT_LE(used_ + size_bytes, size_bytes_) << "the test needs a larger device";
  std::byte* const address = guarded_ + used_;
  used_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return address;
}

std::byte* GuardedDevice::behind(std::byte* address) const {
  return const_cast<std::byte*>(memory_.data()) + (address - guarded_);
}

TensorView GuardedDevice::moved(const TensorSpan& tensor) {
  TensorView view = view_of(tensor);
  view.device_type = kType;
  view.device_id = kId;
  view.stream = kStream;
  const uint64_t reach = reach_of(tensor);
  view.data = allocate(reach);
  if (reach > 0) std::memcpy(behind(view.data), tensor.data, reach);
  return view;
}

std::shared_ptr<State> GuardedDevice::moved(const State& state) {
  auto result = std::make_shared<State>();
  TensorAdd batch(result.get(), state.tensors().size(), 0);
  for (size_t i = 0; i < state.tensors().size(); ++i) {
    TensorRef entry = state.tensors()[i];
    const TensorView view = moved(entry.local);
    entry.local = view;
    const Status added = batch.add(entry);
    EXPECT_TRUE(added.ok()) << added.to_string();
  }
  EXPECT_TRUE(batch.commit().ok());
  EXPECT_TRUE(result->add_objects(state.objects()).ok());
  return result;
}

void GuardedDevice::fail_call(int64_t number) {
  calls_ = 0;
  failing_ = number;
}

Result<device::DeviceWindow> GuardedDevice::enter(const device::DeviceWindow& window) {
  if (calls_++ == failing_) return unavailable("the device is gone");
  EXPECT_EQ(window.device, this);
  EXPECT_EQ(window.device_id, kId);
  EXPECT_EQ(window.stream, kStream);
  device::DeviceWindow real{host_.get(), window.elements};
  real.elements.data = behind(window.elements.data);
  return real;
}

Status GuardedDevice::gather(const device::DeviceWindow& from, uint64_t begin,
                             std::span<std::byte> to) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(from));
  return host_->gather(real, begin, to);
}

Result<Digest128> GuardedDevice::gather_and_digest(const device::DeviceWindow& from, uint64_t begin,
                                                   std::span<std::byte> to) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(from));
  return host_->gather_and_digest(real, begin, to);
}

Status GuardedDevice::scatter(std::span<const std::byte> from, const device::DeviceWindow& to,
                              uint64_t begin) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(to));
  return host_->scatter(from, real, begin);
}

Status GuardedDevice::copy(const StridedWindow& from, const device::DeviceWindow& to,
                           ElementRange range) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(to));
  return host_->copy(from, real, range);
}

bool GuardedDevice::casts(DType from, DType to) const {
  return to != DType::kFloat64 && host_->casts(from, to);
}

Status GuardedDevice::cast(const StridedWindow& from, DType stored, const device::DeviceWindow& to,
                           DType wanted, ElementRange range) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(to));
  return host_->cast(from, stored, real, wanted, range);
}

Status GuardedDevice::fill_zero(const device::DeviceWindow& to) {
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow real, enter(to));
  return host_->fill_zero(real);
}

}  // namespace shardwright::test
