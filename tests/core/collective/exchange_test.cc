// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "tests/support/no_memory.h"

namespace shardwright::collective {
namespace {

constexpr uint32_t kTag = 0x17;
constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;

std::vector<std::byte> text_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// One exchange per rank, each on its own thread.
void on_ranks(int32_t world, const std::function<void(Exchange&)>& body) {
  auto members = make_thread_collectives(world);
  std::vector<std::jthread> threads;
  for (auto& member : members) {
    threads.emplace_back([&body, &member] {
      Exchange exchange(*member, kLongNs);
      body(exchange);
    });
  }
}

TEST(Exchange, GathersBytesOfAnySizeInRankOrder) {
  for (const int32_t world : {1, 2, 5}) {
    on_ranks(world, [world](Exchange& exchange) {
      const auto rank = static_cast<size_t>(exchange.rank());
      const auto all =
          exchange.gather_all(kTag, Status(), text_bytes(std::string(rank * 100, 'a')));
      ASSERT_TRUE(all.ok()) << all.status().to_string();
      ASSERT_EQ(all->size(), static_cast<size_t>(world));
      for (size_t from = 0; from < all->size(); ++from)
        EXPECT_EQ((*all)[from], text_bytes(std::string(from * 100, 'a')));
    });
  }
}

TEST(Exchange, BroadcastsAndScattersFromTheCoordinator) {
  for (const int32_t world : {1, 2, 5}) {
    on_ranks(world, [world](Exchange& exchange) {
      std::vector<std::byte> room;
      const auto told = exchange.broadcast(
          kTag, Status(), exchange.is_coordinator() ? text_bytes("hello") : text_bytes("ignored"),
          &room);
      ASSERT_TRUE(told.ok()) << told.status().to_string();
      EXPECT_EQ(std::vector(told->begin(), told->end()), text_bytes("hello"));
      std::vector<std::vector<std::byte>> parts;
      for (int32_t rank = 0; exchange.is_coordinator() && rank < world; ++rank)
        parts.push_back(text_bytes(std::string(static_cast<size_t>(rank), 'p')));
      const auto mine = exchange.scatter(kTag, Status(), parts);
      ASSERT_TRUE(mine.ok()) << mine.status().to_string();
      EXPECT_EQ(*mine, text_bytes(std::string(static_cast<size_t>(exchange.rank()), 'p')));
    });
  }
}

TEST(Exchange, TheLowestFailingRanksCauseReachesAll) {
  on_ranks(4, [](Exchange& exchange) {
    Status mine;
    if (exchange.rank() == 1)
      mine = resource_exhausted("disk", "no room").with_detail("file", "rank-00001.shw");
    if (exchange.rank() >= 2) mine = unavailable("something else");
    const Status status = exchange.gather_all(kTag, mine, text_bytes("bytes")).status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.detail("rank"), "1");
    EXPECT_EQ(status.detail("file"), "rank-00001.shw");
    EXPECT_EQ(status.to_string(),
              "RESOURCE_EXHAUSTED: rank 1 of 4 failed, 2 other ranks failed too: no room");
    EXPECT_FALSE(exchange.broken());
    // The failure belongs to that step only.
    EXPECT_TRUE(exchange.agree(kTag + 1, Status()).ok());
  });
}

TEST(Exchange, AFailureThatNamesARankKeepsIt) {
  on_ranks(2, [](Exchange& exchange) {
    const Status mine = exchange.is_coordinator()
                            ? invalid_argument("ranks differ").with_detail("rank", "1")
                            : Status();
    std::vector<std::byte> room;
    const Status status = exchange.broadcast(kTag, mine, {}, &room).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.detail("rank"), "1");
  });
}

// What a host puts aside under the key comes out of the call of the rank that put it there.
TEST(Exchange, TheExceptionOfAHostBelongsToItsOwnRank) {
  const auto thrown = [](int32_t rank) {
    return Status(StatusCode::kHostException, "a callback of the host failed")
        .with_detail("host_exception", fmt::format("key-{}", rank));
  };
  on_ranks(3, [&thrown](Exchange& exchange) {
    const Status one = exchange.agree(kTag, exchange.rank() == 1 ? thrown(1) : Status());
    EXPECT_EQ(one.code(), StatusCode::kHostException);
    EXPECT_EQ(one.detail("rank"), "1");
    EXPECT_EQ(one.detail("host_exception"), exchange.rank() == 1 ? "key-1" : "");
    const Status two =
        exchange.agree(kTag + 1, exchange.rank() < 2 ? thrown(exchange.rank()) : Status());
    EXPECT_EQ(two.detail("rank"), "0");
    EXPECT_EQ(two.detail("host_exception"),
              exchange.rank() < 2 ? fmt::format("key-{}", exchange.rank()) : "");
    const Status other = exchange.agree(
        kTag + 2, exchange.rank() == 0 ? not_found("nothing is there") : thrown(exchange.rank()));
    EXPECT_EQ(other.code(), StatusCode::kNotFound);
    EXPECT_EQ(other.detail("host_exception"), "");
  });
}

TEST(Exchange, OneRankKeepsItsFailureAsItIs) {
  on_ranks(1, [](Exchange& exchange) {
    EXPECT_EQ(exchange.agree(kTag, not_found("nothing here")).to_string(),
              "NOT_FOUND: nothing here");
  });
}

// A transport that carries bytes and looks at nothing, so that the headers must do it.
class BlindCollective final : public Collective {
 public:
  explicit BlindCollective(Collective& inner) : inner_(inner) {}
  int32_t rank() const override { return inner_.rank(); }
  int32_t size() const override { return inner_.size(); }
  std::string_view name() const override { return "blind"; }
  Status barrier(const Call&) override { return inner_.barrier(same()); }
  Status broadcast(const Call&, std::span<std::byte> data, int32_t root) override {
    return inner_.broadcast(same(), data, root);
  }
  Status all_gather(const Call&, std::span<const std::byte> in, std::span<std::byte> out) override {
    return inner_.all_gather(same(), in, out);
  }
  Status all_gather_v(const Call&, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    return inner_.all_gather_v(same(), in, out, sizes);
  }
  Status all_reduce_i64(const Call&, std::span<int64_t> values, ReduceOperation op) override {
    return inner_.all_reduce_i64(same(), values, op);
  }
  void abort(const Status& cause) noexcept override { inner_.abort(cause); }

 private:
  static Call same() { return {0, 0, kLongNs}; }
  Collective& inner_;
};

TEST(Exchange, RanksAtDifferentStepsAreAbortedOnAllSides) {
  auto members = make_thread_collectives(2);
  std::vector<std::jthread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member] {
      BlindCollective blind(*member);
      Exchange exchange(blind, kLongNs);
      const uint32_t tag = exchange.rank() == 0 ? kTag : kTag + 1;
      const Status status = exchange.gather_all(tag, Status(), text_bytes("x")).status();
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
      EXPECT_EQ(status.detail("expected"), "number 0 tag 0x17");
      EXPECT_EQ(status.detail("found"), "number 0 tag 0x18");
      EXPECT_EQ(status.detail("sequence"), "0");
      EXPECT_EQ(status.detail("tag"), "24");
      EXPECT_TRUE(exchange.broken());
      EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kAborted);
    });
  }
}

// What this rank said comes back changed, as from a transport whose memory is overwritten: one byte
// of one all_gather.
class GarblingCollective final : public Collective {
 public:
  GarblingCollective(Collective& inner, int gather, size_t position)
      : inner_(inner), gathers_left_(gather), position_(position) {}
  int32_t rank() const override { return inner_.rank(); }
  int32_t size() const override { return inner_.size(); }
  std::string_view name() const override { return "garbling"; }
  Status barrier(const Call& call) override { return inner_.barrier(call); }
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override {
    return inner_.broadcast(call, data, root);
  }
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    Status status = inner_.all_gather(call, in, out);
    const size_t mine = static_cast<size_t>(rank()) * in.size();
    if (gathers_left_-- == 0) out[mine + position_] ^= std::byte{1};
    return status;
  }
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    EXPECT_EQ(sizes[static_cast<size_t>(rank())], in.size());
    return inner_.all_gather_v(call, in, out, sizes);
  }
  Status all_reduce_i64(const Call& call, std::span<int64_t> values, ReduceOperation op) override {
    return inner_.all_reduce_i64(call, values, op);
  }
  void abort(const Status& cause) noexcept override { inner_.abort(cause); }

 private:
  Collective& inner_;
  int gathers_left_;
  size_t position_;
};

TEST(Exchange, GarbageInOnesOwnSlotBreaksItBeforeAnySizeIsUsed) {
  struct Case {
    int gather;  // 0: header and number of bytes; 1: size of a failure
    size_t position;
  };
  for (const auto& [gather, position] :
       {Case{0, 0}, Case{0, 8}, Case{0, 12}, Case{0, 16}, Case{0, 23}, Case{1, 0}, Case{1, 7}}) {
    auto members = make_thread_collectives(2);
    std::jthread other([&] {
      Exchange exchange(*members[0], kLongNs);
      EXPECT_FALSE(exchange.gather_all(kTag, Status(), text_bytes("others")).ok());
    });
    GarblingCollective garbling(*members[1], gather, position);
    Exchange exchange(garbling, kLongNs);
    const Status mine = gather == 0 ? Status() : not_found("nothing");
    const Status status = exchange.gather_all(kTag, mine, text_bytes("mine")).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << position << ' ' << status.to_string();
    EXPECT_TRUE(exchange.broken());
  }
}

// Whatever this rank still can allocate: nobody waits for it, and nobody succeeds alone.
TEST(Exchange, ARankWithoutMemoryIsHeard) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  bool missed = true;
  for (int64_t allowed = 0; missed; ++allowed) {
    auto members = make_thread_collectives(2);
    Status theirs;
    std::jthread other([&] {
      Exchange exchange(*members[1], kLongNs);
      theirs = exchange.gather_all(kTag, Status(), text_bytes("others")).status();
      if (theirs.ok()) theirs = exchange.agree(kTag + 1, Status());
    });
    Exchange exchange(*members[0], kLongNs);
    const std::vector<std::byte> bytes = text_bytes("mine");
    test::take_memory(allowed);
    Status mine = exchange.gather_all(kTag, Status(), bytes).status();
    missed = test::give_memory();
    if (mine.ok()) mine = exchange.agree(kTag + 1, Status());
    other.join();
    EXPECT_EQ(mine.code(), theirs.code()) << allowed;
    EXPECT_EQ(mine.ok(), !missed) << allowed;
    if (missed) {
      EXPECT_EQ(mine.code(), StatusCode::kResourceExhausted) << allowed;
    }
  }
}

TEST(Exchange, RoomThatIsThereBeforehandMakesAStepNeedNoMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  on_ranks(3, [](Exchange& exchange) {
    Gathered all;
    std::vector<std::byte> room;
    const std::vector<std::byte> bytes = text_bytes("eight of");
    ASSERT_TRUE(exchange.agree(kTag, Status()).ok());
    all.reserve(3, bytes.size());
    room.reserve(Exchange::kHeaderBytes + bytes.size());
    test::take_memory();
    const Status gathered = exchange.gather(kTag, Status(), bytes, &all);
    const bool told = exchange.broadcast(kTag, Status(), bytes, &room).ok();
    EXPECT_FALSE(test::give_memory());
    EXPECT_TRUE(gathered.ok() && told);
    EXPECT_EQ(all.part(2).size(), bytes.size());
  });
}

TEST(Exchange, AFailureOfTheTransportBreaksItForGood) {
  auto members = make_thread_collectives(2);
  Exchange exchange(*members[0], 20 * 1'000'000);
  EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(exchange.broken());
  EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kDeadlineExceeded);
  Exchange late(*members[1], kLongNs);
  EXPECT_EQ(late.agree(kTag, Status()).code(), StatusCode::kDeadlineExceeded);
}

TEST(Exchange, AbortReachesTheOthers) {
  auto members = make_thread_collectives(2);
  std::jthread other([&] {
    Exchange exchange(*members[1], kLongNs);
    EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kCancelled);
  });
  Exchange exchange(*members[0], kLongNs);
  exchange.abort(cancelled("stop"));
  EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace shardwright::collective
