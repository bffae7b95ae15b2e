// SPDX-License-Identifier: Apache-2.0
//
// Progress: a snapshot that any thread may poll while a save or load runs, and whom to tell of it.
// Values never decrease within a stage list. Thread-safe, but for tell, which is called before the
// work begins. Nothing here allocates memory once the work has begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/concurrency/cancellation.h"

namespace shardwright::exec {

// Stages in order; numbers are those of the C surface.
enum class Stage : int32_t {
  kQueued = 0,
  kPlanning = 1,
  kStaging = 2,
  kWriting = 3,
  kCommitting = 4,
  kReading = 5,
  kDone = 6
};

struct ProgressSnapshot {
  int32_t stage = 0;
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;
  uint64_t items_done = 0;
  uint64_t items_total = 0;
  int64_t elapsed_ns = 0;  // since tell; 0 where nobody is told
};

class Progress {
 public:
  using Listener = std::function<void(const ProgressSnapshot&)>;
  static constexpr int64_t kTellAgainNs = 100'000'000;

  std::atomic<int32_t> stage{0};
  std::atomic<uint64_t> bytes_done{0};
  std::atomic<uint64_t> bytes_total{0};
  std::atomic<uint64_t> items_done{0};
  std::atomic<uint64_t> items_total{0};

  // Has `listener` called when work begins and goes on, one call at a time and at most one in
  // kTellAgainNs, on the thread that did the work, never at kDone; and once more by tell_the_end.
  void tell(Listener listener, const Clock& clock, int64_t begin_ns) {
    listener_ = std::move(listener);
    clock_ = &clock;
    begin_ns_ = begin_ns;
  }

  void enter(Stage next) {
    int32_t seen = stage.load();
    while (seen < static_cast<int32_t>(next) &&
           !stage.compare_exchange_weak(seen, static_cast<int32_t>(next))) {
    }
    if (next != Stage::kDone) tell_when_due();
  }

  void advance(uint64_t bytes, uint64_t items) {
    bytes_done += bytes;
    items_done += items;
    tell_when_due();
  }

  // After the last piece of work, when no thread works any more.
  void tell_the_end() {
    if (listener_) listener_(now());
  }

  ProgressSnapshot now() const {
    const int64_t elapsed = clock_ == nullptr ? 0 : clock_->monotonic_ns() - begin_ns_;
    // What is done first: it is never above the total that is read after it.
    const uint64_t bytes = bytes_done.load();
    const uint64_t items = items_done.load();
    return {stage.load(), bytes, bytes_total.load(), items, items_total.load(), elapsed};
  }

 private:
  void tell_when_due() {
    if (!listener_ || clock_->monotonic_ns() < due_ns_.load()) return;
    if (telling_.test_and_set(std::memory_order_acquire)) return;  // another thread does
    if (clock_->monotonic_ns() >= due_ns_.load()) {
      listener_(now());
      due_ns_ = clock_->monotonic_ns() + kTellAgainNs;
    }
    telling_.clear(std::memory_order_release);
  }

  Listener listener_;
  const Clock* clock_ = nullptr;
  int64_t begin_ns_ = 0;
  std::atomic<int64_t> due_ns_{INT64_MIN};
  std::atomic_flag telling_;
};

}  // namespace shardwright::exec
