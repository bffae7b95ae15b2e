// SPDX-License-Identifier: Apache-2.0
//
// What the collective over c10d promises beyond the interface: how groups are found, kept and
// replaced, and what is left of those that were given up.
#include "core/collective/c10d/c10d_collective.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/gloo_groups.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;
constexpr int64_t kShortNs = 20 * 1'000'000;

Call call_number(uint64_t sequence, int64_t timeout_ns = kLongNs) {
  return {sequence, 7, timeout_ns};
}

using Member = std::unique_ptr<Collective>;

Member opened(const GroupRequest& request) {
  auto made = make_c10d_collective(request);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::move(*made) : nullptr;
}

// Each rank on a thread of its own.
void on_ranks(int32_t size, const std::function<void(int32_t)>& body) {
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < size; ++rank) threads.emplace_back([rank, &body] { body(rank); });
}

GroupRequest kept(const test::GlooGroups& groups, int32_t rank) {
  GroupRequest request = groups.request(rank);
  request.keep = true;
  return request;
}

Status opening_of(const GroupRequest& request) {
  return make_c10d_collective(request).status();
}

TEST(C10dCollective, FindsNoGroupThatIsNotRegistered) {
  GroupRequest request;
  request.name = "nobody's";
  const Status status = opening_of(request);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.to_string();
  EXPECT_NE(status.to_string().find("nobody's"), std::string::npos);
}

TEST(C10dCollective, RefusesGroupsThatItCannotMakeMoreOf) {
  GroupRequest request;
  request.name = test::register_group_without_store();
  EXPECT_EQ(opening_of(request).code(), StatusCode::kFailedPrecondition);
  request.name = test::register_group_without_backend();
  const Status status = opening_of(request);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.to_string();
  EXPECT_NE(status.to_string().find("Gloo"), std::string::npos) << status.to_string();
}

TEST(C10dCollective, NamesTheRankThatDidNotCome) {
  const test::GlooGroups groups(2);
  GroupRequest request = groups.request(0);
  request.limit_ms = 50;
  Status status = opening_of(request);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_NE(status.to_string().find("rank 1 did not begin"), std::string::npos);
  request = groups.request(1);
  request.limit_ms = 50;
  status = opening_of(request);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
}

TEST(C10dCollective, ANameOfADeadlineIsThatOfTheOperationAndItsRank) {
  const test::GlooGroups groups(2);
  auto members = groups.collectives();
  const Status status = members[1]->barrier(call_number(1, kShortNs));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.to_string().find("rank 1: barrier of 2 ranks"), std::string::npos)
      << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
}

// The group with which a call failed tells so once; then it is only said to be over.
TEST(C10dCollective, ACallWhoseGroupWasGivenUpStaysEnded) {
  const test::GlooGroups groups(2);
  auto members = groups.collectives();
  EXPECT_EQ(members[0]->barrier(call_number(1, kShortNs)).code(), StatusCode::kDeadlineExceeded);
  Status told = members[1]->barrier(call_number(1));
  // The first one may meet what rank 0 has left behind.
  if (told.ok()) told = members[1]->barrier(call_number(2));
  EXPECT_EQ(told.code(), StatusCode::kDeadlineExceeded) << told.to_string();
  for (auto& member : members) {
    const Status over = member->barrier(call_number(2));
    EXPECT_EQ(over.code(), StatusCode::kUnavailable) << over.to_string();
    EXPECT_TRUE(over.retryable());
    EXPECT_NE(over.to_string().find("anew"), std::string::npos) << over.to_string();
  }
}

TEST(C10dCollective, KeepsTheSideGroupForTheNextCall) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    for (uint64_t call = 0; call < 3; ++call) {
      const Member member = opened(kept(groups, rank));
      EXPECT_TRUE(member->barrier(call_number(1)).ok());
    }
  });
  // A rank alone can begin the next call: nothing had to be made.
  GroupRequest request = kept(groups, 1);
  request.limit_ms = 1;
  EXPECT_TRUE(opening_of(request).ok());
}

TEST(C10dCollective, ReplacesAGroupThatWasGivenUpAndLeavesNothingInTheStore) {
  const test::GlooGroups groups(3);
  on_ranks(3, [&](int32_t rank) {
    for (int round = 0; round < 2; ++round) {
      const Member member = opened(kept(groups, rank));
      if (rank == round) member->abort(cancelled("stop"));
      const Status status = member->barrier(call_number(1));
      EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.to_string();
    }
    const Member member = opened(kept(groups, rank));
    EXPECT_TRUE(member->barrier(call_number(1)).ok());
  });
  for (const std::string& key : groups.keys_left()) {
    EXPECT_EQ(key.find("/end"), std::string::npos) << key;
    EXPECT_EQ(key.find("/left/"), std::string::npos) << key;
    EXPECT_EQ(key.find("/to/"), std::string::npos) << key;
  }
}

// A rank that did not hear of the end before it began its next call meets the others in that call.
TEST(C10dCollective, ARankThatMissedTheEndOfACallFollowsInTheNext) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    Member first = opened(kept(groups, rank));
    ASSERT_TRUE(first->barrier(call_number(1)).ok());
    Member next;
    if (rank == 0) {
      next = opened(kept(groups, rank));  // its second call, over the same group
      first.reset();
    } else {
      first->abort(cancelled("the first call stops"));
      EXPECT_FALSE(first->barrier(call_number(2)).ok());
      next = opened(kept(groups, rank));  // makes a new one, in which rank 0 will be
    }
    const Status status = next->barrier(call_number(1));
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

// The group that is aborted has ended already, and the call goes on over another one.
TEST(C10dCollective, AnAbortBeforeTheGroupIsReplacedIsNotLost) {
  const test::GlooGroups groups(2);
  std::latch both_opened(2);
  std::latch first_stopped(2);
  on_ranks(2, [&](int32_t rank) {
    Member first = opened(kept(groups, rank));
    ASSERT_TRUE(first->barrier(call_number(1)).ok());
    Member next;
    if (rank == 0) next = opened(kept(groups, rank));
    both_opened.arrive_and_wait();
    if (rank == 1) {
      first->abort(cancelled("the first call stops"));
      EXPECT_FALSE(first->barrier(call_number(2)).ok());
    }
    first_stopped.arrive_and_wait();
    if (rank == 0) {
      next->abort(cancelled("and the second"));
    } else {
      next = opened(kept(groups, rank));
    }
    const Status status = next->barrier(call_number(1));
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.to_string();
    EXPECT_NE(status.to_string().find("and the second"), std::string::npos) << status.to_string();
  });
}

TEST(C10dCollective, GroupsOfDifferentUsesDoNotMeet) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    GroupRequest request = kept(groups, rank);
    const Member calls = opened(request);
    request.use = "background";
    const Member background = opened(request);
    std::jthread other([&] {
      for (uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(background->barrier(call_number(i)).ok());
    });
    for (uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(calls->barrier(call_number(i)).ok());
  });
}

// Gloo may end the process over a message that is longer than what waits for it.
TEST(C10dCollective, RefusesSizesWhoseDifferencesAreAsRegularAsTheRanks) {
  const test::GlooGroups groups(3);
  auto members = groups.collectives();
  on_ranks(3, [&](int32_t rank) {
    const std::vector<std::byte> own(4);
    const std::vector<uint64_t> told = {5, 6, 3};
    std::vector<std::byte> all(rank == 0 ? 14 : 0);
    const auto sizes = rank == 0 ? std::span(told) : std::span<const uint64_t>();
    const Status status =
        members[static_cast<size_t>(rank)]->gather_v(call_number(1), own, all, sizes, 0);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  });
}

TEST(C10dCollective, RanksBetweenCallsAreNotTakenForGone) {
  const test::GlooGroups groups(3);
  const Status told = groups.failure_beside_idle_ranks();
  EXPECT_EQ(told.code(), StatusCode::kAborted);
  EXPECT_EQ(told.message(), "a connection broke");
}

TEST(C10dCollective, GathersPartsOfVeryDifferentSizes) {
  const test::GlooGroups groups(3);
  auto members = groups.collectives();
  on_ranks(3, [&](int32_t rank) {
    const std::vector<uint64_t> sizes = {3, 0, 1 << 20};
    const std::vector<std::byte> own(sizes[static_cast<size_t>(rank)],
                                     static_cast<std::byte>(rank));
    std::vector<std::byte> all(sizes[0] + sizes[2]);
    const Status status =
        members[static_cast<size_t>(rank)]->all_gather_v(call_number(1), own, all, sizes);
    ASSERT_TRUE(status.ok()) << status.to_string();
    std::vector<std::byte> expected(all.size(), std::byte{2});
    std::fill_n(expected.begin(), sizes[0], std::byte{0});
    EXPECT_EQ(all, expected);
  });
}

TEST(C10dCollective, MovesMoreThanTravelsInTheOpening) {
  const test::GlooGroups groups(2);
  auto members = groups.collectives();
  on_ranks(2, [&](int32_t rank) {
    Collective& member = *members[static_cast<size_t>(rank)];
    std::vector<int64_t> values(100, rank == 0 ? INT64_MAX : -1);
    ASSERT_TRUE(member.all_reduce_i64(call_number(1), values, ReduceOperation::kSum).ok());
    EXPECT_EQ(values, std::vector<int64_t>(100, INT64_MAX - 1));
    values.assign(100, rank);
    ASSERT_TRUE(member.all_reduce_i64(call_number(2), values, ReduceOperation::kMax).ok());
    EXPECT_EQ(values, std::vector<int64_t>(100, 1));
    std::vector<std::byte> data(1 << 20, static_cast<std::byte>(rank));
    ASSERT_TRUE(member.broadcast(call_number(3), data, 1).ok());
    EXPECT_EQ(data, std::vector<std::byte>(1 << 20, std::byte{1}));
  });
}

// Threads, connections and locks are those of the parent.
TEST(C10dCollective, AForkedChildIsRefusedAndEndsNothing) {
  const test::GlooGroups groups(2);
  auto members = groups.collectives();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool refused =
        members[0]->barrier(call_number(1)).code() == StatusCode::kFailedPrecondition;
    members[0]->abort(cancelled("not for the parent"));
    members.clear();
    _exit(refused ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  on_ranks(2, [&](int32_t rank) {
    EXPECT_TRUE(members[static_cast<size_t>(rank)]->barrier(call_number(1)).ok());
  });
}

// What NCCL has pending waits on the device, and whatever the host puts behind it waits, too.
TEST(C10dCollective, ABackendOfADeviceIsAbortedWhereItsGroupIsGivenUp) {
  for (const bool store_is_there : {true, false}) {
    EXPECT_EQ(test::aborts_when_given_up(test::BackendOf::kDevice, store_is_there), 1);
    EXPECT_EQ(test::aborts_when_given_up(test::BackendOf::kHost, store_is_there), 0);
  }
}

}  // namespace
}  // namespace shardwright::collective
