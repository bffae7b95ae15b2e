// SPDX-License-Identifier: Apache-2.0
//
// MemoryWork: what is done with tensors in the memory of a LaneDevice, in the order of the calls:
// copied, cast, added, multiplied. In memory of the host the caller does it, with the loops of
// core/tensor, and it is done when a call returns. In other memory each call puts it on one lane of
// the device, with the same bits; finish() waits, and until then memory that a call names stays.
// Spans are of the device's memory but where a parameter says host. Failures are those of
// core/tensor and of the device. On the host pure, any thread; else calls of any thread wait for
// each other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/device/lane_device.h"

namespace shardwright::device {

class MemoryWork {
 public:
  virtual ~MemoryWork() = default;
  virtual bool is_host() const = 0;

  // Equal sizes.
  virtual Status copy(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  virtual Status upload(std::span<const std::byte> host, std::span<std::byte> to) = 0;
  virtual Status download(std::span<const std::byte> from, std::span<std::byte> host) = 0;
  virtual Status zero(std::span<std::byte> memory) = 0;
  virtual Status cast(DType from, std::span<const std::byte> source, DType to,
                      std::span<std::byte> target) = 0;
  virtual Status copy_runs(const ElementCopy& copy) = 0;
  // As functions of core/tensor/ordered_add.h.
  virtual Status add_to(DType dtype, std::span<const std::byte> more,
                        std::span<std::byte> target) = 0;
  virtual Status add_in_order(DType dtype, std::span<const std::byte> parts, size_t part_count,
                              std::span<std::byte> target) = 0;
  virtual Status scale(DType dtype, double factor, std::span<std::byte> target) = 0;
  // Elements are rounded to `to` before they are added.
  virtual Status add_cast(DType from, std::span<const std::byte> more, DType to,
                          std::span<std::byte> target) = 0;

  // The caller waits for all that was put on the lane; the first failure since the last call.
  virtual Status finish() = 0;
  // The same, but failures stay for finish(). Before memory goes back to the device.
  virtual void settle() noexcept = 0;
};

Result<std::shared_ptr<MemoryWork>> make_memory_work(std::shared_ptr<LaneDevice> device);

}  // namespace shardwright::device
