// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/collective/collective_suite.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "tests/support/no_memory.h"

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
  std::vector<uint64_t> sizes(world());
  for (size_t rank = 0; rank < world(); ++rank) sizes[rank] = rank % 2 == 0 ? rank * 100 : 0;
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

namespace {

// Bytes of a rank: none of every third one.
size_t part_bytes(size_t rank) {
  return rank % 3 == 1 ? 0 : 100 * rank + 7;
}

std::vector<uint64_t> part_sizes(size_t world) {
  std::vector<uint64_t> sizes(world);
  for (size_t rank = 0; rank < world; ++rank) sizes[rank] = part_bytes(rank);
  return sizes;
}

// The parts of all ranks, back to back.
std::vector<std::byte> all_parts(size_t world) {
  std::vector<std::byte> all;
  for (size_t rank = 0; rank < world; ++rank) {
    const std::vector<std::byte> part = bytes_of_rank(rank, part_bytes(rank));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// gather_v as one rank calls it; sizes and memory for all are the root's.
Status gather_parts(Collective& member, size_t world, uint64_t number, int32_t root,
                    std::vector<std::byte>* all, std::vector<uint64_t> sizes) {
  const bool is_root = member.rank() == root;
  if (!is_root) sizes.clear();
  const auto rank = static_cast<size_t>(member.rank());
  all->assign(is_root ? all_parts(world).size() : 0, std::byte{0});
  return member.gather_v(call_number(number), bytes_of_rank(rank, part_bytes(rank)), *all, sizes,
                         root);
}

Status scatter_parts(Collective& member, size_t world, uint64_t number, int32_t root,
                     std::vector<std::byte>* own, std::vector<uint64_t> sizes) {
  const bool is_root = member.rank() == root;
  if (!is_root) sizes.clear();
  own->assign(part_bytes(static_cast<size_t>(member.rank())), std::byte{0});
  const std::vector<std::byte> all = is_root ? all_parts(world) : std::vector<std::byte>();
  return member.scatter_v(call_number(number), all, sizes, *own, root);
}

}  // namespace

TEST_P(CollectiveConformance, GathersPartsToAnyRoot) {
  on_all_ranks([&](size_t rank, Collective& member) {
    std::vector<std::byte> all;
    for (size_t root = 0; root < world(); ++root) {
      const Status status = gather_parts(member, world(), root, static_cast<int32_t>(root), &all,
                                         part_sizes(world()));
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(all, rank == root ? all_parts(world()) : std::vector<std::byte>());
    }
  });
}

TEST_P(CollectiveConformance, ScattersPartsFromAnyRoot) {
  on_all_ranks([&](size_t rank, Collective& member) {
    std::vector<std::byte> own;
    for (size_t root = 0; root < world(); ++root) {
      const Status status = scatter_parts(member, world(), root, static_cast<int32_t>(root), &own,
                                          part_sizes(world()));
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(own, bytes_of_rank(rank, part_bytes(rank)));
    }
  });
}

TEST_P(CollectiveConformance, RefusesARootThatIsNoRank) {
  on_all_ranks([&](size_t, Collective& member) {
    std::vector<std::byte> bytes;
    for (const int32_t root : {-1, GetParam().world_size}) {
      EXPECT_EQ(gather_parts(member, world(), 1, root, &bytes, {}).code(),
                StatusCode::kInvalidArgument);
      EXPECT_EQ(scatter_parts(member, world(), 2, root, &bytes, {}).code(),
                StatusCode::kInvalidArgument);
    }
    EXPECT_TRUE(member.barrier(call_number(3)).ok());
  });
}

// The root's sizes are not those of the ranks: all hear it, and no byte moves.
TEST_P(CollectiveConformance, RefusesSizesOfPartsThatDoNotFitOnAllRanks) {
  if (world() == 1) GTEST_SKIP() << "one rank tells nobody";
  for (const bool gathers : {true, false}) {
    for (const bool is_short : {true, false}) {
      std::vector<uint64_t> sizes = part_sizes(world());
      if (is_short) {
        sizes.pop_back();
      } else {
        std::swap(sizes.front(), sizes[1]);  // the same bytes in all
      }
      members_ = GetParam().make();
      on_all_ranks([&](size_t, Collective& member) {
        std::vector<std::byte> bytes;
        const Status status = gathers ? gather_parts(member, world(), 1, 0, &bytes, sizes)
                                      : scatter_parts(member, world(), 1, 0, &bytes, sizes);
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
        EXPECT_FALSE(status.detail("rank").empty()) << status.to_string();
        EXPECT_EQ(bytes, std::vector<std::byte>(bytes.size()));
      });
    }
  }
}

TEST_P(CollectiveConformance, PartsOfARankThatDiesAreNotWaitedFor) {
  if (world() == 1) GTEST_SKIP() << "one rank knows no other that dies";
  for (const bool gathers : {true, false}) {
    for (const size_t dead : {world() - 1, size_t{0}}) {
      members_ = GetParam().make();
      members_[dead].reset();
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < world(); ++rank) {
        if (rank == dead) continue;
        threads.emplace_back([this, rank, dead, gathers] {
          std::vector<std::byte> bytes;
          const std::vector<uint64_t> sizes = part_sizes(world());
          Collective& own = member(rank);
          const Status status = gathers ? gather_parts(own, world(), 1, 0, &bytes, sizes)
                                        : scatter_parts(own, world(), 1, 0, &bytes, sizes);
          EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
          EXPECT_EQ(status.detail("rank"), std::to_string(dead));
        });
      }
    }
  }
}

// Whatever one rank can still allocate: all end with the same code.
TEST_P(CollectiveConformance, ARankWithoutMemoryForPartsIsNotWaitedFor) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const bool gathers : {true, false}) {
    for (const size_t starved : {world() - 1, size_t{0}}) {
      bool missed = true;
      for (int64_t allowed = 0; missed; ++allowed) {
        members_ = GetParam().make();
        std::vector<Status> ends(world());
        on_all_ranks([&](size_t rank, Collective& member) {
          const std::vector<uint64_t> sizes = part_sizes(world());
          const std::vector<std::byte> all = all_parts(world());
          std::vector<std::byte> out(gathers ? all.size() : part_bytes(rank));
          const bool is_root = rank == 0;
          const std::vector<std::byte> mine = bytes_of_rank(rank, part_bytes(rank));
          const auto only_root = [&](auto list) { return is_root ? list : decltype(list)(); };
          const Call call = call_number(1);
          if (rank == starved) test::take_memory(allowed);
          ends[rank] = gathers ? member.gather_v(call, mine, only_root(std::span(out)),
                                                 only_root(std::span(sizes)), 0)
                               : member.scatter_v(call, only_root(std::span(all)),
                                                  only_root(std::span(sizes)), out, 0);
          if (rank == starved) missed = test::give_memory();
        });
        for (const Status& end : ends) {
          EXPECT_EQ(end.code(), ends[starved].code()) << allowed << ' ' << end.to_string();
          // A transport may do without what it wanted for the text of a time that has passed.
          EXPECT_TRUE(missed || end.ok()) << allowed << ' ' << end.to_string();
        }
      }
    }
  }
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
