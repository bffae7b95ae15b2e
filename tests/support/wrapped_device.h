// SPDX-License-Identifier: Apache-2.0
//
// A lane device that hands everything on to another one: what tests change a call of.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "core/device/lane_device.h"

namespace shardwright::test {

class WrappedDevice : public device::LaneDevice {
 public:
  explicit WrappedDevice(std::shared_ptr<device::LaneDevice> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  bool is_host() const override { return inner_->is_host(); }
  device::DeviceNumber number() const override { return inner_->number(); }
  Result<device::LanePtr> make_lane(int32_t priority) override {
    return inner_->make_lane(priority);
  }
  Result<device::EventPtr> make_event() override { return inner_->make_event(); }
  Result<std::span<std::byte>> allocate(uint64_t bytes) override { return inner_->allocate(bytes); }
  void release(std::span<std::byte> memory) noexcept override { inner_->release(memory); }
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    return inner_->allocate_pinned(bytes);
  }
  void release_pinned(std::span<std::byte> memory) noexcept override {
    inner_->release_pinned(memory);
  }
  Status copy(device::Lane& lane, device::CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    return inner_->copy(lane, kind, source, target);
  }
  Status copy_elements(device::Lane& lane, const device::ElementCopy& copy) override {
    return inner_->copy_elements(lane, copy);
  }
  Status fill_zero(device::Lane& lane, std::span<std::byte> target) override {
    return inner_->fill_zero(lane, target);
  }
  uint64_t current_stream() const override { return inner_->current_stream(); }

 private:
  const std::shared_ptr<device::LaneDevice> inner_;  // co-owned with the test
};

}  // namespace shardwright::test
