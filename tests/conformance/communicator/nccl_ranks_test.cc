// SPDX-License-Identifier: Apache-2.0
//
// Ranks of the communicator over NCCL that meet: over the stand-in, where memory of the device is
// that of the host. What ranks out of step do is not asked, as NCCL does not compare them.
#include <cuda_runtime_api.h>

#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/collective/nccl/nccl_communicator.h"
#include "tests/conformance/communicator/communicator_suite.h"

namespace shardwright::collective {
namespace {

class NcclRanks : public testing::TestWithParam<int32_t> {
 protected:
  // body(rank, communicator) on a thread of its own for each rank, once all have come.
  void on_ranks(const std::function<void(size_t, Communicator&)>& body) {
    const std::string id = make_nccl_id("").value();
    std::latch all_opened(GetParam());
    std::vector<std::jthread> threads;
    for (int32_t rank = 0; rank < GetParam(); ++rank) {
      threads.emplace_back([=, this, &body, &all_opened] {
        const Result<CommunicatorPtr> made = open(id, rank, kLongNs);
        all_opened.arrive_and_wait();
        ASSERT_TRUE(made.ok()) << made.status().to_string();
        body(static_cast<size_t>(rank), **made);
      });
    }
  }
  Result<CommunicatorPtr> open(const std::string& id, int32_t rank, int64_t timeout_ns) const {
    NcclRequest request;
    request.id = read_nccl_id(id).value();
    request.rank = rank;
    request.size = GetParam();
    request.library = "";
    request.timeout_ns = timeout_ns;
    return make_nccl_communicator(request);
  }
  size_t world() const { return static_cast<size_t>(GetParam()); }
  static CommunicatorCall call_of(size_t count, DType dtype = DType::kFloat32) {
    CommunicatorCall call;
    call.unit = kUnit;
    call.count = count;
    call.dtype = dtype;
    call.timeout_ns = kLongNs;
    return call;
  }
};

Bytes joined(size_t count, const std::function<Bytes(size_t)>& part) {
  Bytes all;
  for (size_t i = 0; i < count; ++i) {
    const Bytes more = part(i);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST_P(NcclRanks, MoveWhatTheyHave) {
  on_ranks([this](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(5);
    const Bytes mine = part_of(call.dtype, rank, 0, 5);
    Bytes all(world() * mine.size());
    EXPECT_TRUE(ended(member.all_gather(call, mine, all)).ok());
    EXPECT_EQ(all, joined(world(), [&](size_t from) { return part_of(call.dtype, from, 0, 5); }));
    const Bytes sent = joined(world(), [&](size_t to) { return part_of(call.dtype, rank, to, 5); });
    EXPECT_TRUE(ended(member.all_to_all(call, sent, all)).ok());
    EXPECT_EQ(all,
              joined(world(), [&](size_t from) { return part_of(call.dtype, from, rank, 5); }));
    Bytes cast = mine;
    const auto root = static_cast<int32_t>(world() - 1);
    EXPECT_TRUE(ended(member.broadcast(call, cast, root)).ok());
    EXPECT_EQ(cast, part_of(call.dtype, world() - 1, 0, 5));
    EXPECT_TRUE(ended(member.barrier(call)).ok());
  });
}

TEST_P(NcclRanks, ReduceWhatTheyHave) {
  on_ranks([this](size_t rank, Communicator& member) {
    for (const auto& [reduction, factor] :
         {std::pair(Reduction::kSum, 1.0), std::pair(Reduction::kAverage, 1.0 / GetParam()),
          std::pair(Reduction::kScaledSum, 0.5)}) {
      CommunicatorCall call = call_of(1, DType::kFloat64);
      call.reduction = reduction;
      call.scale = 0.5;
      std::vector<double> in(world());
      for (size_t to = 0; to < world(); ++to) in[to] = static_cast<double>(10 * to + rank);
      double out = 0;
      const auto target = std::as_writable_bytes(std::span(&out, 1));
      EXPECT_TRUE(ended(member.reduce_scatter(call, std::as_bytes(std::span(in)), target)).ok());
      const double ranks = GetParam();
      EXPECT_EQ(out, (static_cast<double>(10 * rank) * ranks + ranks * (ranks - 1) / 2) * factor);
      out = static_cast<double>(rank);
      EXPECT_TRUE(ended(member.all_reduce(call, target)).ok());
      EXPECT_EQ(out, ranks * (ranks - 1) / 2 * factor);
    }
  });
}

// On streams of their own: here all ranks share that of no name, which on a GPU they do not.
TEST_P(NcclRanks, KeepOperationsUnderWay) {
  on_ranks([this](size_t rank, Communicator& member) {
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    CommunicatorCall call = call_of(3);
    call.stream = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
    const Bytes mine = part_of(call.dtype, rank, 0, 3);
    std::vector<Bytes> all(4, Bytes(world() * mine.size()));
    std::vector<WorkPtr> works;
    for (Bytes& each : all) works.push_back(member.all_gather(call, mine, each).value());
    EXPECT_TRUE(works.back()->order(call.stream).ok());
    for (const WorkPtr& each : works) EXPECT_TRUE(each->wait(-1).value());
    for (const Bytes& each : all) EXPECT_EQ(each, all[0]);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

// Who waits learns that another rank has ended, and the communicator stays ended.
TEST_P(NcclRanks, WakeEachOther) {
  on_ranks([this](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(1);
    // All have come; who looks late at how this ended finds the abort already.
    const Status met = ended(member.barrier(call));
    EXPECT_TRUE(met.ok() || met.code() == StatusCode::kUnavailable) << met.to_string();
    if (rank == world() - 1) {
      member.abort(data_loss("the last rank cannot go on"));
    } else {
      EXPECT_EQ(ended(member.barrier(call)).code(), StatusCode::kUnavailable);
    }
    const Status after = ended(member.barrier(call));
    EXPECT_EQ(after.code(), rank == world() - 1 ? StatusCode::kDataLoss : StatusCode::kUnavailable)
        << after.to_string();
  });
}

TEST_P(NcclRanks, DoNotWaitLongerThanACallSays) {
  on_ranks([this](size_t rank, Communicator& member) {
    if (rank == 0 && world() > 1) return;  // leaves without a word
    CommunicatorCall call = call_of(1);
    call.timeout_ns = kShortNs;
    const Status status = ended(member.barrier(call));
    if (world() == 1) {
      EXPECT_TRUE(status.ok()) << status.to_string();
    } else {
      EXPECT_TRUE(status.code() == StatusCode::kDeadlineExceeded ||
                  status.code() == StatusCode::kUnavailable)
          << status.to_string();
      EXPECT_EQ(status.detail("unit"), std::to_string(kUnit));
    }
  });
}

// Its memory is the caller's again.
TEST_P(NcclRanks, GiveUpWhatHasNotEnded) {
  if (world() == 1) GTEST_SKIP() << "nothing to give up";
  on_ranks([this](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(2);
    if (rank != 0) return;
    Bytes all(world() * part_bytes(call));
    {
      const Bytes mine = part_of(call.dtype, rank, 0, 2);
      WorkPtr work = member.all_gather(call, mine, all).value();
      EXPECT_FALSE(work->wait(0).value());
    }
    const Bytes before = all;
    const Status after = ended(member.barrier(call));
    EXPECT_EQ(after.code(), StatusCode::kAborted) << after.to_string();
    EXPECT_EQ(all, before);
  });
}

TEST_P(NcclRanks, DoNotWaitForeverForRanksThatNeverCome) {
  if (world() == 1) GTEST_SKIP() << "one rank waits for nobody";
  const Status late = open(make_nccl_id("").value(), 0, kShortNs).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.to_string();
}

INSTANTIATE_TEST_SUITE_P(StandIn, NcclRanks, testing::Values(1, 2, 3),
                         [](const auto& each) { return std::to_string(each.param); });

}  // namespace
}  // namespace shardwright::collective
