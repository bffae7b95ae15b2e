// SPDX-License-Identifier: Apache-2.0
//
// FakeClock: time that a test moves by hand. Both clocks advance together. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

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
  void advance_ns(int64_t step_ns) {
    monotonic_ns_ += step_ns;
    unix_ns_ += step_ns;
  }

 private:
  std::atomic<int64_t> monotonic_ns_;
  std::atomic<int64_t> unix_ns_;
};

}  // namespace shardwright::test
