// SPDX-License-Identifier: Apache-2.0
//
// One rank of a world that is not there behind an emulated link, in time that the test moves.
#include <gtest/gtest.h>

#include "core/collective/communicator.h"
#include "tests/support/fake_clock.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kLatencyNs = 1000;
constexpr double kBytesPerSecond = 1e9;  // a byte takes a nanosecond
constexpr int32_t kWorld = 3;
constexpr size_t kPartBytes = 5000;
constexpr int64_t kTransferNs = 2 * kPartBytes;  // from two other ranks

class DelayedCommunicator : public testing::Test {
 protected:
  // A gather, issued now.
  WorkPtr gather(Communicator& communicator, int64_t timeout_ns = -1) {
    CommunicatorCall call;
    call.unit = 7;
    call.count = kPartBytes;
    call.dtype = DType::kUint8;
    call.timeout_ns = timeout_ns;
    Result<WorkPtr> work = communicator.all_gather(call, in_, out_);
    EXPECT_TRUE(work.ok()) << work.status().to_string();
    return std::move(*work);
  }
  CommunicatorPtr over(CommunicatorPtr inner) {
    return make_delayed_communicator(std::move(inner), kLatencyNs, kBytesPerSecond, clock_);
  }
  // Of the clock, since the test began.
  int64_t now_ns() const { return clock_.monotonic_ns() - begin_ns_; }
  static bool ended(const Result<bool>& end) {
    EXPECT_TRUE(end.ok()) << end.status().to_string();
    return end.ok() && *end;
  }

  test::FakeClock clock_;
  const int64_t begin_ns_ = clock_.monotonic_ns();
  std::vector<std::byte> in_ = std::vector<std::byte>(kPartBytes);
  std::vector<std::byte> out_ = std::vector<std::byte>(kPartBytes * kWorld);
  CommunicatorPtr fake_ = make_fake_communicator(0, kWorld);
};

TEST_F(DelayedCommunicator, EndsAfterItsBytesAndTheLatency) {
  const CommunicatorPtr delayed = over(fake_);
  EXPECT_EQ(delayed->name(), "delayed fake");
  EXPECT_EQ(delayed->size(), kWorld);
  EXPECT_EQ(delayed->capabilities(), fake_->capabilities());
  const WorkPtr work = gather(*delayed);
  EXPECT_FALSE(ended(work->test()));
  clock_.advance_ns(kTransferNs + kLatencyNs - 1);
  EXPECT_FALSE(ended(work->test()));
  EXPECT_FALSE(ended(work->wait(0)));
  clock_.advance_ns(1);
  EXPECT_TRUE(ended(work->test()));
}

TEST_F(DelayedCommunicator, WhoeverWaitsSleepsUntilThen) {
  const CommunicatorPtr delayed = over(fake_);
  const WorkPtr work = gather(*delayed);
  EXPECT_TRUE(ended(work->wait(-1)));
  EXPECT_EQ(now_ns(), kTransferNs + kLatencyNs);
}

TEST_F(DelayedCommunicator, SleepsNoLongerThanItIsTold) {
  const CommunicatorPtr delayed = over(fake_);
  const WorkPtr work = gather(*delayed);
  EXPECT_FALSE(ended(work->wait(100)));
  EXPECT_EQ(now_ns(), 100);
}

TEST_F(DelayedCommunicator, OneLinkCarriesOneOperationAfterTheOther) {
  const CommunicatorPtr delayed = over(fake_);
  const WorkPtr first = gather(*delayed);
  const WorkPtr second = gather(*delayed);
  EXPECT_TRUE(ended(second->wait(-1)));
  EXPECT_EQ(now_ns(), 2 * kTransferNs + kLatencyNs);
  EXPECT_TRUE(ended(first->test()));
  // Time in which the link carries nothing is lost.
  clock_.advance_ns(1'000'000);
  const int64_t begin_ns = now_ns();
  EXPECT_TRUE(ended(gather(*delayed)->wait(-1)));
  EXPECT_EQ(now_ns() - begin_ns, kTransferNs + kLatencyNs);
}

TEST_F(DelayedCommunicator, ComputingMeanwhileHidesTheLink) {
  const CommunicatorPtr delayed = over(fake_);
  const WorkPtr work = gather(*delayed);
  clock_.advance_ns(kTransferNs);
  EXPECT_TRUE(ended(work->wait(-1)));
  EXPECT_EQ(now_ns(), kTransferNs + kLatencyNs);
}

TEST_F(DelayedCommunicator, DoesNotEndBeforeTheInnerOne) {
  std::vector<CommunicatorPtr> threads = make_thread_communicators(kWorld);
  const CommunicatorPtr delayed = over(threads[0]);
  const WorkPtr work = gather(*delayed);
  clock_.advance_ns(1'000'000);
  EXPECT_FALSE(ended(work->test()));
  std::vector<WorkPtr> others;
  std::vector<std::byte> out(out_.size());
  std::vector<std::byte> out_of_last(out_.size());
  CommunicatorCall call;
  call.unit = 7;
  call.count = kPartBytes;
  call.dtype = DType::kUint8;
  others.push_back(threads[1]->all_gather(call, in_, out).value());
  others.push_back(threads[2]->all_gather(call, in_, out_of_last).value());
  EXPECT_TRUE(ended(work->test()));
}

TEST_F(DelayedCommunicator, ALinkThatTakesTooLongEndsTheGroup) {
  const CommunicatorPtr delayed = over(fake_);
  const WorkPtr work = gather(*delayed, kTransferNs);
  const Status status = work->wait(-1).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_NE(status.message().find("unit 7"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(now_ns(), kTransferNs);
  EXPECT_EQ(work->wait(-1).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fake_->barrier({}).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(DelayedCommunicator, AnAbortIsNoticedWhileItSleeps) {
  const CommunicatorPtr slow = make_delayed_communicator(fake_, 0, 1, clock_);  // a byte a second
  const WorkPtr work = gather(*slow);
  int64_t waits = 0;
  clock_.on_wait = [&] {
    if (++waits == 3) slow->abort(cancelled("the host said stop"));
  };
  EXPECT_EQ(work->wait(-1).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(waits, 3);
}

TEST_F(DelayedCommunicator, ALinkWithoutLimitsDelaysNothing) {
  const CommunicatorPtr quick = make_delayed_communicator(fake_, 0, 0, clock_);
  EXPECT_TRUE(ended(gather(*quick)->test()));
  const CommunicatorPtr broken = make_delayed_communicator(fake_, -5, -1, clock_);
  EXPECT_TRUE(ended(gather(*broken)->test()));
}

TEST_F(DelayedCommunicator, ALinkThatHardlyCarriesAnythingIsWaitedForVeryLong) {
  const CommunicatorPtr slow = make_delayed_communicator(fake_, INT64_MAX, 1e-300, clock_);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(ended(gather(*slow)->test()));
}

}  // namespace
}  // namespace shardwright::collective
