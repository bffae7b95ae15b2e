// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of the communicator interface. A communicator passes it by instantiating
// CommunicatorConformance with a maker of all members of a world; each member runs on a thread of
// its own.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/collective/communicator.h"

namespace shardwright::collective {

using Communicators = std::vector<CommunicatorPtr>;
using Bytes = std::vector<std::byte>;

struct CommunicatorMaker {
  std::string name;
  int32_t world_size = 1;
  std::function<Communicators()> make;
  // What this machine lacks for it; none = "".
  std::function<std::string()> missing = [] { return std::string(); };
};
inline void PrintTo(const CommunicatorMaker& maker, std::ostream* out) {
  *out << maker.name;
}

inline constexpr int64_t kLongNs = int64_t{60} * 1'000'000'000;
inline constexpr int64_t kShortNs = 20 * 1'000'000;
inline constexpr uint64_t kUnit = 7;
inline constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16,
                                    DType::kFloat16, DType::kInt64};

// The values as elements of a dtype, each of which can hold them.
Bytes elements_of(DType dtype, const std::vector<double>& values);
// `count` of one rank for another; small, so that sums over ranks are exact in every dtype.
double value_of(size_t from, size_t to, size_t index);
Bytes part_of(DType dtype, size_t from, size_t to, size_t count);
// The bytes of a call's part.
size_t part_bytes(const CommunicatorCall& call);

// Where an operation ends, be it where it is issued.
Status ended(Result<WorkPtr> work);

class CommunicatorConformance : public testing::TestWithParam<CommunicatorMaker> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    members_ = GetParam().make();
  }
  size_t world() const { return members_.size(); }
  Communicator& member(size_t rank) { return *members_[rank]; }

  static CommunicatorCall call_of(uint64_t sequence, size_t count, DType dtype = DType::kFloat32) {
    CommunicatorCall call;
    call.sequence = sequence;
    call.unit = kUnit;
    call.count = count;
    call.dtype = dtype;
    call.timeout_ns = kLongNs;
    return call;
  }

  // Runs body(rank, member) on one thread per rank and joins.
  void on_all_ranks(const std::function<void(size_t, Communicator&)>& body) {
    std::vector<std::jthread> threads;
    for (size_t rank = 1; rank < world(); ++rank)
      threads.emplace_back([this, &body, rank] { body(rank, *members_[rank]); });
    body(0, *members_[0]);
  }

  Communicators members_;
};

}  // namespace shardwright::collective
