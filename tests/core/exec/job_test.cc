// SPDX-License-Identifier: Apache-2.0
#include "core/exec/job.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/core/exec/save_world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/gate.h"
#include "tests/support/no_memory.h"

namespace shardwright::exec::test {
namespace {

TEST(Progress, TellsAtOnceThenAtMostTenTimesASecondAndOfTheEnd) {
  shardwright::test::FakeClock clock;
  Progress progress;
  std::vector<uint64_t> told;
  progress.tell([&](const ProgressSnapshot& now) { told.push_back(now.bytes_done); }, clock,
                clock.monotonic_ns());
  progress.enter(Stage::kPlanning);
  progress.advance(1, 0);
  clock.advance_ns(Progress::kTellAgainNs - 1);
  progress.advance(1, 0);
  clock.advance_ns(1);
  progress.advance(1, 0);
  progress.advance(1, 0);
  progress.enter(Stage::kDone);
  EXPECT_EQ(told, (std::vector<uint64_t>{0, 3}));
  progress.tell_the_end();
  EXPECT_EQ(told, (std::vector<uint64_t>{0, 3, 4}));
}

using shardwright::test::Gate;

constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;

// Tells on which thread it was released.
struct Lent {
  explicit Lent(std::thread::id* thread) : released_on(thread) {}
  ~Lent() { *released_on = std::this_thread::get_id(); }
  std::thread::id* released_on;
};

class JobTest : public testing::Test {
 protected:
  JobTest() : runtime_(make_runtime()), queue_(*JobQueue::create(*runtime_)) {}
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<JobQueue> queue_;
};

TEST_F(JobTest, RunsAndReports) {
  const auto job = queue_->submit(
      [](const CallContext&) {
        Report report;
        report.path = "here";
        return report;
      },
      nullptr);
  ASSERT_TRUE(job->wait(kLongNs));
  EXPECT_EQ(job->state(), JobState::kSucceeded);
  EXPECT_TRUE(job->status().ok());
  ASSERT_NE(job->report(), nullptr);
  EXPECT_EQ(job->report()->path, "here");
  EXPECT_EQ(job->progress().stage, static_cast<int32_t>(Stage::kDone));
  EXPECT_GE(job->progress().elapsed_ns, 0);
}

TEST_F(JobTest, GoesThroughItsStatesInOrder) {
  Gate begun, stage, end;
  const auto job = queue_->submit(
      [&](const CallContext& call) -> Result<Report> {
        begun.open();
        stage.pass();
        call.on_staged();
        end.pass();
        return data_loss("broken");
      },
      nullptr);
  begun.pass();
  EXPECT_EQ(job->state(), JobState::kRunning);
  EXPECT_FALSE(job->wait_staged(0));
  stage.open();
  EXPECT_TRUE(job->wait_staged(kLongNs));
  EXPECT_EQ(job->state(), JobState::kStaged);
  EXPECT_FALSE(job->wait(1'000'000));
  EXPECT_EQ(job->report(), nullptr);
  end.open();
  EXPECT_TRUE(job->wait(-1));
  EXPECT_EQ(job->state(), JobState::kFailed);
  EXPECT_EQ(job->status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(job->report(), nullptr);
}

TEST_F(JobTest, RunsOneAfterAnotherInOrder) {
  Gate first;
  std::vector<int> order;
  const auto one = queue_->submit(
      [&](const CallContext&) {
        first.pass();
        order.push_back(1);
        return Report();
      },
      nullptr);
  const auto two = queue_->submit(
      [&](const CallContext&) {
        order.push_back(2);
        return Report();
      },
      nullptr);
  EXPECT_EQ(queue_->unfinished(), 2);
  EXPECT_EQ(two->state(), JobState::kQueued);
  first.open();
  EXPECT_TRUE(two->wait(kLongNs));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(JobTest, AQueuedJobThatIsCancelledIsToldSoAtItsStart) {
  Gate first;
  const auto one = queue_->submit(
      [&](const CallContext&) {
        first.pass();
        return Report();
      },
      nullptr);
  bool ran = false;
  const auto two = queue_->submit(
      [&](const CallContext& call) -> Result<Report> {
        ran = true;
        SHW_RETURN_IF_ERROR(call.control.check("beginning"));
        return Report();
      },
      nullptr);
  two->cancel();
  first.open();
  EXPECT_TRUE(two->wait(kLongNs));
  EXPECT_EQ(two->state(), JobState::kCancelled);
  EXPECT_EQ(two->status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(ran);  // it may have peers to tell
}

TEST_F(JobTest, WorkThatThrowsFails) {
  const auto job =
      queue_->submit([](const CallContext&) -> Result<Report> { throw std::bad_alloc(); }, nullptr);
  ASSERT_TRUE(job->wait(kLongNs));
  EXPECT_EQ(job->status().code(), StatusCode::kResourceExhausted);
}

TEST_F(JobTest, AJobThatEndsWithoutMemoryHasEnded) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  const auto good = queue_->submit(
      [](const CallContext&) -> Result<Report> {
        Report report;
        report.path = "there";
        shardwright::test::take_memory();
        return report;
      },
      nullptr);
  ASSERT_TRUE(good->wait(kLongNs));
  EXPECT_EQ(good->state(), JobState::kSucceeded);
  EXPECT_EQ(good->report()->path, "there");
  const auto bad =  // on the same thread, which has none any more
      queue_->submit([](const CallContext&) -> Result<Report> { throw std::bad_alloc(); }, nullptr);
  ASSERT_TRUE(bad->wait(kLongNs));
  EXPECT_EQ(bad->status().code(), StatusCode::kResourceExhausted);
}

TEST_F(JobTest, AJobThatCannotBeQueuedIsNotWaitedFor) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  bool missed = true;
  for (int64_t allowed = 0; missed; ++allowed) {
    std::shared_ptr<Job> job;
    shardwright::test::take_memory(allowed);
    try {
      job = queue_->submit([](const CallContext&) { return Report(); }, nullptr);
    } catch (const std::bad_alloc&) {
    }
    missed = shardwright::test::give_memory();
    EXPECT_EQ(job == nullptr, missed);
    if (job != nullptr) {
      EXPECT_TRUE(job->wait(kLongNs));
    }
  }
  EXPECT_TRUE(queue_->shutdown(kLongNs));
  EXPECT_EQ(queue_->unfinished(), 0);
}

TEST_F(JobTest, WhatWasLentIsReleasedByTheThreadThatDropsTheJobLast) {
  std::thread::id released;
  auto job = queue_->submit([](const CallContext&) { return Report(); },
                            std::make_shared<Lent>(&released));
  ASSERT_TRUE(job->wait(kLongNs));
  EXPECT_EQ(released, std::thread::id());
  job.reset();
  EXPECT_EQ(released, std::this_thread::get_id());
}

TEST_F(JobTest, WhatADroppedJobWasLentIsReleasedByALaterCall) {
  std::thread::id released;
  std::thread::id captured;
  Gate end;
  {
    const auto lent = std::make_shared<Lent>(&captured);
    const auto job = queue_->submit(
        [&end, lent](const CallContext&) {
          end.pass();
          return Report();
        },
        std::make_shared<Lent>(&released));
  }
  end.open();
  EXPECT_TRUE(queue_->shutdown(kLongNs));
  EXPECT_EQ(released, std::this_thread::get_id());
  EXPECT_EQ(captured, std::this_thread::get_id());
}

TEST_F(JobTest, TellsOfItsEndOnceOnTheBackgroundThread) {
  int times = 0;
  for (const Status& outcome : {Status(), data_loss("broken"), cancelled("stopped")}) {
    Gate begin, told;
    std::thread::id worker, teller;
    const auto job = queue_->submit(
        [&](const CallContext&) -> Result<Report> {
          begin.pass();
          worker = std::this_thread::get_id();
          if (!outcome.ok()) return outcome;
          return Report();
        },
        nullptr);
    const auto tell = [&, seen = job.get()] {
      EXPECT_GE(seen->state(), JobState::kSucceeded);
      teller = std::this_thread::get_id();
      ++times;
      told.open();
    };
    ASSERT_TRUE(job->on_done(tell).ok());
    EXPECT_EQ(job->on_done([] { FAIL(); }).code(), StatusCode::kFailedPrecondition);
    begin.open();
    told.pass();
    EXPECT_EQ(teller, worker);
  }
  EXPECT_TRUE(queue_->shutdown(kLongNs));
  EXPECT_EQ(times, 3);
}

TEST_F(JobTest, AShutdownWaitsForWhoIsToldOfTheEnd) {
  Gate begin, told, end;
  const auto job = queue_->submit(
      [&](const CallContext&) {
        begin.pass();
        return Report();
      },
      nullptr);
  const auto tell = [&] {
    told.open();
    end.pass();
  };
  ASSERT_TRUE(job->on_done(tell).ok());
  begin.open();
  told.pass();
  EXPECT_TRUE(job->wait(0));
  EXPECT_FALSE(queue_->shutdown(0));
  end.open();
  EXPECT_TRUE(queue_->shutdown(-1));
}

TEST_F(JobTest, AJobThatHasEndedTellsNobody) {
  const auto job = queue_->submit([](const CallContext&) { return Report(); }, nullptr);
  ASSERT_TRUE(job->wait(kLongNs));
  const Status late = job->on_done([] { FAIL(); });
  EXPECT_EQ(late.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(late.message().find("ended already"), std::string::npos);
}

TEST_F(JobTest, ADroppedJobTellsOfItsEndAfterWhatItWasLentCanBeReleased) {
  Gate end, told;
  std::thread::id released;
  {
    const auto job = queue_->submit(
        [&](const CallContext&) {
          end.pass();
          return Report();
        },
        std::make_shared<Lent>(&released));
    ASSERT_TRUE(job->on_done([&] { told.open(); }).ok());
  }
  end.open();
  told.pass();
  (void)queue_->submit([](const CallContext&) { return Report(); }, nullptr);
  EXPECT_EQ(released, std::this_thread::get_id());
}

TEST_F(JobTest, ShutdownCancelsWhatDoesNotEnd) {
  const auto job = queue_->submit(
      [](const CallContext& call) -> Result<Report> {
        while (true) {
          Status status = call.control.check("waiting to be cancelled");
          if (!status.ok()) return status;
          std::this_thread::yield();
        }
      },
      nullptr);
  EXPECT_TRUE(queue_->shutdown(50'000'000));
  EXPECT_EQ(job->state(), JobState::kCancelled);
  EXPECT_EQ(queue_->unfinished(), 0);
}

TEST_F(JobTest, ShutdownSaysWhenAJobDoesNotEnd) {
  Gate end;
  const auto job = queue_->submit(
      [&](const CallContext&) {
        end.pass();
        return Report();
      },
      nullptr);
  EXPECT_FALSE(queue_->shutdown(5'000'000));
  end.open();
  EXPECT_TRUE(queue_->shutdown(-1));
}

TEST_F(JobTest, SavesInTheBackground) {
  const World world = make_world(1, 3);
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  const auto alone = collective::make_single_collective();
  const auto job = queue_->submit(
      [&](const CallContext& call) -> Result<Report> {
        SHW_ASSIGN_OR_RETURN(const auto staged,
                             stage_state(*runtime_, *world.ranks[0].state, call));
        return save(*runtime_, staged, location, *alone, SaveOptions(), call);
      },
      nullptr);
  ASSERT_TRUE(job->wait(kLongNs));
  ASSERT_EQ(job->state(), JobState::kSucceeded) << job->status().to_string();
  EXPECT_TRUE(stores(*runtime_, location, world));
}

TEST_F(JobTest, RanksOfOneGroupAreInEachOthersWay) {
  int group = 0;
  int other_group = 0;
  Gate gate;
  const auto job = queue_->submit(
      [&](const CallContext&) {
        gate.pass();
        return Report();
      },
      nullptr, {&group, 0});
  EXPECT_EQ(queue_->rank_in_the_way({&group, 1}), 0);
  EXPECT_EQ(queue_->rank_in_the_way({&group, 0}), -1);
  EXPECT_EQ(queue_->rank_in_the_way({&other_group, 1}), -1);
  EXPECT_EQ(queue_->rank_in_the_way({nullptr, 1}), -1);
  gate.open();
  ASSERT_TRUE(job->wait(kLongNs));
  while (queue_->unfinished() > 0) std::this_thread::yield();
  EXPECT_EQ(queue_->rank_in_the_way({&group, 1}), -1);
}

TEST_F(JobTest, ACancelledSaveLeavesTheOldCheckpoint) {
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  const World old_world = make_small_world(1, 1);
  ASSERT_TRUE(save_world(*runtime_, old_world, location)[0].ok());
  const auto before = contents(location);
  Gate cancelled;
  const World new_world = make_world(1, 2);
  const auto alone = collective::make_single_collective();
  const auto job = queue_->submit(
      [&](const CallContext& call) {
        cancelled.pass();
        return save(*runtime_, new_world.ranks[0].state, location, *alone, SaveOptions(), call);
      },
      nullptr);
  job->cancel();
  cancelled.open();
  ASSERT_TRUE(job->wait(kLongNs));
  EXPECT_EQ(job->state(), JobState::kCancelled);
  EXPECT_EQ(contents(location), before);
}

}  // namespace
}  // namespace shardwright::exec::test
