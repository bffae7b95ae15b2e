// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/collective/collective_suite.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace shardwright::collective {
namespace {

constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;

Call call_number(uint64_t sequence) {
  return {sequence, 7, kLongNs};
}

std::vector<std::byte> bytes_of_rank(size_t rank, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(rank * 31 + i);
  return bytes;
}

}  // namespace

TEST_P(CollectiveConformance, KnowsRankAndSize) {
  for (size_t rank = 0; rank < world(); ++rank) {
    EXPECT_EQ(member(rank).rank(), static_cast<int32_t>(rank));
    EXPECT_EQ(member(rank).size(), GetParam().world_size);
    EXPECT_FALSE(member(rank).name().empty());
  }
}

TEST_P(CollectiveConformance, LetsNobodyPassABarrierAlone) {
  std::atomic<size_t> arrived = 0;
  on_all_ranks([&](size_t, Collective& member) {
    for (uint64_t i = 0; i < 50; ++i) {
      ++arrived;
      ASSERT_TRUE(member.barrier(call_number(2 * i)).ok());
      EXPECT_GE(arrived.load(), (i + 1) * world());
      ASSERT_TRUE(member.barrier(call_number(2 * i + 1)).ok());
    }
  });
}

TEST_P(CollectiveConformance, BroadcastsTheBytesOfAnyRoot) {
  on_all_ranks([&](size_t rank, Collective& member) {
    for (size_t root = 0; root < world(); ++root) {
      std::vector<std::byte> data = bytes_of_rank(rank, 1000);
      ASSERT_TRUE(member.broadcast(call_number(root), data, static_cast<int32_t>(root)).ok());
      EXPECT_EQ(data, bytes_of_rank(root, 1000));
    }
  });
}

TEST_P(CollectiveConformance, GathersInRankOrder) {
  on_all_ranks([&](size_t rank, Collective& member) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{4097}}) {
      std::vector<std::byte> out(count * world());
      ASSERT_TRUE(member.all_gather(call_number(count), bytes_of_rank(rank, count), out).ok());
      for (size_t from = 0; from < world(); ++from) {
        const auto part = std::span(out).subspan(from * count, count);
        EXPECT_TRUE(std::ranges::equal(part, bytes_of_rank(from, count)));
      }
    }
  });
}

TEST_P(CollectiveConformance, GathersDifferentSizes) {
  std::vector<uint64_t> sizes;
  for (size_t rank = 0; rank < world(); ++rank) sizes.push_back(rank % 2 == 0 ? rank * 100 : 0);
  on_all_ranks([&](size_t rank, Collective& member) {
    size_t total = 0;
    for (const uint64_t size : sizes) total += size;
    std::vector<std::byte> out(total);
    ASSERT_TRUE(
        member.all_gather_v(call_number(1), bytes_of_rank(rank, sizes[rank]), out, sizes).ok());
    auto at = out.begin();
    for (size_t from = 0; from < world(); ++from) {
      const std::vector<std::byte> expected = bytes_of_rank(from, sizes[from]);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), at));
      at += static_cast<ptrdiff_t>(expected.size());
    }
  });
}

TEST_P(CollectiveConformance, ReducesSigned64BitValues) {
  const auto count = static_cast<int64_t>(world());
  on_all_ranks([&](size_t rank, Collective& member) {
    const auto value = static_cast<int64_t>(rank);
    std::vector<int64_t> sum{value, -value, 1};
    ASSERT_TRUE(member.all_reduce_i64(call_number(1), sum, ReduceOperation::kSum).ok());
    const int64_t expected = count * (count - 1) / 2;
    EXPECT_EQ(sum, (std::vector<int64_t>{expected, -expected, count}));
    std::vector<int64_t> least{value, -value};
    ASSERT_TRUE(member.all_reduce_i64(call_number(2), least, ReduceOperation::kMin).ok());
    EXPECT_EQ(least, (std::vector<int64_t>{0, 1 - count}));
    std::vector<int64_t> most{value, -value};
    ASSERT_TRUE(member.all_reduce_i64(call_number(3), most, ReduceOperation::kMax).ok());
    EXPECT_EQ(most, (std::vector<int64_t>{count - 1, 0}));
  });
}

TEST_P(CollectiveConformance, RefusesASumThatDoesNotFit) {
  if (world() == 1) GTEST_SKIP() << "one rank adds nothing";
  on_all_ranks([&](size_t, Collective& member) {
    std::vector<int64_t> values{std::numeric_limits<int64_t>::max()};
    EXPECT_EQ(member.all_reduce_i64(call_number(1), values, ReduceOperation::kSum).code(),
              StatusCode::kOutOfRange);
    // The next operation is sound.
    EXPECT_TRUE(member.barrier(call_number(2)).ok());
  });
}

TEST_P(CollectiveConformance, RefusesBuffersOfTheWrongSizeOnAllRanks) {
  on_all_ranks([&](size_t rank, Collective& member) {
    std::vector<std::byte> out(8 * world() + 1);
    EXPECT_EQ(member.all_gather(call_number(1), bytes_of_rank(rank, 8), out).code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(member.broadcast(call_number(2), out, GetParam().world_size).code(),
              StatusCode::kInvalidArgument);
    EXPECT_TRUE(member.barrier(call_number(3)).ok());
  });
}

TEST_P(CollectiveConformance, AbortEndsTheGroupWithItsCause) {
  on_all_ranks([&](size_t rank, Collective& member) {
    ASSERT_TRUE(member.barrier(call_number(1)).ok());
    if (rank + 1 == world()) member.abort(cancelled("the host said stop"));
    if (rank + 1 < world() || world() == 1) {
      const Status status = member.barrier(call_number(2));
      EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.to_string();
      EXPECT_NE(status.to_string().find("the host said stop"), std::string::npos);
    }
  });
}

}  // namespace shardwright::collective
