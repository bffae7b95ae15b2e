// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency/cancellation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include <fmt/format.h>

namespace shardwright {
namespace {

class RealClock final : public Clock {
 public:
  int64_t monotonic_ns() const override {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  int64_t unix_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  void wait_ns(int64_t duration_ns) const override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(duration_ns));
  }
};

}  // namespace

const Clock& real_clock() {
  static const RealClock kClock;
  return kClock;
}

int64_t CallControl::remaining_ns() const {
  if (deadline_ns < 0) return -1;
  const Clock& source = clock != nullptr ? *clock : real_clock();
  return std::max<int64_t>(deadline_ns - source.monotonic_ns(), 0);
}

void CallControl::end_within(int64_t begin_ns, int64_t timeout_ns) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const int64_t end_ns = timeout_ns > kLast - begin_ns ? kLast : begin_ns + timeout_ns;
  if (deadline_ns < 0 || end_ns < deadline_ns) deadline_ns = end_ns;
}

Status CallControl::check(std::string_view doing) const {
  if (cancellation != nullptr && cancellation->cancelled()) {
    return cancelled(fmt::format("cancelled by the host while {}", doing));
  }
  if (remaining_ns() == 0) {
    return deadline_exceeded(fmt::format("the deadline passed while {}", doing));
  }
  return {};
}

}  // namespace shardwright
