// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/collective/exchange.h"
#include "tests/support/no_memory.h"
#include "tests/support/plain_collective.h"

namespace shardwright::collective {
namespace {

constexpr uint32_t kTag = 0x17;
constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;

// A pair of ranks and how many bytes the one has for the other: none for some.
size_t uneven(size_t from, size_t to) {
  return (from + 2 * to) % 3 == 1 ? 0 : 91 - 20 * from + 7 * to;
}
size_t some_for_each(size_t from, size_t to) {
  return 10 + from + 2 * to;
}
size_t equal_sizes(size_t, size_t) {
  return 24;
}
using SizeOf = size_t (*)(size_t from, size_t to);

std::vector<std::byte> bytes_between(size_t from, size_t to, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(17 * from + 5 * to + i);
  return bytes;
}

void append(std::vector<std::byte>* all, const std::vector<std::byte>& part) {
  all->insert(all->end(), part.begin(), part.end());
}

// What one rank sends and expects.
struct Side {
  Side(size_t rank, size_t world, SizeOf size_of) {
    for (size_t other = 0; other < world; ++other) {
      parts.push_back(bytes_between(rank, other, size_of(rank, other)));
      append(&in, parts.back());
      in_sizes.push_back(parts.back().size());
      expected_parts.push_back(bytes_between(other, rank, size_of(other, rank)));
      append(&expected, expected_parts.back());
      out_sizes.push_back(expected_parts.back().size());
    }
    out.resize(expected.size());
  }
  Side(const Exchange& exchange, SizeOf size_of)
      : Side(static_cast<size_t>(exchange.rank()), static_cast<size_t>(exchange.size()), size_of) {}

  Status swap(Exchange& exchange, uint32_t tag, const Status& mine) {
    return exchange.swap(tag, mine, in, in_sizes, out, out_sizes);
  }
  // Whether out holds only zeros, as before.
  bool untouched() const {
    return std::ranges::all_of(out, [](std::byte each) { return each == std::byte{0}; });
  }

  std::vector<std::vector<std::byte>> parts;
  std::vector<std::vector<std::byte>> expected_parts;
  std::vector<std::byte> in;
  std::vector<uint64_t> in_sizes;
  std::vector<std::byte> out;
  std::vector<uint64_t> out_sizes;
  std::vector<std::byte> expected;
};

// One exchange per rank, each on its own thread, over a transport with all_to_all_v or without.
void on_ranks(int32_t world, bool plain, const std::function<void(Exchange&)>& body) {
  auto members = make_thread_collectives(world);
  std::vector<std::jthread> threads;
  threads.reserve(members.size());
  for (auto& member : members) {
    if (plain) member = std::make_unique<test::PlainCollective>(std::move(member));
    threads.emplace_back([&body, &member] {
      Exchange exchange(*member, kLongNs);
      body(exchange);
    });
  }
}

void on_ranks(const std::function<void(Exchange&)>& body) {
  for (const bool plain : {false, true}) {
    for (const int32_t world : {1, 2, 5}) on_ranks(world, plain, body);
  }
}

void expect_parts(const Gathered& all, const std::vector<std::vector<std::byte>>& expected) {
  ASSERT_EQ(all.size(), expected.size());
  for (size_t from = 0; from < all.size(); ++from) {
    const auto part = all.part(from);
    EXPECT_EQ(std::vector(part.begin(), part.end()), expected[from]) << from;
  }
}

TEST(ExchangeAllToAll, SwapsBytesWhoseSizesBothSidesKnow) {
  for (const SizeOf size_of : {uneven, equal_sizes}) {
    on_ranks([size_of](Exchange& exchange) {
      Side side(exchange, size_of);
      const Status status = side.swap(exchange, kTag, Status());
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(side.out, side.expected);
    });
  }
}

TEST(ExchangeAllToAll, TradesPartsWhoseSizesOnlyTheSenderKnows) {
  on_ranks([](Exchange& exchange) {
    Gathered all;
    uint32_t tag = kTag;
    for (const SizeOf size_of : {uneven, equal_sizes, uneven}) {
      const Side side(exchange, size_of);
      const Status status = exchange.trade(tag++, Status(), side.parts, &all);
      ASSERT_TRUE(status.ok()) << status.to_string();
      expect_parts(all, side.expected_parts);
    }
    Gathered nothing;
    const std::vector<std::vector<std::byte>> none(static_cast<size_t>(exchange.size()));
    ASSERT_TRUE(exchange.trade(tag, Status(), none, &nothing).ok());
    expect_parts(nothing, none);
  });
}

TEST(ExchangeAllToAll, OnlyBytesOfOthersAreCounted) {
  on_ranks(5, /*plain=*/false, [](Exchange& exchange) {
    Side side(exchange, uneven);
    const auto own = static_cast<size_t>(exchange.rank());
    const uint64_t before = exchange.received_bytes();
    ASSERT_TRUE(exchange.agree(kTag, Status()).ok());
    const uint64_t opening = exchange.received_bytes() - before;
    ASSERT_TRUE(side.swap(exchange, kTag, Status()).ok());
    EXPECT_EQ(exchange.received_bytes() - before - 2 * opening,
              side.out.size() - side.out_sizes[own]);
    Gathered all;
    ASSERT_TRUE(exchange.trade(kTag, Status(), side.parts, &all).ok());
    const uint64_t in_front = 4 * (8 + Exchange::kHeaderBytes);
    EXPECT_EQ(exchange.received_bytes() - before - 3 * opening,
              2 * (side.out.size() - side.out_sizes[own]) + in_front);
  });
}

TEST(ExchangeAllToAll, ARankThatHasFailedEndsTheStepForAll) {
  on_ranks([](Exchange& exchange) {
    Side side(exchange, uneven);
    const bool fails = exchange.rank() == exchange.size() - 1;
    const Status mine = fails ? not_found("nothing is there") : Status();
    EXPECT_EQ(side.swap(exchange, kTag, mine).code(), StatusCode::kNotFound);
    EXPECT_TRUE(side.untouched());
    Gathered all;
    EXPECT_EQ(exchange.trade(kTag, mine, side.parts, &all).code(), StatusCode::kNotFound);
    EXPECT_EQ(all.size(), 0U);
    EXPECT_EQ(exchange.told_failure(), StatusCode::kNotFound);
    EXPECT_FALSE(exchange.broken());
    // The failure belongs to that step only.
    EXPECT_TRUE(side.swap(exchange, kTag + 1, Status()).ok());
    EXPECT_EQ(side.out, side.expected);
  });
}

// What is wrong on one rank is told before a byte moves.
TEST(ExchangeAllToAll, SizesThatDoNotGoTogetherOnOneRankAreRefusedByAll) {
  on_ranks([](Exchange& exchange) {
    const bool wrong = exchange.rank() == exchange.size() - 1;
    const auto own = static_cast<size_t>(exchange.rank());
    const std::array<std::function<void(Side&)>, 6> changes{
        [](Side& side) { side.in_sizes.pop_back(); },
        [](Side& side) { side.out_sizes.push_back(0); },
        [](Side& side) { side.in.emplace_back(); },
        [](Side& side) { side.out_sizes[0] = UINT64_MAX; },
        [](Side& side) { side.out.pop_back(); },
        [own](Side& side) {
          ++side.in_sizes[own];
          side.in.emplace_back();
        }};
    for (const auto& change : changes) {
      Side side(exchange, equal_sizes);
      if (wrong) change(side);
      const Status status = side.swap(exchange, kTag, Status());
      EXPECT_EQ(status.code(), StatusCode::kInternal) << status.to_string();
      EXPECT_TRUE(side.untouched());
    }
    Side side(exchange, uneven);
    if (wrong) side.parts.emplace_back();
    Gathered all;
    EXPECT_EQ(exchange.trade(kTag, Status(), side.parts, &all).code(), StatusCode::kInternal);
    EXPECT_FALSE(exchange.broken());
  });
}

// Looks at no number and no tag, so that the exchange must.
class BlindCollective final : public test::PlainCollective {
 public:
  using PlainCollective::PlainCollective;
  Status all_reduce_i64(const Call&, std::span<int64_t> values, ReduceOperation op) override {
    return inner().all_reduce_i64({0, 0, kLongNs}, values, op);
  }
};

TEST(ExchangeAllToAll, RanksAtDifferentStepsAreAbortedOnAllSides) {
  auto members = make_thread_collectives(3);
  std::vector<std::jthread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      BlindCollective blind(std::move(member));
      Exchange exchange(blind, kLongNs);
      Side side(exchange, equal_sizes);
      Gathered all;
      const Status status = exchange.rank() == 2
                                ? exchange.trade(kTag + 1, Status(), side.parts, &all)
                                : side.swap(exchange, kTag, Status());
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
      EXPECT_EQ(status.detail("rank"), "2");
      EXPECT_EQ(status.detail("expected"), "number 0 tag 0x17");
      EXPECT_EQ(status.detail("found"), "number 0 tag 0x18");
      EXPECT_TRUE(exchange.broken());
      EXPECT_TRUE(side.untouched());
    });
  }
}

// Does something to what one all_to_all_v brought, or fails in its place.
class ChangingCollective final : public test::PlainCollective {
 public:
  using Change = std::function<Status(std::span<std::byte> out)>;
  ChangingCollective(std::unique_ptr<Collective> inner, int operation, Change change)
      : PlainCollective(std::move(inner)), left_(operation), change_(std::move(change)) {}
  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    Status status = inner().all_to_all_v(call, in, in_sizes, out, out_sizes);
    return status.ok() && left_-- == 0 ? change_(out) : status;
  }

 private:
  int left_;
  Change change_;
};

// The step of rank 1 of two, of whose n-th all_to_all_v something else comes. Rank 0 ends, too.
using StepOf = std::function<Status(Exchange& exchange, Side& side)>;
Status changed_step(const StepOf& step, int operation, const ChangingCollective::Change& change,
                    SizeOf size_of = uneven) {
  auto members = make_thread_collectives(2);
  std::jthread other([&] {
    Exchange exchange(*members[0], kLongNs);
    Side side(exchange, size_of);
    EXPECT_FALSE(step(exchange, side).ok() && exchange.agree(kTag, Status()).ok());
  });
  ChangingCollective changing(std::move(members[1]), operation, change);
  Exchange exchange(changing, kLongNs);
  Side side(exchange, size_of);
  Status status = step(exchange, side);
  EXPECT_EQ(exchange.broken(), !status.ok());
  if (status.ok()) exchange.abort(status);
  return status;
}

Status swap_of(Exchange& exchange, Side& side) {
  return side.swap(exchange, kTag, Status());
}
Status trade_of(Exchange& exchange, Side& side) {
  Gathered all;
  return exchange.trade(kTag, Status(), side.parts, &all);
}

StatusCode code_when_changed(const StepOf& step, int operation, size_t position) {
  return changed_step(step, operation,
                      [position](std::span<std::byte> out) {
                        out[position] ^= std::byte{1};
                        return Status();
                      })
      .code();
}

// Its own part, and of a trade its own size and each header.
TEST(ExchangeAllToAll, WhatComesBackChangedBreaksIt) {
  const Side side(1, 2, uneven);
  ASSERT_GT(side.out_sizes[0], 0U);
  ASSERT_GT(side.out_sizes[1], 0U);
  const auto first = static_cast<size_t>(side.out_sizes[0]);
  for (size_t i = first; i < side.out.size(); ++i)
    EXPECT_EQ(code_when_changed(swap_of, 0, i), StatusCode::kDataLoss) << i;
  for (size_t i = 8; i < 16; ++i)
    EXPECT_EQ(code_when_changed(trade_of, 0, i), StatusCode::kDataLoss) << i;
  const size_t begin = Exchange::kHeaderBytes + first;
  for (size_t i = 0; i < 12; ++i)
    EXPECT_EQ(code_when_changed(trade_of, 1, i), StatusCode::kDataLoss) << i;
  for (size_t i = begin; i < begin + Exchange::kHeaderBytes + side.out_sizes[1]; ++i)
    EXPECT_EQ(code_when_changed(trade_of, 1, i), StatusCode::kDataLoss) << i;
}

// A size is never used that is less or more than all ranks said.
TEST(ExchangeAllToAll, ASizeOfAnotherRankThatNobodySaidBreaksIt) {
  for (const uint64_t size : {uint64_t{0}, uint64_t{15}, Exchange::kHeaderBytes + uint64_t{9},
                              Exchange::kHeaderBytes + uint64_t{14}, UINT64_MAX}) {
    const auto says = [size](std::span<std::byte> out) {
      std::ranges::copy(std::as_bytes(std::span(&size, 1)), out.begin());
      return Status();
    };
    const Status status = changed_step(trade_of, 0, says, some_for_each);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << size << ' ' << status.to_string();
  }
}

TEST(ExchangeAllToAll, AFailureOfTheTransportBreaksItForGood) {
  const auto lost = [](std::span<std::byte>) { return unavailable("the link is down"); };
  EXPECT_EQ(changed_step(swap_of, 0, lost).code(), StatusCode::kUnavailable);
  EXPECT_EQ(changed_step(trade_of, 0, lost).code(), StatusCode::kUnavailable);
  EXPECT_EQ(changed_step(trade_of, 1, lost).code(), StatusCode::kUnavailable);
}

TEST(ExchangeAllToAll, ASilentRankIsNotWaitedForForEver) {
  for (const StepOf& step : {StepOf(swap_of), StepOf(trade_of)}) {
    auto members = make_thread_collectives(2);
    Exchange exchange(*members[0], 20 * 1'000'000);
    Side side(exchange, uneven);
    EXPECT_EQ(step(exchange, side).code(), StatusCode::kDeadlineExceeded);
    Exchange late(*members[1], kLongNs);
    Side other(late, uneven);
    EXPECT_EQ(step(late, other).code(), StatusCode::kDeadlineExceeded);
  }
}

TEST(ExchangeAllToAll, AbortReachesWhoWaits) {
  for (const StepOf& step : {StepOf(swap_of), StepOf(trade_of)}) {
    auto members = make_thread_collectives(2);
    std::jthread other([&] {
      Exchange exchange(*members[1], kLongNs);
      Side side(exchange, uneven);
      EXPECT_EQ(step(exchange, side).code(), StatusCode::kCancelled);
    });
    Exchange exchange(*members[0], kLongNs);
    exchange.abort(cancelled("stop"));
    Side side(exchange, uneven);
    EXPECT_EQ(step(exchange, side).code(), StatusCode::kCancelled);
  }
}

// Whatever a rank still can allocate: nobody waits for it, nobody has an end of its own, and who
// has missed memory does not succeed.
TEST(ExchangeAllToAll, ARankWithoutMemoryIsHeard) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const bool plain : {false, true}) {
    for (size_t starved = 0; starved < 2; ++starved) {
      bool missed = true;
      for (int64_t allowed = 0; missed; ++allowed) {
        auto members = make_thread_collectives(2);
        std::array<Status, 2> ends;
        const auto run = [&](size_t rank, bool starves) {
          if (plain)
            members[rank] = std::make_unique<test::PlainCollective>(std::move(members[rank]));
          Exchange exchange(*members[rank], kLongNs);
          Side side(exchange, uneven);
          if (starves) test::take_memory(allowed);
          Status end = swap_of(exchange, side);
          if (end.ok()) end = trade_of(exchange, side);
          if (starves) missed = test::give_memory();
          if (end.ok()) end = exchange.agree(kTag + 1, Status());
          ends[rank] = end;
        };
        {
          std::jthread other([&] { run(1 - starved, /*starves=*/false); });
          run(starved, /*starves=*/true);
        }
        EXPECT_EQ(ends[0].code(), ends[1].code()) << allowed << ' ' << ends[0].to_string();
        EXPECT_EQ(ends[starved].ok(), !missed) << allowed << ' ' << ends[starved].to_string();
        if (missed) {
          EXPECT_EQ(ends[starved].code(), StatusCode::kResourceExhausted) << allowed;
        }
      }
    }
  }
}

TEST(ExchangeAllToAll, ASwapNeedsNoMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  on_ranks(3, /*plain=*/false, [](Exchange& exchange) {
    Side side(exchange, uneven);
    test::take_memory();
    const bool swapped = side.swap(exchange, kTag, Status()).ok();
    EXPECT_FALSE(test::give_memory());
    EXPECT_TRUE(swapped);
    EXPECT_EQ(side.out, side.expected);
  });
}

}  // namespace
}  // namespace shardwright::collective
