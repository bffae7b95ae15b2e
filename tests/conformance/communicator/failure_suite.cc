// SPDX-License-Identifier: Apache-2.0
//
// What every communicator promises of ranks that call something else, come late, leave or fail.
#include <functional>

#include "tests/conformance/communicator/communicator_suite.h"
#include "tests/support/gate.h"
#include "tests/support/no_memory.h"

namespace shardwright::collective {
namespace {

// An operation of one rank with memory of its own.
struct Attempt {
  Attempt(size_t world, CommunicatorCall wanted) : call(wanted) {
    in.resize(world * (wanted.count + 8) * 8);
    out.resize(in.size());
  }
  std::span<const std::byte> reads(size_t parts) const {
    return std::span(in).first(parts * part_bytes(call));
  }
  std::span<std::byte> writes(size_t parts) {
    return std::span(out).first(parts * part_bytes(call));
  }

  CommunicatorCall call;
  Bytes in;
  Bytes out;
};

// What a rank calls; each gives the operation as it was issued.
using Operate = std::function<Result<WorkPtr>(Communicator&, Attempt&)>;

Result<WorkPtr> gather(Communicator& member, Attempt& attempt) {
  return member.all_gather(attempt.call, attempt.reads(1),
                           attempt.writes(static_cast<size_t>(member.size())));
}
Result<WorkPtr> exchange(Communicator& member, Attempt& attempt) {
  const auto world = static_cast<size_t>(member.size());
  return member.all_to_all(attempt.call, attempt.reads(world), attempt.writes(world));
}
Result<WorkPtr> scatter(Communicator& member, Attempt& attempt) {
  return member.reduce_scatter(attempt.call, attempt.reads(static_cast<size_t>(member.size())),
                               attempt.writes(1));
}
Result<WorkPtr> reduce(Communicator& member, Attempt& attempt) {
  return member.all_reduce(attempt.call, attempt.writes(1));
}
Result<WorkPtr> broadcast(Communicator& member, Attempt& attempt) {
  return member.broadcast(attempt.call, attempt.writes(1), 0);
}
Result<WorkPtr> meet(Communicator& member, Attempt& attempt) {
  return member.barrier(attempt.call);
}

const Operate kOperations[] = {gather, exchange, scatter, reduce, broadcast, meet};

// What the first of all ranks calls, and what one of them does instead.
struct Mismatch {
  std::string name;
  Operate operate;
  Operate instead;
  std::function<void(CommunicatorCall&)> change = [](CommunicatorCall&) {};
};

std::vector<Mismatch> mismatches() {
  return {
      {"kind", gather, exchange},
      {"made of another", scatter, exchange},
      {"barrier", gather, meet},
      {"count", gather, gather, [](CommunicatorCall& call) { ++call.count; }},
      {"dtype", exchange, exchange, [](CommunicatorCall& call) { call.dtype = DType::kFloat16; }},
      {"dtype of a size", gather, gather,
       [](CommunicatorCall& call) { call.dtype = DType::kInt32; }},
      {"unit", reduce, reduce, [](CommunicatorCall& call) { ++call.unit; }},
      {"sequence", meet, meet, [](CommunicatorCall& call) { ++call.sequence; }},
      {"tag", scatter, scatter, [](CommunicatorCall& call) { ++call.tag; }},
      {"reduction", scatter, scatter,
       [](CommunicatorCall& call) { call.reduction = Reduction::kMax; }},
      {"root", broadcast,
       [](Communicator& member, Attempt& attempt) {
         return member.broadcast(attempt.call, attempt.writes(1), 1);
       }},
  };
}

}  // namespace

TEST_P(CommunicatorConformance, RanksOutOfStepAreToldSoOnAllSides) {
  if (world() == 1) GTEST_SKIP() << "one rank is in step with itself";
  for (const Mismatch& each : mismatches()) {
    for (const size_t odd : {size_t{0}, world() - 1}) {
      members_ = GetParam().make();
      on_all_ranks([&](size_t rank, Communicator& member) {
        Attempt attempt(world(), call_of(5, 16));
        if (rank == odd) each.change(attempt.call);
        const Operate& operate = rank == odd ? each.instead : each.operate;
        const Status status = ended(operate(member, attempt));
        EXPECT_EQ(status.code(), StatusCode::kAborted) << each.name << ' ' << status.to_string();
        for (const char* const detail : {"rank", "expected", "found"})
          EXPECT_NE(status.detail(detail), "") << each.name << ' ' << status.to_string();
        EXPECT_NE(status.detail("expected"), status.detail("found")) << each.name;
      });
    }
  }
}

TEST_P(CommunicatorConformance, RefusesMemoryThatDoesNotFitOnAllRanks) {
  const std::vector<std::function<void(Attempt&)>> changes{
      [](Attempt& attempt) { attempt.call.count = UINT64_MAX; },
      [](Attempt& attempt) { attempt.call.count = uint64_t{1} << 60; },
      [](Attempt& attempt) { attempt.call.dtype = DType::kInvalid; }};
  for (const auto& change : changes) {
    for (const size_t wrong : {size_t{0}, world() - 1}) {
      members_ = GetParam().make();
      on_all_ranks([&](size_t rank, Communicator& member) {
        Attempt attempt(world(), call_of(1, 16));
        const std::span<const std::byte> in = attempt.reads(1);
        const std::span<std::byte> out = attempt.writes(world());
        if (rank == wrong) change(attempt);
        const Status status = ended(member.all_gather(attempt.call, in, out));
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
        EXPECT_EQ(status.detail("rank"), std::to_string(wrong)) << status.to_string();
        EXPECT_EQ(attempt.out, Bytes(attempt.out.size()));
      });
    }
  }
}

TEST_P(CommunicatorConformance, RefusesARootThatIsNoRank) {
  for (const int32_t root : {-1, GetParam().world_size}) {
    members_ = GetParam().make();
    on_all_ranks([&](size_t, Communicator& member) {
      Attempt attempt(world(), call_of(1, 16));
      const Status status = ended(member.broadcast(attempt.call, attempt.writes(1), root));
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    });
  }
}

TEST_P(CommunicatorConformance, WaitsNoLongerForASilentRankThanItsCallSays) {
  if (world() == 1) GTEST_SKIP() << "one rank waits for nobody";
  for (const Operate& operate : kOperations) {
    members_ = GetParam().make();
    on_all_ranks([&](size_t rank, Communicator& member) {
      if (rank == 1) return;
      Attempt attempt(world(), call_of(23, 16));
      attempt.call.timeout_ns = kShortNs;
      const Status status = ended(operate(member, attempt));
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.to_string();
      EXPECT_NE(status.to_string().find("number 23 of unit 7"), std::string::npos)
          << status.to_string();
      EXPECT_EQ(status.detail("unit"), "7") << status.to_string();
    });
    // Who comes later learns what has happened: at once, or at its next operation where the bytes
    // of the others had been sent before they gave up.
    Attempt late(world(), call_of(23, 16));
    Status learned = ended(operate(member(1), late));
    Attempt next(world(), call_of(24, 16));
    if (learned.ok()) learned = ended(operate(member(1), next));
    EXPECT_EQ(learned.code(), StatusCode::kDeadlineExceeded) << learned.to_string();
  }
}

TEST_P(CommunicatorConformance, ARankThatLeavesIsNamed) {
  if (world() == 1) GTEST_SKIP() << "one rank knows no other";
  for (const Operate& operate : kOperations) {
    for (const size_t gone : {size_t{0}, world() - 1}) {
      members_ = GetParam().make();
      test::Gate left;
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < world(); ++rank) {
        if (rank == gone) continue;
        threads.emplace_back([&, rank] {
          if (rank % 2 == 0) left.pass();  // some wait already, others come later
          Attempt attempt(world(), call_of(1, 16));
          const Status status = ended(operate(member(rank), attempt));
          EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
          EXPECT_EQ(status.detail("rank"), std::to_string(gone)) << status.to_string();
        });
      }
      members_[gone].reset();
      left.open();
    }
  }
}

TEST_P(CommunicatorConformance, AnAbortFromAnotherThreadWakesAllWithTheFirstCause) {
  if (world() == 1) GTEST_SKIP() << "one rank waits for nobody";
  for (const Operate& operate : kOperations) {
    members_ = GetParam().make();
    std::vector<std::jthread> threads;
    for (size_t rank = 1; rank < world(); ++rank) {
      threads.emplace_back([&, rank] {
        Attempt attempt(world(), call_of(1, 16));
        for (int turn = 0; turn < 2; ++turn) {
          const Status status = ended(operate(member(rank), attempt));
          EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.to_string();
          EXPECT_NE(status.to_string().find("the host said stop"), std::string::npos);
        }
      });
    }
    member(0).abort(cancelled("the host said stop"));
    member(0).abort(permission_denied("too late"));
  }
}

TEST_P(CommunicatorConformance, AWorkThatFailedFailsAgain) {
  if (!member(0).can(kIsAsynchronous) || world() == 1) GTEST_SKIP() << "nothing to wait for";
  for (const Operate& operate : kOperations) {
    members_ = GetParam().make();
    Attempt attempt(world(), call_of(1, 16));
    Result<WorkPtr> work = operate(member(0), attempt);
    ASSERT_TRUE(work.ok()) << work.status().to_string();
    member(1).abort(unavailable("gone"));
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ((*work)->wait(-1).status().code(), StatusCode::kUnavailable);
      EXPECT_EQ((*work)->test().status().code(), StatusCode::kUnavailable);
    }
  }
}

// Its memory goes with it, so that those who still need that are told.
TEST_P(CommunicatorConformance, AWorkThatIsGivenUpIsNotWaitedFor) {
  if (!member(0).can(kIsAsynchronous) || world() == 1) GTEST_SKIP() << "nothing to give up";
  for (const Operate& operate : kOperations) {
    members_ = GetParam().make();
    const auto attempt = std::make_unique<Attempt>(world(), call_of(1, 16));
    ASSERT_TRUE(operate(member(0), *attempt).ok());  // and its work is gone
    on_all_ranks([&](size_t rank, Communicator& member) {
      if (rank == 0) return;
      Attempt other(world(), call_of(1, 16));
      Status status = ended(operate(member, other));
      // It may have been sent before it was given up; the next operation needs rank 0 all the same.
      Attempt next(world(), call_of(2, 16));
      if (status.ok()) status = ended(operate(member, next));
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
      EXPECT_EQ(status.detail("rank"), "0") << status.to_string();
    });
  }
}

// Whatever one rank can still allocate: nobody waits for ever, and nobody takes it for done that
// the rank has failed before it took part.
TEST_P(CommunicatorConformance, ARankWithoutMemoryIsNotWaitedFor) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  for (const Operate& operate : kOperations) {
    for (const size_t starved : {world() - 1, size_t{0}}) {
      bool missed = true;
      for (int64_t allowed = 0; missed; ++allowed) {
        members_ = GetParam().make();
        std::vector<Status> ends(world());
        on_all_ranks([&](size_t rank, Communicator& member) {
          Attempt attempt(world(), call_of(1, 16));
          if (rank == starved) test::take_memory(allowed);
          ends[rank] = ended(operate(member, attempt));
          if (rank == starved) missed = test::give_memory();
        });
        EXPECT_TRUE(missed || ends[starved].ok()) << ends[starved].to_string();
        for (const Status& end : ends) {
          if (ends[starved].ok()) {
            EXPECT_TRUE(end.ok()) << allowed << ' ' << end.to_string();
          } else if (!end.ok()) {
            EXPECT_EQ(end.code(), ends[starved].code()) << allowed << ' ' << end.to_string();
          }
        }
      }
    }
  }
}

}  // namespace shardwright::collective
