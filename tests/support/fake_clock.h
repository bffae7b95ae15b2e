// SPDX-License-Identifier: Apache-2.0
//
// FakeClock: time that a test moves by hand. Both clocks advance together. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/concurrency/cancellation.h"

namespace shardwright::test {

class FakeClock final : public Clock {
 public:
  // unix_ns defaults to 2026-01-01 00:00:00 UTC.
  explicit FakeClock(int64_t monotonic_ns = 1'000'000'000,
                     int64_t unix_ns = 1'767'225'600'000'000'000)
      : monotonic_ns_(monotonic_ns), unix_ns_(unix_ns) {}

  int64_t monotonic_ns() const override { return monotonic_ns_.load(); }
  int64_t unix_ns() const override { return unix_ns_.load(); }
  // Whoever waits moves time on at once; on_wait, when set, is told first.
  void wait_ns(int64_t duration_ns) const override {
    if (on_wait) on_wait();
    monotonic_ns_ += duration_ns;
    unix_ns_ += duration_ns;
  }
  void advance_ns(int64_t step_ns) {
    monotonic_ns_ += step_ns;
    unix_ns_ += step_ns;
  }

  std::function<void()> on_wait;

 private:
  mutable std::atomic<int64_t> monotonic_ns_;
  mutable std::atomic<int64_t> unix_ns_;
};

}  // namespace shardwright::test
