// SPDX-License-Identifier: Apache-2.0
//
// Ranks that run units in different orders are told which (T28).
#include "core/hsdp/order_guard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/hsdp/training.h"
#include "tests/core/hsdp/wrapped_communicator.h"
#include "tests/support/expect_failure.h"

namespace shardwright::test {
namespace {

// A transport that does not look at whose operation it carries.
CommunicatorWrap blind() {
  return [](collective::CommunicatorPtr inner, int32_t, int32_t) -> collective::CommunicatorPtr {
    return std::make_shared<WrappedCommunicator>(
        std::move(inner), [](collective::OperationKind, collective::CommunicatorCall* call) {
          call->unit = 0;
          return Status();
        });
  };
}

// Units of equal size, gathered in an order.
Status run_in_order(hsdp::Hsdp& context, const std::vector<size_t>& order) {
  for (const size_t each : order) {
    SHW_RETURN_IF_ERROR(context.units()[each]->pre_forward({}));
    SHW_RETURN_IF_ERROR(context.units()[each]->post_forward({}));
  }
  return context.finalize_backward();
}

Result<std::unique_ptr<hsdp::Hsdp>> make_context(const MeshShape& shape, RankMeshes* meshes,
                                                 int32_t rank) {
  hsdp::HsdpOptions options = options_of(shape);
  options.prefetch_depth = 0;
  SHW_ASSIGN_OR_RETURN(auto context, hsdp::Hsdp::create(options, meshes->take(rank),
                                                        device::make_host_lane_device(false)));
  for (int each = 0; each < 3; ++each) {
    SHW_ASSIGN_OR_RETURN(hsdp::Unit * unit, context->create_unit(fmt::format("unit{}", each), {}));
    std::vector<hsdp::ParameterInput> inputs(1);
    inputs[0].spec.fqn = fmt::format("unit{}.weight", each);
    inputs[0].spec.shape = {4, 3};
    SHW_RETURN_IF_ERROR(unit->add_parameters(std::move(inputs)));
    SHW_RETURN_IF_ERROR(unit->seal());
  }
  return context;
}

std::vector<Status> run_with_one_rank_out_of_step(const MeshShape& shape, int32_t odd_rank) {
  RankMeshes meshes(shape);
  return run_ranks(shape.world(), [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, make_context(shape, &meshes, rank));
    SHW_RETURN_IF_ERROR(run_in_order(*context, {0, 1, 2}));
    const std::vector<size_t> odd = {0, 2, 1};
    const std::vector<size_t> even = {0, 1, 2};
    return run_in_order(*context, rank == odd_rank ? odd : even);
  });
}

TEST(OrderGuard, T28NamesTheFirstUnitAndBothRanksOnEachRank) {
  MeshShape shape;
  shape.shard = 3;
  shape.wrap = blind();
  for (const Status& each : run_with_one_rank_out_of_step(shape, 2)) {
    EXPECT_FAILURE(each, StatusCode::kAborted, "out of step", "operation 1", "all_gather",
                   "'unit1'", "rank 0", "'unit2'", "rank 2");
    EXPECT_EQ(each.detail("rank"), "2");
  }
}

TEST(OrderGuard, T28ATransportThatLooksNamesTheUnitAtOnce) {
  MeshShape shape;
  shape.shard = 2;
  for (const Status& each : run_with_one_rank_out_of_step(shape, 1))
    EXPECT_FAILURE(each, StatusCode::kAborted, "all_gather", "unit");
}

TEST(OrderGuard, T28WatchesTheFirstStepsOnly) {
  MeshShape shape;
  shape.shard = 2;
  shape.wrap = blind();
  RankMeshes meshes(shape);
  expect_all_ok(run_ranks(2, [&](int32_t rank) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto context, make_context(shape, &meshes, rank));
    for (int step = 0; step < hsdp::HsdpOptions().order_guard_steps; ++step)
      SHW_RETURN_IF_ERROR(run_in_order(*context, {0, 1, 2}));
    // Sizes are equal, so only the guard would notice.
    return run_in_order(*context,
                        rank == 0 ? std::vector<size_t>{0, 1, 2} : std::vector<size_t>{2, 1, 0});
  }));
}

TEST(OrderGuard, T28AnOperationMoreOnOneRankIsNamed) {
  auto communicators = collective::make_thread_communicators(2);
  const std::vector<Status> outcomes = run_ranks(2, [&](int32_t rank) -> Status {
    hsdp::OrderGuard guard;
    guard.record(collective::OperationKind::kAllGather, 7, 64);
    if (rank == 1) guard.record(collective::OperationKind::kReduceScatter, 8, 32);
    const hsdp::OrderGuard::Names names{[](uint64_t unit) { return fmt::format("u{}", unit); },
                                        [](int32_t each) { return each + 10; }};
    collective::CommunicatorCall call;
    const Status outcome = guard.compare(*communicators[static_cast<size_t>(rank)], &call, names);
    EXPECT_EQ(call.sequence, 2U);
    return outcome;
  });
  for (const Status& each : outcomes) {
    EXPECT_FAILURE(each, StatusCode::kAborted, "operation 1", "nothing on rank 10",
                   "reduce_scatter of unit 'u8' (32 bytes) on rank 11");
  }
}

}  // namespace
}  // namespace shardwright::test
