// SPDX-License-Identifier: Apache-2.0
//
// LaneDevice: a device that work is put on. Lanes on which it runs in order beside the host, events
// that order lanes, memory and copies; what HSDP schedules on (Device copies tensors that lie
// somewhere). host/ has lanes that are threads; plugins bring streams of other devices. A buffer is
// used on a lane after an event of the lane that wrote it, and goes back on the lane that used it
// last. Thread-safe, except that one lane or event is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/device/element_copy.h"

namespace shardwright::device {

// A point of a lane. Recorded again, it stands for the later point.
class Event {
 public:
  virtual ~Event() = default;
  // The host waits; false after timeout_ns (negative = no limit). An event that was never recorded
  // has passed.
  virtual Result<bool> wait(int64_t timeout_ns) const = 0;
  virtual bool has_passed() const = 0;
};

// Destroying one waits for what was submitted; its failures are lost.
class Lane {
 public:
  virtual ~Lane() = default;
  // Runs after all that was submitted before. A failure stays with the lane and is returned by
  // synchronize; what follows it on the lane still runs. RESOURCE_EXHAUSTED where there is no
  // memory to submit it; then it does not run.
  virtual Status submit(std::function<Status()> task) = 0;
  // Events are those of the lane's device.
  virtual Status record(Event& event) = 0;
  // What is submitted from now on begins after the event as it is recorded now.
  virtual Status wait_for(const Event& event) = 0;
  // The host waits for all that was submitted; the first failure since the last call.
  virtual Status synchronize() = 0;
};
using LanePtr = std::unique_ptr<Lane>;
using EventPtr = std::unique_ptr<Event>;

// Where memory lies, by DLPack's numbers; as it is here: memory of the host.
struct DeviceNumber {
  int32_t type = 1;
  int32_t id = 0;
};

enum class CopyKind : int32_t { kHostToDevice = 0, kDeviceToHost = 1, kDeviceToDevice = 2 };

class LaneDevice {
 public:
  virtual ~LaneDevice() = default;
  virtual std::string_view name() const = 0;
  virtual bool is_host() const = 0;
  // Where what allocate gives lies; a type of host memory where is_host() and nowhere else.
  virtual DeviceNumber number() const = 0;
  virtual Result<std::unique_ptr<Lane>> make_lane(int32_t priority) = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;
  // Aligned to 64 bytes at least, content undefined; given back with the same size.
  virtual Result<std::span<std::byte>> allocate(uint64_t bytes) = 0;
  virtual void release(std::span<std::byte> memory) noexcept = 0;
  // Memory of the host that copies of this device reach fastest (host: plain memory).
  virtual Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) = 0;
  virtual void release_pinned(std::span<std::byte> memory) noexcept = 0;
  // On the lane, in its order. Equal sizes.
  virtual Status copy(Lane& lane, CopyKind kind, std::span<const std::byte> source,
                      std::span<std::byte> target) = 0;
  // On the lane, in its order; all of it is memory of this device. Failures are those of
  // check_element_copy, and UNIMPLEMENTED naming the device where it cannot do it.
  virtual Status copy_elements(Lane& lane, const ElementCopy& copy) = 0;
  // Zeros, on the lane, in its order; failures as above.
  virtual Status fill_zero(Lane& lane, std::span<std::byte> target) = 0;
  // The stream on which the host's framework computes; 0 where there is none.
  virtual uint64_t current_stream() const = 0;
};

// The host itself. Lanes are threads; with inline_lanes a task runs where it is submitted, which
// makes an order of events that repeats.
std::shared_ptr<LaneDevice> make_host_lane_device(bool inline_lanes);

// What a device does whose memory is the host's, on any lane of it.
Status submit_element_copy(Lane& lane, const ElementCopy& copy);
Status submit_zeros(Lane& lane, std::span<std::byte> target);

}  // namespace shardwright::device
