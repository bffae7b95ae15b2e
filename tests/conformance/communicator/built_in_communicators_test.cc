// SPDX-License-Identifier: Apache-2.0
//
// The built-in communicators before the conformance suite.
#include "tests/conformance/communicator/communicator_suite.h"
#include "tests/support/plain_collective.h"
#include "tests/support/plain_communicator.h"

namespace shardwright::collective {
namespace {

CommunicatorMaker named(const std::string& name, int32_t world_size,
                        std::function<Communicators(int32_t)> make) {
  return {name + "_" + std::to_string(world_size), world_size,
          [world_size, make] { return make(world_size); }};
}

CommunicatorMaker threads(int32_t world_size) {
  return named("threads", world_size, make_thread_communicators);
}

// By what the interface makes of all_gather and all_to_all.
CommunicatorMaker plain(int32_t world_size) {
  return named("plain", world_size, [](int32_t world) {
    Communicators members = make_thread_communicators(world);
    for (CommunicatorPtr& member : members)
      member = std::make_shared<test::PlainCommunicator>(std::move(member));
    return members;
  });
}

CommunicatorMaker delayed(int32_t world_size) {
  return named("delayed", world_size, [](int32_t world) {
    constexpr int64_t kLatencyNs = 1000;
    constexpr double kBytesPerSecond = 1e11;
    Communicators members = make_thread_communicators(world);
    for (CommunicatorPtr& member : members)
      member = make_delayed_communicator(std::move(member), kLatencyNs, kBytesPerSecond);
    return members;
  });
}

CommunicatorMaker over_threads(int32_t world_size) {
  return named("over_threads", world_size, [](int32_t world) {
    Communicators members;
    for (auto& member : make_thread_collectives(world))
      members.push_back(make_communicator_over(std::move(member)));
    return members;
  });
}

// Over a transport without all_to_all_v.
CommunicatorMaker over_plain(int32_t world_size) {
  return named("over_plain", world_size, [](int32_t world) {
    Communicators members;
    for (auto& member : make_thread_collectives(world)) {
      members.push_back(
          make_communicator_over(std::make_shared<test::PlainCollective>(std::move(member))));
    }
    return members;
  });
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, CommunicatorConformance,
                         testing::Values(threads(1), threads(2), threads(3), threads(4), threads(8),
                                         plain(1), plain(2), plain(3), plain(4), plain(8),
                                         delayed(1), delayed(3), over_threads(1), over_threads(2),
                                         over_threads(3), over_threads(8), over_plain(1),
                                         over_plain(2), over_plain(3)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardwright::collective
