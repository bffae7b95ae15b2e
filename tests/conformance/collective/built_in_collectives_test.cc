// SPDX-License-Identifier: Apache-2.0
//
// The built-in collectives before the conformance suite.
#include "tests/conformance/collective/collective_suite.h"
#include "tests/support/plain_collective.h"

namespace shardwright::collective {
namespace {

Members thread_members(int32_t world_size) {
  Members members;
  for (auto& member : make_thread_collectives(world_size)) members.push_back(std::move(member));
  return members;
}

CollectiveMaker threads(int32_t world_size) {
  return {"threads_" + std::to_string(world_size), world_size,
          [world_size] { return thread_members(world_size); }};
}

// By what the interface does for a transport without gather_v, scatter_v and all_to_all_v.
CollectiveMaker plain(int32_t world_size) {
  return {"plain_" + std::to_string(world_size), world_size, [world_size] {
            Members members;
            for (auto& member : make_thread_collectives(world_size))
              members.push_back(std::make_unique<test::PlainCollective>(std::move(member)));
            return members;
          }};
}

// Through the memory of this machine. Ranks are threads here, which reach each other as processes
// do.
CollectiveMaker node(int32_t world_size) {
  return {"node_" + std::to_string(world_size), world_size, [world_size] {
            const Members inner = thread_members(world_size);
            Members members(inner.size());
            std::vector<std::jthread> threads;
            for (size_t rank = 0; rank < inner.size(); ++rank) {
              threads.emplace_back([&inner, &members, rank] {
                members[rank] = make_node_collective(inner[rank], {}).value();
              });
            }
            threads.clear();
            return members;
          }};
}

CollectiveMaker single() {
  return {"single", 1, [] {
            Members members;
            members.push_back(make_single_collective());
            return members;
          }};
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, CollectiveConformance,
                         testing::Values(single(), threads(1), threads(2), threads(3), threads(8),
                                         plain(1), plain(2), plain(5), node(2), node(3), node(8)),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardwright::collective
