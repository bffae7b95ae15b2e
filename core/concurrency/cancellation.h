// SPDX-License-Identifier: Apache-2.0
//
// CancellationSource, deadlines and the clock seam. Long work checks one CallControl at its step
// boundaries; nothing polls the system clock directly, so tests drive time. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/base/status.h"

namespace shardwright {

// Source of time; the real one is system_clock_seam(), tests give a fake.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t monotonic_ns() const = 0;
  virtual int64_t unix_ns() const = 0;                  // nanoseconds since 1970-01-01 UTC
  virtual void wait_ns(int64_t duration_ns) const = 0;  // sleeps; a fake one moves on instead
};
const Clock& real_clock();

// Set once, from any thread; never unset.
class CancellationFlag {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> cancelled_{false};
};

// What a call has to respect. The flag may be null; deadline_ns is monotonic, negative = none.
struct CallControl {
  const CancellationFlag* cancellation = nullptr;
  const Clock* clock = nullptr;  // null = real_clock()
  int64_t deadline_ns = -1;

  // CANCELLED, DEADLINE_EXCEEDED (naming doing) or success.
  Status check(std::string_view doing) const;
  // Nanoseconds left, -1 = no limit, 0 when passed.
  int64_t remaining_ns() const;
  // The deadline comes no later than timeout_ns, which is positive and may be any, after begin_ns.
  void end_within(int64_t begin_ns, int64_t timeout_ns);
};

}  // namespace shardwright
