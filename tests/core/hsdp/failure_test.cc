// SPDX-License-Identifier: Apache-2.0
//
// Transports that fail, and what is left of a context then (T27).
#include <barrier>
#include <memory>

#include <gtest/gtest.h>

#include "tests/core/hsdp/training.h"
#include "tests/core/hsdp/wrapped_communicator.h"
#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

using collective::OperationKind;

constexpr int32_t kStepsBefore = 3;
constexpr int32_t kStepsAfter = 10;
constexpr int32_t kFailingRank = 1;

// The operation of a kind that fails on one rank, once it is armed there.
struct Fault {
  OperationKind kind = OperationKind::kAllGather;
  int32_t nth = 0;  // from when it is armed
  StatusCode code = StatusCode::kUnavailable;
  std::shared_ptr<int32_t> left = std::make_shared<int32_t>(-1);  // below 0: not armed

  void arm() const { *left = nth; }
  Status before(OperationKind issued) const {
    if (issued != kind || *left < 0 || (*left)-- > 0) return {};
    return Status(code, "the link is down");
  }
};

TrainingCase faulty_plan(int32_t replicate, const Fault& fault) {
  TrainingCase plan;
  plan.mesh.replicate = replicate;
  plan.mesh.shard = replicate == 1 ? 3 : 2;
  plan.steps = kStepsBefore + kStepsAfter;
  plan.mesh.wrap = [fault](collective::CommunicatorPtr inner, int32_t rank,
                           int32_t) -> collective::CommunicatorPtr {
    if (rank != kFailingRank) return inner;
    return std::make_shared<WrappedCommunicator>(
        std::move(inner),
        [fault](OperationKind kind, collective::CommunicatorCall*) { return fault.before(kind); });
  };
  return plan;
}

// Nothing but a reset is legal, and that only with new communicators.
void expect_context_is_over(RankTrainer& trainer) {
  EXPECT_FAILURE(trainer.units()[0]->pre_forward({}), StatusCode::kFailedPrecondition,
                 "the link is down", "reset");
  EXPECT_FAILURE(trainer.context().finalize_backward(), StatusCode::kFailedPrecondition, "reset");
  EXPECT_FAILURE(trainer.context().step_event(), StatusCode::kFailedPrecondition, "reset");
  EXPECT_FAILURE(trainer.context().reset(), StatusCode::kFailedPrecondition, "new");
}

Status fail_and_train_on(const TrainingCase& plan, const Fault& fault, RankMeshes* before,
                         RankMeshes* after, int32_t rank, Parameters* result) {
  const std::shared_ptr<hsdp::HsdpMesh> mesh = before->take(rank);
  SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, mesh));
  for (int32_t step = 0; step < kStepsBefore; ++step) SHW_RETURN_IF_ERROR(trainer->run_step(step));
  SHW_ASSIGN_OR_RETURN(const RankTrainer::Snapshot snapshot, trainer->snapshot());
  const uint64_t baseline = trainer->context().stats().memory.total.current_bytes;
  if (rank == kFailingRank) fault.arm();
  const Status failed = trainer->run_step(kStepsBefore);
  EXPECT_FAILURE(failed, fault.code, "the link is down");
  expect_context_is_over(*trainer);
  RankMeshes::replace(*after->take(rank), mesh.get(), plan.mesh);
  SHW_RETURN_IF_ERROR(trainer->context().reset());
  EXPECT_EQ(trainer->context().stats().memory.total.current_bytes, baseline);
  SHW_RETURN_IF_ERROR(trainer->restore(snapshot));
  for (int32_t step = kStepsBefore; step < plan.steps; ++step)
    SHW_RETURN_IF_ERROR(trainer->run_step(step));
  SHW_ASSIGN_OR_RETURN(*result, trainer->whole_parameters());
  return {};
}

void expect_recovery(const TrainingCase& plan, const Fault& fault) {
  MeshShape healthy = plan.mesh;
  healthy.wrap = nullptr;
  RankMeshes before(plan.mesh);
  RankMeshes after(healthy);
  std::vector<Parameters> results(static_cast<size_t>(plan.mesh.world()));
  expect_all_ok(run_ranks(plan.mesh.world(), [&](int32_t rank) {
    return fail_and_train_on(plan, fault, &before, &after, rank,
                             &results[static_cast<size_t>(rank)]);
  }));
  EXPECT_EQ(results, std::vector<Parameters>(results.size(), train_alone(plan)));
}

TEST(Failures, T27ATransportThatFailsIsReplacedAndTrainingGoesOn) {
  for (const OperationKind kind : {OperationKind::kAllGather, OperationKind::kReduceScatter}) {
    for (const int32_t nth : {0, 1, 2}) {
      for (const int32_t lanes : {0, 2}) {
        Fault fault;
        fault.kind = kind;
        fault.nth = nth;
        TrainingCase plan = faulty_plan(1, fault);
        plan.options.lanes = lanes;
        SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << nth << lanes);
        expect_recovery(plan, fault);
      }
    }
  }
}

TEST(Failures, T27ReplicasFailTogether) {
  for (const OperationKind kind :
       {OperationKind::kAllGather, OperationKind::kReduceScatter, OperationKind::kAllReduce}) {
    Fault fault;
    fault.kind = kind;
    fault.nth = 1;
    fault.code = StatusCode::kDeadlineExceeded;
    SCOPED_TRACE(static_cast<int>(kind));
    expect_recovery(faulty_plan(2, fault), fault);
  }
}

TEST(Failures, T27ARankThatDiesIsNamedByTheOthers) {
  TrainingCase plan;
  plan.mesh.shard = 3;
  RankMeshes meshes(plan.mesh);
  RankMeshes after(plan.mesh);
  expect_all_ok(run_ranks(3, [&](int32_t rank) -> Status {
    const std::shared_ptr<hsdp::HsdpMesh> mesh = meshes.take(rank);
    SHW_ASSIGN_OR_RETURN(auto trainer, RankTrainer::create(plan, rank, mesh));
    SHW_RETURN_IF_ERROR(trainer->run_step(0));
    const uint64_t baseline = trainer->context().stats().memory.total.current_bytes;
    SHW_RETURN_IF_ERROR(trainer->forward(1, 0));
    if (rank == kFailingRank) return {};
    const Status failed = trainer->backward(1);
    EXPECT_FAILURE(failed, StatusCode::kAborted, "layer", "sequence");
    EXPECT_EQ(failed.detail("rank"), "1");
    RankMeshes::replace(*after.take(rank), mesh.get(), plan.mesh);
    SHW_RETURN_IF_ERROR(trainer->context().reset());
    EXPECT_EQ(trainer->context().stats().memory.total.current_bytes, baseline);
    return {};
  }));
}

TEST(Failures, T27WorksThatWerePendingReturnTheFirstCause) {
  Fault fault;
  fault.nth = 1;
  const TrainingCase plan = faulty_plan(1, fault);
  RankMeshes meshes(plan.mesh);
  std::barrier all_have_issued(3);
  expect_all_ok(run_ranks(3, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    if (rank == kFailingRank) fault.arm();
    SHW_ASSIGN_OR_RETURN(const collective::WorkPtr first, trainer->units()[0]->unshard());
    all_have_issued.arrive_and_wait();
    // The second gather fails on one rank; the others see it where they wait.
    const Result<collective::WorkPtr> second = trainer->units()[1]->unshard();
    const Status failed = second.ok() ? (*second)->wait(-1).status() : second.status();
    EXPECT_FAILURE(failed, StatusCode::kUnavailable, "the link is down");
    const Result<bool> pending = first->wait(-1);
    EXPECT_FAILURE(pending.status(), StatusCode::kUnavailable, "the link is down");
    return {};
  }));
}

// The limit is short only once the other rank is known not to come.
TEST(Failures, T27ATimeOutNamesTheUnitTheOperationAndItsNumber) {
  TrainingCase plan;
  plan.mesh.shard = 2;
  bool is_short = false;
  plan.mesh.wrap = [&](collective::CommunicatorPtr inner, int32_t rank,
                       int32_t) -> collective::CommunicatorPtr {
    if (rank != 0) return inner;
    return std::make_shared<WrappedCommunicator>(
        std::move(inner), [&](OperationKind, collective::CommunicatorCall* call) {
          if (is_short) call->timeout_ns = 1'000'000;
          return Status();
        });
  };
  RankMeshes meshes(plan.mesh);
  std::barrier rank_0_has_failed(2);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    if (rank == 1) {
      rank_0_has_failed.arrive_and_wait();
      EXPECT_FAILURE(trainer->forward(0, 0), StatusCode::kDeadlineExceeded, "did not take part");
      return {};
    }
    is_short = true;
    EXPECT_FAILURE(trainer->forward(0, 0), StatusCode::kDeadlineExceeded, "all_gather", "'layer 0'",
                   "sequence 3");
    rank_0_has_failed.arrive_and_wait();
    return {};
  }));
}

TEST(Failures, AResetWithoutAFailureDropsWhatIsUnderWay) {
  TrainingCase plan;
  plan.mesh.shard = 2;
  plan.steps = 4;
  RankMeshes meshes(plan.mesh);
  std::vector<Parameters> results(2);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto trainer, RankTrainer::create(plan, rank, meshes.take(rank)));
    const uint64_t baseline = trainer->context().stats().memory.total.current_bytes;
    for (int32_t step = 0; step < plan.steps; ++step) {
      SHW_RETURN_IF_ERROR(trainer->forward(step, 0));
      SHW_ASSIGN_OR_RETURN(const collective::WorkPtr dropped, trainer->units()[2]->unshard());
      SHW_RETURN_IF_ERROR(trainer->context().reset());
      EXPECT_TRUE(dropped->wait(-1).ok());
      EXPECT_EQ(trainer->context().stats().memory.total.current_bytes, baseline);
      SHW_RETURN_IF_ERROR(trainer->run_step(step));
    }
    SHW_ASSIGN_OR_RETURN(results[static_cast<size_t>(rank)], trainer->whole_parameters());
    return {};
  }));
  EXPECT_EQ(results, std::vector<Parameters>(2, train_alone(plan)));
}

}  // namespace
}  // namespace shardwright::test
