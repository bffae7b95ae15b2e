// SPDX-License-Identifier: Apache-2.0
#include "core/base/without_exceptions.h"
#include "core/hsdp/lane_step_internal.h"

namespace shardwright::hsdp::internal {

LaneStep LaneStep::start(device::LaneDevice& device, device::Lane* lane,
                         std::function<Status()> task) {
  LaneStep step;
  step.shared_ = std::make_shared<Shared>();
  step.shared_->task = std::move(task);
  if (lane == nullptr) return step;
  Result<std::unique_ptr<device::Event>> event = device.make_event();
  if (!event.ok()) return step;
  const Status submitted = lane->submit([shared = step.shared_] {
    shared->outcome = without_exceptions("a step on a lane", shared->task);
    shared->task = nullptr;
    return Status();  // the step has its outcome; the lane has nothing to remember
  });
  if (!submitted.ok()) return step;
  if (lane->record(**event).ok()) {
    step.event_ = *std::move(event);
  } else {
    (void)lane->synchronize();  // without an event: waits for the task as the lane does
  }
  return step;
}

LaneStep& LaneStep::operator=(LaneStep&& other) noexcept {
  leave();
  shared_ = std::move(other.shared_);
  event_ = std::move(other.event_);
  return *this;
}

LaneStep::~LaneStep() {
  leave();
}

void LaneStep::leave() noexcept {
  if (event_ != nullptr) (void)event_->wait(-1);  // the task is over then, or the lane is gone
  event_.reset();
}

Result<bool> LaneStep::wait(int64_t timeout_ns) {
  if (shared_ == nullptr) return true;
  if (event_ != nullptr) {
    SHW_ASSIGN_OR_RETURN(const bool passed, event_->wait(timeout_ns));
    if (!passed) return false;
    event_.reset();
  } else if (shared_->task != nullptr) {
    shared_->outcome = without_exceptions("a step", shared_->task);
    shared_->task = nullptr;
  }
  if (!shared_->outcome.ok()) return shared_->outcome;
  return true;
}

bool LaneStep::has_ended() const {
  if (shared_ == nullptr) return true;
  return event_ != nullptr ? event_->has_passed() : shared_->task == nullptr;
}

}  // namespace shardwright::hsdp::internal
