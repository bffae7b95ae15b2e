// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/collective/exchange.h"
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
  threads.reserve(members.size());
  for (auto& member : members) {
    threads.emplace_back([&body, &member] {
      Exchange exchange(*member, kLongNs);
      body(exchange);
    });
  }
}

Status gather(Exchange& exchange, uint32_t tag, const Status& mine, std::string_view text) {
  Gathered all;
  return exchange.gather(tag, mine, text_bytes(text), &all);
}

// Of other and of equal sizes, by transports with gather_v and scatter_v and by those without.
TEST(Exchange, GathersBytesOfAnySizeToTheCoordinatorInRankOrder) {
  for (const int32_t world : {1, 2, 5}) {
    for (const size_t step : {size_t{100}, size_t{0}}) {
      on_ranks(world, [world, step](Exchange& exchange) {
        const auto text = [&](size_t rank) { return std::string(7 + rank * step, 'a'); };
        Gathered all;
        const Status status = exchange.gather(
            kTag, Status(), text_bytes(text(static_cast<size_t>(exchange.rank()))), &all);
        ASSERT_TRUE(status.ok()) << status.to_string();
        ASSERT_EQ(all.size(), exchange.is_coordinator() ? static_cast<size_t>(world) : 0);
        for (size_t from = 0; from < all.size(); ++from) {
          const auto part = all.part(from);
          EXPECT_EQ(std::vector(part.begin(), part.end()), text_bytes(text(from)));
        }
      });
    }
  }
}

TEST(Exchange, BroadcastsAndScattersFromTheCoordinator) {
  for (const int32_t world : {1, 2, 5}) {
    for (const size_t step : {size_t{1}, size_t{0}}) {
      on_ranks(world, [world, step](Exchange& exchange) {
        std::vector<std::byte> room;
        const auto told = exchange.broadcast(
            kTag, Status(), exchange.is_coordinator() ? text_bytes("hello") : text_bytes("ignored"),
            &room);
        ASSERT_TRUE(told.ok()) << told.status().to_string();
        EXPECT_EQ(std::vector(told->begin(), told->end()), text_bytes("hello"));
        const auto text = [&](int32_t rank) {
          return std::string(static_cast<size_t>(rank) * step, static_cast<char>('a' + rank));
        };
        std::vector<std::vector<std::byte>> parts;
        for (int32_t rank = 0; exchange.is_coordinator() && rank < world; ++rank)
          parts.push_back(text_bytes(text(rank)));
        const auto mine = exchange.scatter(kTag, Status(), parts);
        ASSERT_TRUE(mine.ok()) << mine.status().to_string();
        EXPECT_EQ(*mine, text_bytes(text(exchange.rank())));
      });
    }
  }
}

TEST(Exchange, WhatComesToOtherRanksDoesNotGrowWithTheRanks) {
  for (const int32_t world : {2, 40}) {
    on_ranks(world, [world](Exchange& exchange) {
      constexpr size_t kPart = 1000;
      const std::string digest_of_all(16, 'd');
      ASSERT_TRUE(exchange.compare(kTag, Status(), {{}, text_bytes(digest_of_all)}).ok());
      const size_t own = kPart + static_cast<size_t>(exchange.rank());
      ASSERT_TRUE(gather(exchange, kTag, Status(), std::string(own, 'x')).ok());
      std::vector<std::vector<std::byte>> parts;
      for (int32_t rank = 0; exchange.is_coordinator() && rank < world; ++rank)
        parts.emplace_back(kPart + static_cast<size_t>(rank));
      ASSERT_TRUE(exchange.scatter(kTag, Status(), parts).ok());
      const Status failed = exchange.rank() == 1 ? not_found("nothing is there") : Status();
      EXPECT_FALSE(exchange.agree(kTag, failed).ok());
      if (exchange.is_coordinator()) {
        EXPECT_GT(exchange.received_bytes(), kPart * static_cast<size_t>(world - 1));
      } else {
        EXPECT_LT(exchange.received_bytes(), kPart + 1500);
        EXPECT_GT(exchange.received_bytes(), kPart);
      }
    });
  }
}

// What a rank of `world` says, of which those in `others` say something else.
std::string word_of(int32_t rank, const std::vector<int32_t>& others) {
  const bool other = std::ranges::find(others, rank) != others.end();
  return other ? fmt::format("rank {} says otherwise", rank) : "alike";
}

TEST(Exchange, ComparesWhatAllSayAndNamesTheLowestRankThatSaysOtherwise) {
  struct Case {
    std::vector<int32_t> others;
    size_t lowest = 0;
  };
  for (const Case& each : {Case{{}, 0}, Case{{3}, 3}, Case{{2, 4}, 2}, Case{{0}, 1}}) {
    on_ranks(5, [&each](Exchange& exchange) {
      const std::vector<std::byte> mine = text_bytes(word_of(exchange.rank(), each.others));
      Said said{{}, mine};
      said.digest[11] = static_cast<std::byte>(mine.size());
      const auto found = exchange.compare(kTag, Status(), said);
      ASSERT_TRUE(found.ok()) << found.status().to_string();
      ASSERT_EQ(found->has_value(), !each.others.empty());
      if (found->has_value()) {
        EXPECT_EQ((*found)->rank, each.lowest);
        EXPECT_EQ((*found)->first, text_bytes(word_of(0, each.others)));
        EXPECT_EQ((*found)->other,
                  text_bytes(word_of(static_cast<int32_t>(each.lowest), each.others)));
      }
      // A failure comes first.
      const Status failed = exchange.rank() == 4 ? not_found("nothing is there") : Status();
      EXPECT_EQ(exchange.compare(kTag + 1, failed, said).status().code(), StatusCode::kNotFound);
      EXPECT_TRUE(exchange.agree(kTag + 2, Status()).ok());
    });
  }
}

TEST(Exchange, TheLowestFailingRanksCauseReachesAll) {
  on_ranks(4, [](Exchange& exchange) {
    Status mine;
    if (exchange.rank() == 1)
      mine = resource_exhausted("disk", "no room").with_detail("file", "rank-00001.shw");
    if (exchange.rank() >= 2) mine = unavailable("something else");
    const Status status = gather(exchange, kTag, mine, "bytes");
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
  threads.reserve(members.size());
  for (auto& member : members) {
    threads.emplace_back([&member] {
      BlindCollective blind(*member);
      Exchange exchange(blind, kLongNs);
      const uint32_t tag = exchange.rank() == 0 ? kTag : kTag + 1;
      const Status status = gather(exchange, tag, Status(), "x");
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
      EXPECT_EQ(status.detail("rank"), "1");
      EXPECT_EQ(status.detail("expected"), "number 0 tag 0x17");
      EXPECT_EQ(status.detail("found"), "number 0 tag 0x18");
      EXPECT_EQ(status.detail("sequence"), "0");
      EXPECT_EQ(status.detail("tag"), "24");
      EXPECT_TRUE(exchange.broken());
      EXPECT_EQ(exchange.agree(kTag, Status()).code(), StatusCode::kAborted);
    });
  }
}

// What all ranks said comes back changed, as from a transport whose memory is overwritten: one byte
// of one reduction.
class GarblingCollective final : public Collective {
 public:
  GarblingCollective(Collective& inner, int reduction, size_t position)
      : inner_(inner), left_(reduction), position_(position) {}
  int32_t rank() const override { return inner_.rank(); }
  int32_t size() const override { return inner_.size(); }
  std::string_view name() const override { return "garbling"; }
  Status barrier(const Call& call) override { return inner_.barrier(call); }
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override {
    return inner_.broadcast(call, data, root);
  }
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    return inner_.all_gather(call, in, out);
  }
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    return inner_.all_gather_v(call, in, out, sizes);
  }
  bool has_gather_v() const override { return true; }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override {
    return inner_.gather_v(call, in, out, sizes, root);
  }
  Status all_reduce_i64(const Call& call, std::span<int64_t> values, ReduceOperation op) override {
    Status status = inner_.all_reduce_i64(call, values, op);
    bytes_ = values.size_bytes();
    if (left_-- == 0 && position_ < bytes_)
      std::as_writable_bytes(values)[position_] ^= std::byte{1};
    return status;
  }
  void abort(const Status& cause) noexcept override { inner_.abort(cause); }
  // Of the last reduction.
  size_t bytes() const { return bytes_; }

 private:
  Collective& inner_;
  int left_;
  size_t position_;
  size_t bytes_ = 0;
};

TEST(Exchange, AnyChangedByteOfAReductionBreaksItBeforeAnySizeIsUsed) {
  for (const int reduction : {0, 1}) {  // how a step begins; how many failed, and how they say it
    size_t bytes = 1;
    for (size_t position = 0; position < bytes; ++position) {
      auto members = make_thread_collectives(2);
      std::jthread other([&] {
        Exchange exchange(*members[0], kLongNs);
        EXPECT_FALSE(gather(exchange, kTag, Status(), "others").ok() &&
                     exchange.agree(kTag, Status()).ok());
      });
      GarblingCollective garbling(*members[1], reduction, position);
      Exchange exchange(garbling, kLongNs);
      const Status mine = reduction == 0 ? Status() : not_found("nothing");
      const Status status = gather(exchange, kTag, mine, "mine");
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << position << ' ' << status.to_string();
      EXPECT_TRUE(exchange.broken());
      bytes = garbling.bytes();
    }
    EXPECT_GT(bytes, 16U);
  }
}

// Every step of an exchange, as one; the first failure.
Status all_steps(Exchange& exchange, const std::vector<std::byte>& bytes,
                 const std::vector<std::vector<std::byte>>& parts, uint32_t tag = kTag) {
  Gathered all;
  std::vector<std::byte> room;
  Said said{{}, bytes};
  SHW_RETURN_IF_ERROR(exchange.compare(tag, Status(), said).status());
  SHW_RETURN_IF_ERROR(exchange.gather(tag, Status(), bytes, &all));
  SHW_RETURN_IF_ERROR(exchange.scatter(tag, Status(), parts).status());
  said.digest[0] = static_cast<std::byte>(exchange.rank() + 1);
  SHW_RETURN_IF_ERROR(exchange.compare(tag, Status(), said).status());
  return exchange.broadcast(tag, Status(), bytes, &room).status();
}

// Whatever a rank still can allocate: nobody waits for it, nobody has an end of its own, and who
// has missed memory does not succeed. Over a transport with gather_v and scatter_v and over one
// without.
TEST(Exchange, ARankWithoutMemoryIsHeard) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const bool blind : {false, true}) {
    for (size_t starved = 0; starved < 2; ++starved) {
      bool missed = true;
      for (int64_t allowed = 0; missed; ++allowed) {
        auto members = make_thread_collectives(2);
        std::array<Status, 2> ends;
        const auto run = [&](size_t rank, int64_t memory) {
          BlindCollective without(*members[rank]);
          Collective& chosen = blind ? without : *members[rank];
          Exchange exchange(chosen, kLongNs);
          const std::vector<std::byte> bytes = text_bytes(rank == 0 ? "some" : "others");
          const std::vector<std::vector<std::byte>> parts{bytes, {}};
          if (memory >= 0) test::take_memory(memory);
          Status end = all_steps(exchange, bytes, parts);
          if (memory >= 0) missed = test::give_memory();
          if (end.ok()) end = exchange.agree(kTag + 1, Status());
          ends[rank] = end;
        };
        {
          std::jthread other([&] { run(1 - starved, -1); });
          run(starved, allowed);
        }
        EXPECT_EQ(ends[0].code(), ends[1].code()) << allowed << ' ' << ends[0].to_string();
        EXPECT_EQ(ends[starved].ok(), !missed) << allowed;
        if (missed) {
          EXPECT_EQ(ends[starved].code(), StatusCode::kResourceExhausted) << allowed;
        }
      }
    }
  }
}

TEST(Exchange, RoomThatIsThereBeforehandMakesAStepNeedNoMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const size_t step : {size_t{0}, size_t{1}}) {
    on_ranks(3, [step](Exchange& exchange) {
      Gathered all;
      std::vector<std::byte> room;
      const std::vector<std::byte> bytes(8 + step * static_cast<size_t>(exchange.rank()));
      all.reserve(exchange.is_coordinator() ? 3 : 1, 10);
      room.reserve(Exchange::kHeaderBytes + bytes.size());
      test::take_memory();
      const bool agreed = exchange.agree(kTag, Status()).ok();
      const bool alike = exchange.compare(kTag, Status(), {}).ok();
      const Status gathered = exchange.gather(kTag, Status(), bytes, &all);
      const bool told = exchange.broadcast(kTag, Status(), bytes, &room).ok();
      EXPECT_FALSE(test::give_memory());
      EXPECT_TRUE(agreed && alike && gathered.ok() && told);
      EXPECT_EQ(all.size(), exchange.is_coordinator() ? 3U : 0U);
    });
  }
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
