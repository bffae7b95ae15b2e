// SPDX-License-Identifier: Apache-2.0
//
// LaneStep: one task that a lane runs beside the caller, or, where there is no lane, that the
// caller runs when it waits. Used by one thread; the task touches nothing that the caller touches
// before wait returned.
#pragma once

#include <functional>
#include <memory>

#include "core/base/result.h"
#include "core/device/lane_device.h"

namespace shardwright::hsdp::internal {

class LaneStep {
 public:
  LaneStep() = default;
  LaneStep(LaneStep&& other) noexcept = default;
  LaneStep& operator=(LaneStep&& other) noexcept;
  // Waits for a task that a lane has taken; one that nobody has begun never runs.
  ~LaneStep();

  // lane may be null. A lane that cannot take the task leaves it to wait.
  static LaneStep start(device::LaneDevice& device, device::Lane* lane,
                        std::function<Status()> task);
  // True when the task has ended well, false after timeout_ns (negative = no limit; a task without
  // a lane runs here to its end). Its failure, the same at each call. An empty step has ended well.
  Result<bool> wait(int64_t timeout_ns);
  // Whether wait would not block; one that is run by wait has not ended before it.
  bool has_ended() const;

 private:
  struct Shared {
    std::function<Status()> task;
    Status outcome;
  };
  void leave() noexcept;

  std::shared_ptr<Shared> shared_;        // co-owned by the lane until it ran the task
  std::unique_ptr<device::Event> event_;  // null: no lane has the task, or it is known to be over
};

}  // namespace shardwright::hsdp::internal
