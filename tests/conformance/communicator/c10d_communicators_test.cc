// SPDX-License-Identifier: Apache-2.0
//
// The communicator over c10d before the conformance suite: ranks are threads of one process, which
// talk by Gloo over sockets.
#include "tests/conformance/communicator/communicator_suite.h"
#include "tests/support/gloo_groups.h"

namespace shardwright::collective {
namespace {

CommunicatorMaker c10d_of(int32_t world_size) {
  return {"c10d_" + std::to_string(world_size), world_size,
          [world_size] { return test::GlooGroups(world_size).communicators(); }};
}

INSTANTIATE_TEST_SUITE_P(C10d, CommunicatorConformance,
                         testing::Values(c10d_of(1), c10d_of(2), c10d_of(3)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardwright::collective
