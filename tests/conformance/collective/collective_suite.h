// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of the collective interface. A collective passes it by instantiating
// CollectiveConformance with a maker of all members of a world; each member runs on a thread of its
// own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/collective/collective.h"

namespace shardwright::collective {

using Members = std::vector<std::shared_ptr<Collective>>;

struct CollectiveMaker {
  std::string name;
  int32_t world_size = 1;
  std::function<Members()> make;
};
inline void PrintTo(const CollectiveMaker& maker, std::ostream* out) {
  *out << maker.name;
}

class CollectiveConformance : public testing::TestWithParam<CollectiveMaker> {
 protected:
  CollectiveConformance() : members_(GetParam().make()) {}
  size_t world() const { return members_.size(); }
  Collective& member(size_t rank) { return *members_[rank]; }

  // Runs body(rank, member) on one thread per rank and joins.
  void on_all_ranks(const std::function<void(size_t, Collective&)>& body) {
    std::vector<std::jthread> threads;
    for (size_t rank = 1; rank < world(); ++rank)
      threads.emplace_back([this, &body, rank] { body(rank, *members_[rank]); });
    body(0, *members_[0]);
  }

  Members members_;
};

}  // namespace shardwright::collective
