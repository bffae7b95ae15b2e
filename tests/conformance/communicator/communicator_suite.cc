// SPDX-License-Identifier: Apache-2.0
//
// What every communicator promises of moving elements.
#include "tests/conformance/communicator/communicator_suite.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/tensor/cast.h"

namespace shardwright::collective {

Bytes elements_of(DType dtype, const std::vector<double>& values) {
  Bytes bytes(values.size() * static_cast<size_t>(dtype_bits(dtype)) / 8);
  const auto from = std::as_bytes(std::span(values));
  const Status status = cast_elements(DType::kFloat64, from, dtype, bytes);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return bytes;
}

double value_of(size_t from, size_t to, size_t index) {
  return static_cast<double>(from % 3 + to % 2 + index % 5) - 1;
}

Bytes part_of(DType dtype, size_t from, size_t to, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = value_of(from, to, i);
  return elements_of(dtype, values);
}

size_t part_bytes(const CommunicatorCall& call) {
  return call.count * static_cast<size_t>(dtype_bits(call.dtype)) / 8;
}

Status ended(Result<WorkPtr> work) {
  if (!work.ok()) return work.status();
  const Result<bool> end = (*work)->wait(-1);
  if (!end.ok()) return end.status();
  EXPECT_TRUE(*end);
  const Result<bool> again = (*work)->wait(0);
  EXPECT_TRUE(again.ok() && *again);
  return {};
}

namespace {

// Elements of a part; of one dtype more than implementations move in a step.
std::array<size_t, 4> counts_of(DType dtype) {
  return {0, 1, 257, dtype == DType::kFloat32 ? size_t{70'000} : size_t{1'001}};
}

// Parts of a rank for all, or of all for a rank.
Bytes all_parts(size_t world, const std::function<Bytes(size_t)>& part) {
  Bytes all;
  for (size_t rank = 0; rank < world; ++rank) {
    const Bytes bytes = part(rank);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

TEST_P(CommunicatorConformance, KnowsRankAndSize) {
  for (size_t rank = 0; rank < world(); ++rank) {
    EXPECT_EQ(member(rank).rank(), static_cast<int32_t>(rank));
    EXPECT_EQ(member(rank).size(), GetParam().world_size);
    EXPECT_FALSE(member(rank).name().empty());
    EXPECT_EQ(member(rank).capabilities(), member(0).capabilities());
  }
}

TEST_P(CommunicatorConformance, GathersInRankOrder) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    uint64_t sequence = 1;
    for (const DType dtype : kDTypes) {
      for (const size_t count : counts_of(dtype)) {
        const CommunicatorCall call = call_of(sequence++, count, dtype);
        const Bytes in = part_of(dtype, rank, 0, count);
        Bytes out(in.size() * world());
        const Status status = ended(member.all_gather(call, in, out));
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(out,
                  all_parts(world(), [&](size_t from) { return part_of(dtype, from, 0, count); }));
      }
    }
  });
}

TEST_P(CommunicatorConformance, GathersInPlaceWhereItCan) {
  if (!member(0).can(kInPlaceAllGather)) GTEST_SKIP() << "this communicator does not";
  on_all_ranks([&](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(1, 70'000);
    const Bytes in = part_of(call.dtype, rank, 0, call.count);
    Bytes out(in.size() * world());
    const auto own = std::span(out).subspan(rank * in.size(), in.size());
    std::ranges::copy(in, own.begin());
    ASSERT_TRUE(ended(member.all_gather(call, own, out)).ok());
    EXPECT_EQ(out, all_parts(world(), [&](size_t from) {
                return part_of(call.dtype, from, 0, call.count);
              }));
  });
}

TEST_P(CommunicatorConformance, SendsAPartToEach) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    uint64_t sequence = 1;
    for (const DType dtype : kDTypes) {
      for (const size_t count : counts_of(dtype)) {
        const CommunicatorCall call = call_of(sequence++, count, dtype);
        const Bytes in =
            all_parts(world(), [&](size_t to) { return part_of(dtype, rank, to, count); });
        Bytes out(in.size());
        const Status status = ended(member.all_to_all(call, in, out));
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(out, all_parts(world(),
                                 [&](size_t from) { return part_of(dtype, from, rank, count); }));
      }
    }
  });
}

TEST_P(CommunicatorConformance, BroadcastsTheElementsOfAnyRoot) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    for (size_t root = 0; root < world(); ++root) {
      const CommunicatorCall call = call_of(root, 70'000, DType::kBfloat16);
      Bytes data = part_of(call.dtype, rank, 1, call.count);
      ASSERT_TRUE(ended(member.broadcast(call, data, static_cast<int32_t>(root))).ok());
      EXPECT_EQ(data, part_of(call.dtype, root, 1, call.count));
    }
  });
}

TEST_P(CommunicatorConformance, LetsNobodyPassABarrierAlone) {
  std::atomic<size_t> arrived = 0;
  on_all_ranks([&](size_t, Communicator& member) {
    for (uint64_t i = 0; i < 50; ++i) {
      ++arrived;
      ASSERT_TRUE(ended(member.barrier(call_of(2 * i, 0))).ok());
      EXPECT_GE(arrived.load(), (i + 1) * world());
      ASSERT_TRUE(ended(member.barrier(call_of(2 * i + 1, 0))).ok());
    }
  });
}

// Ranks wait in orders of their own, the last issued first on some.
TEST_P(CommunicatorConformance, KeepsSeveralOperationsUnderWay) {
  constexpr size_t kUnderWay = 4;
  on_all_ranks([&](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(0, 30'000);
    std::vector<Bytes> ins;
    std::vector<Bytes> outs(kUnderWay, Bytes(part_bytes(call) * world()));
    std::vector<WorkPtr> works;
    for (size_t i = 0; i < kUnderWay; ++i) ins.push_back(part_of(call.dtype, rank, i, call.count));
    for (size_t i = 0; i < kUnderWay; ++i) {
      Result<WorkPtr> work = member.all_gather(call_of(i, call.count), ins[i], outs[i]);
      ASSERT_TRUE(work.ok()) << work.status().to_string();
      works.push_back(std::move(*work));
    }
    for (size_t turn = 0; turn < kUnderWay; ++turn) {
      const size_t i = rank % 2 == 0 ? turn : kUnderWay - 1 - turn;
      const Result<bool> end = works[i]->wait(-1);
      ASSERT_TRUE(end.ok() && *end) << end.status().to_string();
      EXPECT_EQ(outs[i], all_parts(world(), [&](size_t from) {
                  return part_of(call.dtype, from, i, call.count);
                }));
    }
  });
}

// Nobody reads what a rank has waited for, however late others are.
TEST_P(CommunicatorConformance, InputsAreTheRanksAgainOnceItHasWaited) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    Bytes in(4096);
    Bytes out(in.size() * world());
    for (uint64_t i = 0; i < 100; ++i) {
      std::ranges::fill(in, static_cast<std::byte>(i + rank));
      ASSERT_TRUE(ended(member.all_gather(call_of(i, 4096, DType::kUint8), in, out)).ok());
      std::ranges::fill(in, std::byte{0xff});
      for (size_t from = 0; from < world(); ++from)
        ASSERT_EQ(out[from * in.size() + 17], static_cast<std::byte>(i + from));
    }
  });
}

// A work of a rank that computes on is moved by those that wait.
TEST_P(CommunicatorConformance, NobodyWaitsForARankThatHasIssued) {
  if (!member(0).can(kIsAsynchronous)) GTEST_SKIP() << "this communicator blocks where it issues";
  const CommunicatorCall call = call_of(1, 3000);
  std::vector<Bytes> ins;
  std::vector<Bytes> outs(world(), Bytes(part_bytes(call) * world()));
  for (size_t rank = 0; rank < world(); ++rank)
    ins.push_back(part_of(call.dtype, rank, 0, call.count));
  std::vector<WorkPtr> works(world());
  for (size_t rank = 0; rank < world(); ++rank) {
    Result<WorkPtr> work = member(rank).all_gather(call, ins[rank], outs[rank]);
    ASSERT_TRUE(work.ok()) << work.status().to_string();
    works[rank] = std::move(*work);
    if (rank + 1 == world()) continue;
    const Result<bool> tested = works[rank]->test();
    EXPECT_TRUE(tested.ok() && !*tested) << tested.status().to_string();
    const Result<bool> waited = works[rank]->wait(1);
    EXPECT_TRUE(waited.ok() && !*waited) << waited.status().to_string();
  }
  for (size_t rank = world(); rank-- > 0;) {
    const Result<bool> end = works[rank]->wait(-1);
    EXPECT_TRUE(end.ok() && *end) << end.status().to_string();
    EXPECT_EQ(outs[rank], outs[0]);
  }
}

TEST_P(CommunicatorConformance, AStreamGoesOnAfterTheOperation) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    const CommunicatorCall call = call_of(1, 100);
    const Bytes in = part_of(call.dtype, rank, 0, call.count);
    Bytes out(in.size() * world());
    Result<WorkPtr> work = member.all_gather(call, in, out);
    ASSERT_TRUE(work.ok());
    ASSERT_TRUE((*work)->order(0).ok());
    EXPECT_EQ(Bytes(out.end() - static_cast<ptrdiff_t>(in.size()), out.end()),
              part_of(call.dtype, world() - 1, 0, call.count));
  });
}

TEST_P(CommunicatorConformance, KeepsMemoryUntilItHasLetGo) {
  std::vector<std::weak_ptr<Bytes>> watched(world());
  on_all_ranks([&](size_t rank, Communicator& member) {
    CommunicatorCall call = call_of(1, 3000);
    auto memory = std::make_shared<Bytes>(part_of(call.dtype, rank, 0, call.count));
    watched[rank] = memory;
    call.memory = memory;
    const std::span<std::byte> data = *memory;
    Result<WorkPtr> work = member.all_reduce(call, data);
    memory = nullptr;  // from here on it is the operation's alone
    call.memory = nullptr;
    EXPECT_TRUE(ended(std::move(work)).ok());
  });
  members_.clear();
  for (const auto& memory : watched) EXPECT_TRUE(memory.expired());
}

}  // namespace shardwright::collective
