// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "tests/support/gate.h"

namespace shardwright::collective {
namespace {

constexpr int64_t kShortNs = 20 * 1'000'000;

TEST(ThreadCollectives, ATimeOutNamesTheSilentRanks) {
  auto members = make_thread_collectives(4);
  std::jthread other([&] {
    const Status status = members[2]->barrier({1, 1, -1});
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  });
  const Status status = members[0]->barrier({1, 1, kShortNs});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("1"), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.message().find("3"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(status.detail("rank"), "1");
}

TEST(ThreadCollectives, LateRanksLearnThatTheGroupHasEnded) {
  auto members = make_thread_collectives(2);
  ASSERT_EQ(members[0]->barrier({1, 1, kShortNs}).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(members[1]->barrier({1, 1, -1}).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(members[0]->barrier({2, 1, -1}).code(), StatusCode::kDeadlineExceeded);
}

TEST(ThreadCollectives, AMemberThatIsDestroyedFreesTheOthersByName) {
  auto members = make_thread_collectives(3);
  std::jthread other([&] {
    const Status status = members[0]->barrier({1, 1, -1});
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(status.detail("rank"), "2");
  });
  std::jthread third([&] {
    const Status status = members[1]->barrier({1, 1, -1});
    EXPECT_EQ(status.detail("rank"), "2");
  });
  members[2].reset();
}

TEST(ThreadCollectives, AMemberThatWasDestroyedBeforeIsNamedToo) {
  auto members = make_thread_collectives(2);
  members[1].reset();
  const Status status = members[0]->barrier({1, 1, -1});
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_EQ(status.detail("rank"), "1");
}

TEST(ThreadCollectives, AbortWakesWhoWaits) {
  auto members = make_thread_collectives(3);
  std::jthread waiting(
      [&] { EXPECT_EQ(members[0]->barrier({1, 1, -1}).code(), StatusCode::kPermissionDenied); });
  members[1]->abort(permission_denied("no"));
}

TEST(ThreadCollectives, AnAbortLeavesTheExceptionOfAHostWithItsRank) {
  auto members = make_thread_collectives(2);
  members[1]->abort(Status(StatusCode::kHostException, "ValueError: no")
                        .with_detail("host_exception", "key")
                        .with_detail("file", "f"));
  const Status told = members[0]->barrier({1, 1, -1});
  EXPECT_EQ(told.code(), StatusCode::kHostException);
  EXPECT_EQ(told.message(), "ValueError: no");
  EXPECT_EQ(told.detail("file"), "f");
  EXPECT_EQ(told.detail("host_exception"), "");
}

TEST(ThreadCollectives, DifferentOperationsAreOutOfStepOnAllRanks) {
  auto members = make_thread_collectives(2);
  const auto check = [](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_EQ(status.detail("rank"), "1");
    EXPECT_NE(status.detail("expected").find("barrier"), std::string_view::npos);
    EXPECT_NE(status.detail("found").find("broadcast"), std::string_view::npos);
    EXPECT_EQ(status.detail("sequence"), "5");
    EXPECT_EQ(status.detail("tag"), "9");
  };
  std::jthread other([&] {
    std::vector<std::byte> data(3);
    check(members[1]->broadcast({5, 9, -1}, data, 0));
  });
  check(members[0]->barrier({5, 9, -1}));
}

}  // namespace
}  // namespace shardwright::collective
