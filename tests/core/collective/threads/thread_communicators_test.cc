// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gtest/gtest.h>

#include "core/collective/communicator.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kShortNs = 20 * 1'000'000;

CommunicatorCall call_of(uint64_t sequence, uint64_t unit, int64_t timeout_ns = -1) {
  CommunicatorCall call;
  call.sequence = sequence;
  call.unit = unit;
  call.count = 4;
  call.dtype = DType::kUint8;
  call.timeout_ns = timeout_ns;
  return call;
}

Status waited(const Result<WorkPtr>& work) {
  return work.ok() ? (*work)->wait(-1).status() : work.status();
}

TEST(ThreadCommunicators, SayWhatTheyCan) {
  const CommunicatorPtr member = make_thread_communicators(1)[0];
  EXPECT_EQ(member->capabilities(),
            kInPlaceAllGather | kOrderedSum | kReachesHostMemory | kIsAsynchronous);
  EXPECT_EQ(member->name(), "threads");
  EXPECT_TRUE(make_thread_communicators(0).empty());
  EXPECT_TRUE(make_thread_communicators(-1).empty());
}

TEST(ThreadCommunicators, ATimeOutNamesTheSilentRanks) {
  const std::vector<CommunicatorPtr> members = make_thread_communicators(4);
  const Result<WorkPtr> other = members[2]->barrier(call_of(9, 3));
  const Status status = waited(members[0]->barrier(call_of(9, 3, kShortNs)));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(),
            "barrier number 9 of unit 3: rank 1, 3 did not take part within 20 ms");
  EXPECT_EQ(status.detail("rank"), "1");
  EXPECT_EQ(status.detail("unit"), "3");
  EXPECT_EQ(status.detail("sequence"), "9");
  EXPECT_EQ(waited(other).code(), StatusCode::kDeadlineExceeded);
}

// Ranks that are late by themselves do not fail because of that.
TEST(ThreadCommunicators, WhatAllHaveIssuedIsNeverTooLate) {
  const std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  std::vector<std::byte> data(4, std::byte{1});
  std::vector<std::byte> other(4);
  const Result<WorkPtr> first = members[0]->broadcast(call_of(1, 1, 0), data, 0);
  const Result<WorkPtr> second = members[1]->broadcast(call_of(1, 1, 0), other, 0);
  EXPECT_TRUE(waited(first).ok()) << waited(first).to_string();
  EXPECT_TRUE(waited(second).ok());
  EXPECT_EQ(other, data);
}

TEST(ThreadCommunicators, ARankOutOfStepIsNamedWithWhatBothCalled) {
  const std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  std::vector<std::byte> data(4);
  const Result<WorkPtr> first = members[0]->barrier(call_of(5, 1));
  const Status second = waited(members[1]->broadcast(call_of(5, 1), data, 1));
  for (const Status& status : {second, waited(first)}) {
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(status.detail("rank"), "1");
    EXPECT_EQ(status.detail("expected"), "barrier number 5 of unit 1");
    EXPECT_EQ(status.detail("found"),
              "broadcast number 5 of unit 1, 4 elements of uint8, from rank 1");
    EXPECT_EQ(status.detail("sequence"), "5");
    EXPECT_EQ(status.detail("unit"), "1");
  }
}

// What all have issued is done without the rank that has left.
TEST(ThreadCommunicators, ARankMayLeaveWhenItHasIssuedAndWaited) {
  std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  const Result<WorkPtr> first = members[0]->barrier(call_of(1, 1));
  EXPECT_TRUE(waited(members[1]->barrier(call_of(1, 1))).ok());
  members[1].reset();
  EXPECT_TRUE(waited(first).ok());
  EXPECT_EQ(waited(members[0]->barrier(call_of(2, 1))).detail("rank"), "1");
}

// A work that goes first has been moved for those that still want it.
TEST(ThreadCommunicators, AWorkThatGoesLeavesItsElementsWithTheOthers) {
  const std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  std::vector<std::byte> out(4);
  Result<WorkPtr> second = members[1]->broadcast(call_of(1, 1), out, 0);
  {
    std::vector<std::byte> data(4, std::byte{9});
    const Result<WorkPtr> first = members[0]->broadcast(call_of(1, 1), data, 0);
    ASSERT_TRUE(first.ok());
  }
  EXPECT_TRUE(waited(second).ok());
  EXPECT_EQ(out, std::vector<std::byte>(4, std::byte{9}));
}

TEST(ThreadCommunicators, AnAbortLeavesTheExceptionOfAHostWithItsRank) {
  const std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  members[1]->abort(Status(StatusCode::kHostException, "ValueError: no")
                        .with_detail("host_exception", "key")
                        .with_detail("file", "f"));
  const Status told = waited(members[0]->barrier(call_of(1, 1)));
  EXPECT_EQ(told.code(), StatusCode::kHostException);
  EXPECT_EQ(told.detail("file"), "f");
  EXPECT_EQ(told.detail("host_exception"), "");
}

// While another thread of the rank issues, as lanes do.
TEST(ThreadCommunicators, WorksMayBeWaitedForOnOtherThreads) {
  constexpr uint64_t kOperations = 200;
  const std::vector<CommunicatorPtr> members = make_thread_communicators(2);
  std::vector<std::jthread> ranks;
  for (size_t rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&members, rank] {
      std::vector<std::vector<std::byte>> data(kOperations, std::vector<std::byte>(4));
      std::vector<std::jthread> lanes;
      for (uint64_t i = 0; i < kOperations; ++i) {
        data[i].assign(4, static_cast<std::byte>(rank));
        Result<WorkPtr> work = members[rank]->broadcast(call_of(i, 1), data[i], 1);
        ASSERT_TRUE(work.ok());
        if (lanes.size() == 4) lanes.erase(lanes.begin());
        lanes.emplace_back([work = std::move(*work), &own = data[i]] {
          const Result<bool> end = work->wait(-1);
          EXPECT_TRUE(end.ok() && *end);
          EXPECT_EQ(own[3], std::byte{1});
        });
      }
    });
  }
}

}  // namespace
}  // namespace shardwright::collective
