// SPDX-License-Identifier: Apache-2.0
//
// What every collective promises of all_to_all_v, its own one or the interface's.
#include <algorithm>
#include <functional>

#include "tests/conformance/collective/collective_suite.h"
#include "tests/support/no_memory.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;
constexpr int64_t kShortNs = 20 * 1'000'000;

// How many bytes one rank has for another.
using SizeOf = std::function<size_t(size_t from, size_t to)>;

size_t uneven(size_t from, size_t to) {
  return (from + to) % 3 == 1 ? 0 : 100 * from + 13 * to + 7;
}
size_t large(size_t from, size_t to) {
  return (size_t{1} << 18) + from + 3 * to;
}
size_t nothing(size_t, size_t) {
  return 0;
}
size_t only_to_the_last(size_t from, size_t to) {
  return to > from ? 11 : 0;
}

// What a rank calls all_to_all_v with, and what should come.
struct Side {
  Side(size_t rank, size_t world, const SizeOf& size_of) {
    for (size_t other = 0; other < world; ++other) {
      in_sizes.push_back(size_of(rank, other));
      out_sizes.push_back(size_of(other, rank));
      append(&in, rank, other, in_sizes.back());
      append(&expected, other, rank, out_sizes.back());
    }
    out.resize(expected.size());
  }
  static void append(std::vector<std::byte>* all, size_t from, size_t to, size_t count) {
    for (size_t i = 0; i < count; ++i)
      all->push_back(static_cast<std::byte>(31 * from + 7 * to + i));
  }
  Status call(Collective& member, uint64_t number, int64_t timeout_ns = kLongNs) {
    return member.all_to_all_v({number, 7, timeout_ns}, in, in_sizes, out, out_sizes);
  }

  std::vector<std::byte> in;
  std::vector<uint64_t> in_sizes;
  std::vector<std::byte> out;
  std::vector<uint64_t> out_sizes;
  std::vector<std::byte> expected;
};

}  // namespace

TEST_P(CollectiveConformance, SendsPartsOfAnySizeFromAllToAll) {
  on_all_ranks([&](size_t rank, Collective& member) {
    EXPECT_EQ(member.has_all_to_all_v(), this->member(0).has_all_to_all_v());
    uint64_t number = 1;
    for (const SizeOf& size_of :
         {SizeOf(uneven), SizeOf(nothing), SizeOf(large), SizeOf(only_to_the_last)}) {
      Side side(rank, world(), size_of);
      const Status status = side.call(member, number++);
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(side.out, side.expected) << number;
    }
    EXPECT_TRUE(member.barrier({number, 7, kLongNs}).ok());
  });
}

// On one rank: all hear it, and no byte moves.
TEST_P(CollectiveConformance, RefusesRowsOfSizesThatDoNotFitOnAllRanks) {
  const std::vector<std::function<void(Side&)>> changes{
      [](Side& side) { side.in_sizes.pop_back(); },
      [](Side& side) { side.out_sizes.push_back(0); },
      [](Side& side) { side.in.pop_back(); },
      [](Side& side) { side.out.emplace_back(); },
      [](Side& side) { side.in_sizes[0] = UINT64_MAX; },
      [](Side& side) {
        ++side.in_sizes[0];  // another size than that rank expects
        side.in.emplace_back();
      }};
  for (const auto& change : changes) {
    for (const size_t wrong : {size_t{0}, world() - 1}) {
      members_ = GetParam().make();
      on_all_ranks([&](size_t rank, Collective& member) {
        Side side(rank, world(), [](size_t, size_t) { return size_t{5}; });
        if (rank == wrong) change(side);
        const Status status = side.call(member, 1);
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
        EXPECT_EQ(side.out, std::vector<std::byte>(side.out.size()));
        if (world() == 1) return;
        EXPECT_FALSE(status.detail("rank").empty()) << status.to_string();
      });
    }
  }
}

// Sizes whose sums fit on every rank, but not what the ranks say of one another.
TEST_P(CollectiveConformance, RefusesPairsOfSizesThatDiffer) {
  if (world() == 1) GTEST_SKIP() << "one rank has no other to differ from";
  on_all_ranks([&](size_t rank, Collective& member) {
    Side side(rank, world(), [](size_t, size_t to) { return to + 1; });
    if (rank == 1) std::swap(side.in_sizes[0], side.in_sizes[1]);
    const Status status = side.call(member, 1);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_NE(status.to_string().find("which sends"), std::string::npos) << status.to_string();
    EXPECT_EQ(side.out, std::vector<std::byte>(side.out.size()));
  });
}

TEST_P(CollectiveConformance, ARankThatCallsSomethingElseThanAllToAllIsOutOfStep) {
  if (world() == 1) GTEST_SKIP() << "one rank is in step with itself";
  on_all_ranks([&](size_t rank, Collective& member) {
    Side side(rank, world(), uneven);
    const Status status =
        rank == world() - 1 ? member.barrier({1, 7, kLongNs}) : side.call(member, 1);
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  });
  members_ = GetParam().make();
  on_all_ranks([&](size_t rank, Collective& member) {
    Side side(rank, world(), uneven);
    const Status status = side.call(member, rank == 0 ? 1 : 2);
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
    EXPECT_EQ(side.out, std::vector<std::byte>(side.out.size()));
  });
}

TEST_P(CollectiveConformance, AllToAllDoesNotWaitForASilentRank) {
  if (world() == 1) GTEST_SKIP() << "one rank waits for nobody";
  on_all_ranks([&](size_t rank, Collective& member) {
    if (rank == 1) return;
    Side side(rank, world(), uneven);
    const Status status = side.call(member, 1, kShortNs);
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  });
}

TEST_P(CollectiveConformance, AllToAllDoesNotWaitForARankThatAbortsOrDies) {
  if (world() == 1) GTEST_SKIP() << "one rank knows no other that dies";
  for (const bool dies : {false, true}) {
    members_ = GetParam().make();
    const size_t gone = world() - 1;
    if (dies) members_[gone].reset();
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < world(); ++rank) {
      if (rank == gone && dies) continue;
      threads.emplace_back([this, rank, gone, dies] {
        if (rank == gone) return member(rank).abort(cancelled("the host said stop"));
        Side side(rank, world(), uneven);
        const Status status = side.call(member(rank), 1);
        EXPECT_EQ(status.code(), dies ? StatusCode::kAborted : StatusCode::kCancelled);
        if (dies) {
          EXPECT_EQ(status.detail("rank"), std::to_string(gone));
        }
      });
    }
  }
}

// Whatever one rank can still allocate: all end with the same code.
TEST_P(CollectiveConformance, ARankWithoutMemoryForAllToAllIsNotWaitedFor) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const size_t starved : {world() - 1, size_t{0}}) {
    bool missed = true;
    for (int64_t allowed = 0; missed; ++allowed) {
      members_ = GetParam().make();
      std::vector<Status> ends(world());
      on_all_ranks([&](size_t rank, Collective& member) {
        Side side(rank, world(), uneven);
        if (rank == starved) test::take_memory(allowed);
        ends[rank] = side.call(member, 1);
        if (rank == starved) missed = test::give_memory();
      });
      for (const Status& end : ends) {
        EXPECT_EQ(end.code(), ends[starved].code()) << allowed << ' ' << end.to_string();
        EXPECT_TRUE(missed || end.ok()) << allowed << ' ' << end.to_string();
      }
    }
  }
}

}  // namespace shardwright::collective
