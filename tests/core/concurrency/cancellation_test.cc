// SPDX-License-Identifier: Apache-2.0
//
// CallControl: cancellation and deadlines on a clock that the test moves.
#include "core/concurrency/cancellation.h"

#include <limits>

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace shardwright {
namespace {

TEST(CallControl, DefaultHasNoLimits) {
  const CallControl control;
  EXPECT_TRUE(control.check("anything").ok());
  EXPECT_EQ(control.remaining_ns(), -1);
}

TEST(CallControl, CancelledFlagIsNamedWithWhatWasDone) {
  CancellationFlag flag;
  CallControl control;
  control.cancellation = &flag;
  EXPECT_TRUE(control.check("writing").ok());
  flag.cancel();
  const Status status = control.check("writing");
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_NE(status.message().find("writing"), std::string_view::npos);
}

TEST(CallControl, DeadlinePassesWhenTheClockReachesIt) {
  test::FakeClock clock(1000);
  CallControl control;
  control.clock = &clock;
  control.deadline_ns = 1500;
  EXPECT_EQ(control.remaining_ns(), 500);
  clock.advance_ns(499);
  EXPECT_TRUE(control.check("reading").ok());
  clock.advance_ns(1);
  EXPECT_EQ(control.remaining_ns(), 0);
  EXPECT_EQ(control.check("reading").code(), StatusCode::kDeadlineExceeded);
  clock.advance_ns(100);
  EXPECT_EQ(control.remaining_ns(), 0);
}

TEST(CallControl, TheEarlierEndHoldsAndNoneLiesBeyondTheClock) {
  CallControl control;
  control.end_within(1000, 500);
  EXPECT_EQ(control.deadline_ns, 1500);
  control.end_within(1000, 600);
  EXPECT_EQ(control.deadline_ns, 1500);
  control.end_within(1000, 400);
  EXPECT_EQ(control.deadline_ns, 1400);
  CallControl longest;
  longest.end_within(1000, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(longest.deadline_ns, std::numeric_limits<int64_t>::max());
}

TEST(CallControl, CancellationComesBeforeTheDeadline) {
  test::FakeClock clock(1000);
  CancellationFlag flag;
  flag.cancel();
  const CallControl control{&flag, &clock, 10};
  EXPECT_EQ(control.check("x").code(), StatusCode::kCancelled);
}

TEST(RealClock, MovesForwardAndKnowsTheDate) {
  const int64_t first = real_clock().monotonic_ns();
  EXPECT_GE(real_clock().monotonic_ns(), first);
  EXPECT_GT(real_clock().unix_ns(), int64_t{1'700'000'000} * 1'000'000'000);
}

}  // namespace
}  // namespace shardwright
