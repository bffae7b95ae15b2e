// SPDX-License-Identifier: Apache-2.0
//
// Lanes of the host: each is a thread that runs what is submitted in order, or the thread that
// submits. A recorded event is a point of its own, so that a lane that waits for it is not freed by
// what another lane records in the same event later.
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/huge_pages.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/thread_pool.h"
#include "core/device/lane_device.h"

namespace shardwright::device {
namespace {

constexpr std::align_val_t kMemoryAlignment{64};  // a line of the cache, and of vector registers
constexpr uint64_t kMappedBytes = uint64_t{8} << 20;

// Where a lane was when an event was recorded. Thread-safe.
class LanePoint {
 public:
  void pass() SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    has_passed_ = true;
    changed_.notify_all();
  }
  bool has_passed() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return has_passed_;
  }
  bool wait(int64_t timeout_ns) SHW_EXCLUDES(mutex_) {
    CallControl patience;
    if (timeout_ns >= 0) patience.end_within(real_clock().monotonic_ns(), timeout_ns);
    const MutexLock lock(mutex_);
    while (!has_passed_) {
      const int64_t left_ns = patience.remaining_ns();
      if (left_ns == 0) return false;
      if (left_ns < 0) {
        changed_.wait(mutex_);
      } else {
        changed_.wait_for(mutex_, left_ns);
      }
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  bool has_passed_ SHW_GUARDED_BY(mutex_) = false;
};
using PointPtr = std::shared_ptr<LanePoint>;  // co-owned by the event and the lanes with it

class HostEvent final : public Event {
 public:
  Result<bool> wait(int64_t timeout_ns) const override {
    return point_ == nullptr || point_->wait(timeout_ns);
  }
  bool has_passed() const override { return point_ == nullptr || point_->has_passed(); }

  const PointPtr& point() const { return point_; }
  void set_point(PointPtr point) { point_ = std::move(point); }

 private:
  PointPtr point_;  // null: never recorded
};

// The first failure of the tasks since somebody asked. Thread-safe.
class LaneOutcome {
 public:
  void add(Status status) SHW_EXCLUDES(mutex_) {
    if (status.ok()) return;
    const MutexLock lock(mutex_);
    if (first_failure_.ok()) first_failure_ = std::move(status);
  }
  Status take() SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(first_failure_, Status());
  }

 private:
  Mutex mutex_;
  Status first_failure_ SHW_GUARDED_BY(mutex_);
};

class InlineLane final : public Lane {
 public:
  Status submit(std::function<Status()> task) override {
    outcome_.add(without_exceptions("a task of a lane", task));
    return {};
  }
  // All that was submitted has run.
  Status record(Event& event) override {
    static_cast<HostEvent&>(event).set_point(nullptr);
    return {};
  }
  Status wait_for(const Event& event) override { return event.wait(-1).status(); }
  Status synchronize() override { return outcome_.take(); }

 private:
  LaneOutcome outcome_;
};

class ThreadLane final : public Lane {
 public:
  explicit ThreadLane(std::unique_ptr<ThreadPool> worker) : worker_(std::move(worker)) {}

  Status submit(std::function<Status()> task) override {
    return enqueue([this, task = std::move(task)] {
      outcome_.add(without_exceptions("a task of a lane", task));
    });
  }

  Status record(Event& event) override {
    return without_exceptions("recording an event", [&] {
      auto point = std::make_shared<LanePoint>();
      SHW_RETURN_IF_ERROR(enqueue([point] { point->pass(); }));
      static_cast<HostEvent&>(event).set_point(std::move(point));
      return Status();
    });
  }

  Status wait_for(const Event& event) override {
    if (event.has_passed()) return {};
    return enqueue([point = static_cast<const HostEvent&>(event).point()] { point->wait(-1); });
  }

  Status synchronize() override {
    if (worker_->is_current_worker())
      return failed_precondition("a task waits for the lane that it runs on");
    HostEvent reached;
    SHW_RETURN_IF_ERROR(record(reached));
    SHW_RETURN_IF_ERROR(reached.wait(-1).status());
    return outcome_.take();
  }

 private:
  template <typename Task>
  Status enqueue(Task task) {
    return without_exceptions("submitting to a lane", [&] {
      worker_->submit(std::move(task));
      return Status();
    });
  }

  LaneOutcome outcome_;
  std::unique_ptr<ThreadPool> worker_;  // of one thread; goes first, when it has run everything
};

class HostLaneDevice final : public LaneDevice {
 public:
  explicit HostLaneDevice(bool inline_lanes) : inline_lanes_(inline_lanes) {}

  std::string_view name() const override { return "host"; }
  bool is_host() const override { return true; }
  DeviceNumber number() const override { return {}; }

  // One that is an accelerator's hint to its scheduler means nothing here.
  Result<LanePtr> make_lane(int32_t) override {
    return without_exceptions("making a lane", [this]() -> Result<LanePtr> {
      if (inline_lanes_) return LanePtr(std::make_unique<InlineLane>());
      Status status;
      std::unique_ptr<ThreadPool> worker = ThreadPool::create(1, &status);
      SHW_RETURN_IF_ERROR(status);
      return LanePtr(std::make_unique<ThreadLane>(std::move(worker)));
    });
  }

  Result<EventPtr> make_event() override {
    return without_exceptions("making an event", []() -> Result<EventPtr> {
      return EventPtr(std::make_unique<HostEvent>());
    });
  }

  // Large memory comes from the system, so that it goes back at once and may have large pages.
  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    if (bytes == 0) return std::span<std::byte>();
    void* const memory = bytes >= kMappedBytes
                             ? map_memory(bytes)
                             : ::operator new(bytes, kMemoryAlignment, std::nothrow);
    if (memory != nullptr)
      return std::span(static_cast<std::byte*>(memory), static_cast<size_t>(bytes));
    return without_exceptions("allocating on the host", [bytes]() -> Result<std::span<std::byte>> {
      return resource_exhausted("memory", fmt::format("the host has no {} bytes", bytes));
    });
  }

  void release(std::span<std::byte> memory) noexcept override {
    if (memory.empty()) return;
    if (memory.size() >= kMappedBytes) {
      unmap_memory(memory.data(), memory.size());
    } else {
      ::operator delete(memory.data(), kMemoryAlignment);
    }
  }

  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override { return allocate(bytes); }
  void release_pinned(std::span<std::byte> memory) noexcept override { release(memory); }

  Status copy(Lane& lane, CopyKind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    if (source.size() != target.size()) {
      return invalid_argument(
          fmt::format("a copy of {} bytes to {} bytes", source.size(), target.size()));
    }
    return without_exceptions("submitting a copy", [&] {
      return lane.submit([source, target] {
        copy_bytes(source, target);
        return Status();
      });
    });
  }

  Status copy_elements(Lane& lane, const ElementCopy& copy) override {
    return submit_element_copy(lane, copy);
  }
  Status fill_zero(Lane& lane, std::span<std::byte> target) override {
    return submit_zeros(lane, target);
  }

  uint64_t current_stream() const override { return 0; }

 private:
  const bool inline_lanes_;
};

}  // namespace

Status submit_element_copy(Lane& lane, const ElementCopy& copy) {
  SHW_RETURN_IF_ERROR(check_element_copy(copy));
  return without_exceptions("submitting a copy of elements", [&] {
    return lane.submit([copy] { return copy_elements_on_host(copy); });
  });
}

Status submit_zeros(Lane& lane, std::span<std::byte> target) {
  if (target.empty()) return {};
  return without_exceptions("submitting zeros", [&] {
    return lane.submit([target] {
      std::memset(target.data(), 0, target.size());
      return Status();
    });
  });
}

std::shared_ptr<LaneDevice> make_host_lane_device(bool inline_lanes) {
  return std::make_shared<HostLaneDevice>(inline_lanes);
}

}  // namespace shardwright::device
