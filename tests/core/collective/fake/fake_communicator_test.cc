// SPDX-License-Identifier: Apache-2.0
#include "core/collective/fake/fake_communicator.h"

#include <gtest/gtest.h>

namespace shardwright::collective {
namespace {

CommunicatorCall call_of(uint64_t sequence, uint64_t unit, uint64_t count) {
  CommunicatorCall call;
  call.sequence = sequence;
  call.unit = unit;
  call.count = count;
  call.dtype = DType::kBfloat16;
  return call;
}

TEST(FakeCommunicator, EndsAtOnceAndMovesNothing) {
  const CommunicatorPtr fake = make_fake_communicator(3, 4);
  EXPECT_EQ(fake->rank(), 3);
  EXPECT_EQ(fake->size(), 4);
  const std::vector<std::byte> in(20, std::byte{1});
  std::vector<std::byte> out(80, std::byte{2});
  const Result<WorkPtr> work = fake->all_gather(call_of(1, 1, 10), in, out);
  ASSERT_TRUE(work.ok()) << work.status().to_string();
  const Result<bool> tested = (*work)->test();
  EXPECT_TRUE(tested.ok() && *tested);
  const Result<bool> ended = (*work)->wait(-1);
  EXPECT_TRUE(ended.ok() && *ended);
  EXPECT_EQ(out, std::vector<std::byte>(80, std::byte{2}));
}

TEST(FakeCommunicator, CountsWhatWasIssued) {
  FakeCommunicator fake(0, 4);
  std::vector<std::byte> part(20);
  std::vector<std::byte> all(80);
  ASSERT_TRUE(fake.all_gather(call_of(1, 5, 10), part, all).ok());
  ASSERT_TRUE(fake.all_gather(call_of(2, 6, 10), part, all).ok());
  std::vector<std::byte> others(80);
  ASSERT_TRUE(fake.all_to_all(call_of(3, 6, 10), all, others).ok());
  ASSERT_TRUE(fake.reduce_scatter(call_of(4, 5, 10), all, part).ok());
  ASSERT_TRUE(fake.all_reduce(call_of(5, 5, 40), all).ok());
  ASSERT_TRUE(fake.broadcast(call_of(6, 5, 40), all, 2).ok());
  ASSERT_TRUE(fake.barrier(call_of(7, 5, 0)).ok());
  EXPECT_EQ(fake.count(OperationKind::kAllGather).operations, 2U);
  EXPECT_EQ(fake.count(OperationKind::kAllGather).received_bytes, 2 * 60U);
  EXPECT_EQ(fake.count(OperationKind::kAllToAll).received_bytes, 60U);
  EXPECT_EQ(fake.count(OperationKind::kReduceScatter).received_bytes, 60U);
  EXPECT_EQ(fake.count(OperationKind::kAllReduce).received_bytes, 120U);
  EXPECT_EQ(fake.count(OperationKind::kBroadcast).received_bytes, 80U);
  EXPECT_EQ(fake.count(OperationKind::kBarrier).operations, 1U);

  const std::vector<IssuedOperation> issued = fake.issued();
  ASSERT_EQ(issued.size(), 7U);
  for (size_t i = 0; i < issued.size(); ++i) EXPECT_EQ(issued[i].call.sequence, i + 1);
  EXPECT_EQ(issued[1].call.unit, 6U);
  EXPECT_EQ(issued[5].kind, OperationKind::kBroadcast);
  EXPECT_EQ(issued[5].root, 2);

  fake.forget();
  EXPECT_EQ(fake.count(OperationKind::kAllGather).operations, 0U);
  EXPECT_TRUE(fake.issued().empty());
}

TEST(FakeCommunicator, RefusesWhatOthersWouldRefuse) {
  FakeCommunicator fake(0, 4);
  std::vector<std::byte> all(81);
  const Status status = fake.all_gather(call_of(1, 5, 10), std::span(all).first(20), all).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  EXPECT_EQ(fake.count(OperationKind::kAllGather).operations, 0U);
  EXPECT_EQ(fake.barrier(call_of(2, 5, 0)).status().code(), StatusCode::kInvalidArgument);
}

TEST(FakeCommunicator, AnAbortIsTheEnd) {
  FakeCommunicator fake(0, 4);
  fake.abort(unavailable("gone"));
  fake.abort(cancelled("too late"));
  EXPECT_EQ(fake.barrier(call_of(1, 5, 0)).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(fake.issued().empty());
}

}  // namespace
}  // namespace shardwright::collective
