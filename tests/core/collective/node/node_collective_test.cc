// SPDX-License-Identifier: Apache-2.0
//
// What the conformance suite does not ask of ranks that meet through the memory of their machine:
// who meets, payloads of more than a box, and processes that end.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "core/collective/node/node_members_internal.h"
#include "tests/support/plain_collective.h"

namespace shardwright::collective {
namespace {

using Ends = std::vector<std::shared_ptr<Collective>>;

constexpr int64_t kShortNs = 20 * 1'000'000;
constexpr uint64_t kBox = internal::NodeMembers::kBoxBytes;

Ends thread_ends(int32_t world) {
  Ends ends;
  for (auto& member : make_thread_collectives(world)) ends.push_back(std::move(member));
  return ends;
}

void on_all(const Ends& ends, const std::function<void(size_t, Collective&)>& body) {
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < ends.size(); ++rank)
    threads.emplace_back([&, rank] { body(rank, *ends[rank]); });
}

Ends meet(const Ends& inner) {
  Ends made(inner.size());
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < inner.size(); ++rank)
    threads.emplace_back(
        [&, rank] { made[rank] = make_node_collective(inner[rank], {0, 0, -1}).value(); });
  threads.clear();
  return made;
}

Ends node_ends(int32_t world) {
  Ends made = meet(thread_ends(world));
  for (const auto& end : made) EXPECT_EQ(end->name(), "node");
  return made;
}

// A rank whose offer comes to the others as if it had no memory for them.
class WithoutMemory final : public test::PlainCollective {
 public:
  using PlainCollective::PlainCollective;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    const std::vector<std::byte> nothing(in.size());
    return PlainCollective::all_gather(call, nothing, out);
  }
};

TEST(NodeCollective, StaysTheOtherWhereOneRankIsElsewhere) {
  Ends inner;
  for (auto& member : make_thread_collectives(3)) {
    if (member->rank() == 1) {
      inner.push_back(std::make_shared<WithoutMemory>(std::move(member)));
    } else {
      inner.push_back(std::move(member));
    }
  }
  EXPECT_EQ(meet(inner), inner);
}

TEST(NodeCollective, StaysTheOtherWithOneRankOrTooMany) {
  for (const int32_t world : {1, 65}) {
    const Ends inner = thread_ends(world);
    EXPECT_EQ(make_node_collective(inner[0], {}).value(), inner[0]) << "nobody was asked";
  }
}

TEST(NodeCollective, ATimeOutNamesTheSilentRanks) {
  const Ends ends = node_ends(4);
  std::jthread other(
      [&] { EXPECT_EQ(ends[2]->barrier({1, 1, -1}).code(), StatusCode::kDeadlineExceeded); });
  const Status status = ends[0]->barrier({1, 1, kShortNs});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_NE(status.message().find('1'), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.message().find('3'), std::string_view::npos) << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
  EXPECT_EQ(ends[3]->barrier({1, 1, -1}).code(), StatusCode::kDeadlineExceeded);
}

TEST(NodeCollective, AnEndThatGoesIsNamedToThoseThatWait) {
  Ends ends = node_ends(3);
  std::jthread other([end = ends[0]] {
    const Status status = end->barrier({1, 1, -1});
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(status.detail("rank"), "2");
  });
  ends[2].reset();
  EXPECT_EQ(ends[1]->barrier({1, 1, -1}).detail("rank"), "2");
}

TEST(NodeCollective, WhatARankHasSaidBeforeItWentCounts) {
  Ends ends = node_ends(2);
  std::jthread other([end = std::move(ends[1])]() mutable {
    EXPECT_TRUE(end->barrier({1, 1, -1}).ok());
    end.reset();
  });
  EXPECT_TRUE(ends[0]->barrier({1, 1, -1}).ok());
}

TEST(NodeCollective, AnAbortEndsWhatItWasMadeOf) {
  const Ends inner = thread_ends(2);
  const Ends ends = meet(inner);
  ends[1]->abort(permission_denied("no"));
  EXPECT_EQ(ends[0]->barrier({1, 1, -1}).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(inner[0]->barrier({1, 1, -1}).code(), StatusCode::kPermissionDenied);
}

TEST(NodeCollective, RanksOutOfStepEndAndWrongSizesDoNot) {
  const Ends ends = node_ends(3);
  on_all(ends, [](size_t rank, Collective& end) {
    const std::vector<std::byte> mine(rank == 2 ? 5 : 4);
    std::vector<std::byte> all(12);
    const std::vector<uint64_t> sizes{4, 4, 4};
    const Status refused =
        end.gather_v({1, 1, -1}, mine, rank == 0 ? std::span(all) : std::span<std::byte>(),
                     rank == 0 ? std::span(sizes) : std::span<const uint64_t>(), 0);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_TRUE(end.barrier({2, 1, -1}).ok());
    EXPECT_EQ(end.barrier({rank == 1 ? 4U : 3U, 1, -1}).code(), StatusCode::kAborted);
    EXPECT_EQ(end.barrier({5, 1, -1}).code(), StatusCode::kAborted);
  });
}

// Bytes that tell who sent them, to whom, and where they stood.
std::byte byte_of(size_t from, size_t to, size_t at) {
  return static_cast<std::byte>(from * 31 + to * 7 + at * 13 + at / 251);
}

std::vector<std::byte> row_of(size_t from, const std::vector<uint64_t>& sizes) {
  std::vector<std::byte> row;
  for (size_t to = 0; to < sizes.size(); ++to) {
    for (size_t at = 0; at < sizes[to]; ++at) row.push_back(byte_of(from, to, at));
  }
  return row;
}

TEST(NodeCollective, PayloadsOfManyBoxesArriveWhole) {
  std::mt19937_64 random(7);
  for (const int32_t world : {2, 3, 5}) {
    const auto ranks = static_cast<size_t>(world);
    const Ends ends = node_ends(world);
    for (int turn = 0; turn < 6; ++turn) {
      std::vector<std::vector<uint64_t>> sizes(ranks, std::vector<uint64_t>(ranks));
      for (auto& row : sizes) {
        for (uint64_t& size : row) size = random() % 4 == 0 ? 0 : random() % (2 * kBox);
      }
      on_all(ends, [&](size_t rank, Collective& end) {
        const Call call{static_cast<uint64_t>(turn), 3, -1};
        std::vector<uint64_t> incoming(ranks);
        for (size_t from = 0; from < ranks; ++from) incoming[from] = sizes[from][rank];
        const uint64_t total = std::accumulate(incoming.begin(), incoming.end(), uint64_t{0});
        std::vector<std::byte> out(total);
        ASSERT_TRUE(
            end.all_to_all_v(call, row_of(rank, sizes[rank]), sizes[rank], out, incoming).ok());
        size_t position = 0;
        for (size_t from = 0; from < ranks; ++from) {
          for (size_t at = 0; at < incoming[from]; ++at)
            ASSERT_EQ(out[position++], byte_of(from, rank, at)) << from << ' ' << rank << ' ' << at;
        }
        // The first column, gathered by the last rank and scattered again.
        const size_t root = ranks - 1;
        std::vector<uint64_t> column(ranks);
        for (size_t from = 0; from < ranks; ++from) column[from] = sizes[from][0];
        const std::vector<std::byte> mine = row_of(rank, {column[rank]});
        std::vector<std::byte> all(
            rank == root ? std::accumulate(column.begin(), column.end(), uint64_t{0}) : 0);
        const std::span<const uint64_t> known =
            rank == root ? std::span<const uint64_t>(column) : std::span<const uint64_t>();
        ASSERT_TRUE(end.gather_v(call, mine, all, known, world - 1).ok());
        std::vector<std::byte> back(column[rank]);
        ASSERT_TRUE(end.scatter_v(call, all, known, back, world - 1).ok());
        EXPECT_EQ(back, mine);
        std::vector<std::byte> told = rank == 0 ? out : std::vector<std::byte>();
        uint64_t told_size = told.size();
        ASSERT_TRUE(end.broadcast(call, std::as_writable_bytes(std::span(&told_size, 1)), 0).ok());
        told.resize(told_size);
        ASSERT_TRUE(end.broadcast(call, told, 0).ok());
        std::vector<std::byte> every(told_size * ranks);
        ASSERT_TRUE(end.all_gather(call, told, every).ok());
        for (size_t from = 0; from < ranks; ++from)
          EXPECT_TRUE(
              std::ranges::equal(told, std::span(every).subspan(from * told_size, told_size)));
      });
    }
  }
}

TEST(NodeCollective, ReductionsOfManyBoxesAreWholeOrNotMade) {
  const Ends ends = node_ends(3);
  on_all(ends, [](size_t rank, Collective& end) {
    std::vector<int64_t> values(kBox / sizeof(int64_t) * 2 + 5);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * (rank + 1));
    ASSERT_TRUE(end.all_reduce_i64({1, 1, -1}, values, ReduceOperation::kSum).ok());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int64_t>(6 * i));
    values.back() = INT64_MAX;
    const std::vector<int64_t> before = values;
    EXPECT_EQ(end.all_reduce_i64({2, 1, -1}, values, ReduceOperation::kSum).code(),
              StatusCode::kOutOfRange);
    EXPECT_EQ(values, before);
    ASSERT_TRUE(end.all_reduce_i64({3, 1, -1}, values, ReduceOperation::kMax).ok());
    EXPECT_EQ(values, before);
  });
}

TEST(NodeCollective, BoxesAreUsedAgainAndAgain) {
  const Ends ends = node_ends(3);
  on_all(ends, [](size_t rank, Collective& end) {
    for (uint64_t turn = 0; turn < 20'000; ++turn) {
      std::array<int64_t, 2> values{static_cast<int64_t>(turn + rank),
                                    -static_cast<int64_t>(turn + rank)};
      ASSERT_TRUE(end.all_reduce_i64({turn, 1, -1}, values, ReduceOperation::kMax).ok());
      ASSERT_EQ(values[0], static_cast<int64_t>(turn + 2));
      ASSERT_EQ(values[1], -static_cast<int64_t>(turn));
    }
  });
}

// Two processes over a socket, as far as meeting needs it.
class Socket : public Collective {
 public:
  Socket(int32_t rank, int descriptor) : rank_(rank), descriptor_(descriptor) {}
  ~Socket() override { ::close(descriptor_); }
  int32_t rank() const override { return rank_; }
  int32_t size() const override { return 2; }
  int descriptor() const { return descriptor_; }
  std::string_view name() const override { return "socket"; }
  Status barrier(const Call&) override { return unavailable("not here"); }
  Status broadcast(const Call&, std::span<std::byte>, int32_t) override {
    return unavailable("not here");
  }
  Status all_gather(const Call&, std::span<const std::byte> in, std::span<std::byte> out) override {
    const auto own = static_cast<size_t>(rank_) * in.size();
    const auto other = in.size() - own;
    std::ranges::copy(in, out.subspan(own).begin());
    const bool moved =
        ::send(descriptor_, in.data(), in.size(), MSG_NOSIGNAL) == std::ssize(in) &&
        ::recv(descriptor_, out.data() + other, in.size(), MSG_WAITALL) == std::ssize(in);
    return moved ? Status() : unavailable("the other process has gone");
  }
  Status all_gather_v(const Call&, std::span<const std::byte>, std::span<std::byte>,
                      std::span<const uint64_t>) override {
    return unavailable("not here");
  }
  Status all_reduce_i64(const Call&, std::span<int64_t>, ReduceOperation) override {
    return unavailable("not here");
  }
  void abort(const Status&) noexcept override {}

 private:
  int32_t rank_;
  int descriptor_;
};

class TwoProcesses : public testing::Test {
 protected:
  // body runs in a child as rank 1, which ends with what it returns.
  void run_child(const std::function<int(std::shared_ptr<Collective>)>& body) {
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::close(sockets[0]);
      ::_exit(body(std::make_shared<Socket>(1, sockets[1])));
    }
    ::close(sockets[1]);
    inner_ = std::make_shared<Socket>(0, sockets[0]);
  }
  int child_status() {
    int status = -1;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    return status;
  }

  pid_t child_ = -1;
  std::shared_ptr<Collective> inner_;
};

TEST_F(TwoProcesses, MeetInMemory) {
  run_child([](const std::shared_ptr<Collective>& inner) {
    auto end = make_node_collective(inner, {}).value();
    std::array<int64_t, 1> value{5};
    if (end->name() != "node") return 1;
    if (!end->all_reduce_i64({1, 1, -1}, value, ReduceOperation::kSum).ok()) return 2;
    return value[0] == 12 ? 0 : 3;
  });
  const auto end = make_node_collective(inner_, {}).value();
  EXPECT_EQ(end->name(), "node");
  std::array<int64_t, 1> value{7};
  EXPECT_TRUE(end->all_reduce_i64({1, 1, -1}, value, ReduceOperation::kSum).ok());
  EXPECT_EQ(value[0], 12);
  EXPECT_EQ(child_status(), 0);
}

TEST_F(TwoProcesses, AKilledOneIsNamed) {
  run_child([](const std::shared_ptr<Collective>& inner) {
    const auto end = make_node_collective(inner, {}).value();
    (void)end->barrier({1, 1, -1});
    for (;;) ::pause();
    return 0;
  });
  const auto end = make_node_collective(inner_, {}).value();
  ASSERT_TRUE(end->barrier({1, 1, -1}).ok());
  std::jthread killer([child = child_] { ::kill(child, SIGKILL); });
  const Status status = end->barrier({2, 1, -1});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
  EXPECT_EQ(end->barrier({3, 1, -1}).code(), StatusCode::kUnavailable);
  child_status();
}

// Ends as soon as the others know what it offers.
class Doomed final : public Socket {
 public:
  using Socket::Socket;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    (void)Socket::all_gather(call, in, out);
    ::kill(::getpid(), SIGKILL);
    return {};
  }
};

TEST_F(TwoProcesses, OneThatEndsWhileTheyMeetIsNamedOrNotReached) {
  run_child([](const std::shared_ptr<Collective>& inner) {
    const int descriptor = ::dup(static_cast<Socket&>(*inner).descriptor());
    return make_node_collective(std::make_shared<Doomed>(1, descriptor), {}).ok() ? 0 : 1;
  });
  const auto met = make_node_collective(inner_, {});
  // Its memory goes with it: whoever comes after that cannot reach it.
  if (met.ok()) {
    EXPECT_EQ(*met, inner_);
  } else {
    EXPECT_EQ(met.status().code(), StatusCode::kUnavailable) << met.status().to_string();
    EXPECT_EQ(met.status().detail("rank"), "1");
  }
  child_status();
}

// Its offer comes, and then nothing.
class Silent final : public Socket {
 public:
  using Socket::Socket;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    (void)Socket::all_gather(call, in, out);
    for (;;) ::pause();
  }
};

TEST_F(TwoProcesses, OneThatIsSilentWhileTheyMeetIsNamed) {
  run_child([](const std::shared_ptr<Collective>& inner) {
    const int descriptor = ::dup(static_cast<Socket&>(*inner).descriptor());
    return make_node_collective(std::make_shared<Silent>(1, descriptor), {}).ok() ? 0 : 1;
  });
  const Status met = make_node_collective(inner_, {0, 0, kShortNs}).status();
  EXPECT_EQ(met.code(), StatusCode::kDeadlineExceeded) << met.to_string();
  EXPECT_EQ(met.detail("rank"), "1");
  ::kill(child_, SIGKILL);
  child_status();
}

TEST(NodeCollective, HasNoLimitBeyondTheEndOfTime) {
  const Ends ends = node_ends(2);
  on_all(ends, [](size_t, Collective& end) { EXPECT_TRUE(end.barrier({1, 1, INT64_MAX}).ok()); });
}

TEST_F(TwoProcesses, AChildOfARankEndsNothing) {
  run_child([](const std::shared_ptr<Collective>& inner) {
    const auto end = make_node_collective(inner, {}).value();
    return end->barrier({1, 1, -1}).ok() && end->barrier({2, 1, -1}).ok() ? 0 : 1;
  });
  auto end = make_node_collective(inner_, {}).value();
  ASSERT_TRUE(end->barrier({1, 1, -1}).ok());
  const pid_t forked = ::fork();
  if (forked == 0) {
    const bool refused = end->barrier({2, 1, -1}).code() == StatusCode::kFailedPrecondition;
    end->abort(permission_denied("not a rank"));
    end.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(end->barrier({2, 1, -1}).ok());
  EXPECT_EQ(child_status(), 0);
}

}  // namespace
}  // namespace shardwright::collective
