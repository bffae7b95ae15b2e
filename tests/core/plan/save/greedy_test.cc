// SPDX-License-Identifier: Apache-2.0
//
// The greedy choice on plain arrays.
#include "core/plan/save/greedy.h"

#include <gtest/gtest.h>

#include "tests/core/plan/world.h"

namespace shardwright::plan {
namespace {

struct Case {
  std::vector<uint64_t> weights;
  std::vector<uint32_t> sets;
  std::vector<uint8_t> secondary;
  std::vector<uint64_t> offsets;
  std::vector<int32_t> holders;
  int32_t ranks = 0;
};

Result<std::vector<int32_t>> owners(const Case& given) {
  return choose_greedily(
      {given.weights, given.sets, given.secondary, given.offsets, given.holders, given.ranks});
}

// megatron-core 0.16, vectors of determine_main_replica_uniform_distribution.
TEST(Greedy, ChoosesAsTheOriginal) {
  const struct {
    Case given;
    std::vector<int32_t> owners;
  } kCases[] = {
      {{{4, 4, 4}, {0, 0, 0}, {}, {0, 2}, {0, 1}, 2}, {0, 1, 0}},
      {{{10, 5, 1, 10}, {0, 1, 2, 0}, {}, {0, 3, 5, 6}, {0, 1, 2, 1, 2, 2}, 3}, {0, 1, 2, 2}},
      {{{8, 8, 100}, {0, 0, 1}, {0, 1, 0}, {0, 2, 3}, {0, 1, 0}, 2}, {1, 1, 0}},
      {{{0, 0, 5, 5}, {0, 0, 0, 0}, {}, {0, 2}, {0, 1}, 2}, {0, 0, 0, 1}},
      {{{}, {}, {}, {}, {}, 1}, {}},
  };
  for (const auto& each : kCases) {
    const auto found = owners(each.given);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(*found, each.owners);
  }
}

TEST(Greedy, RefusesSetsThatAreNone) {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(owners({{1}, {1}, {}, {0, 1}, {0}, 1}).status(), kInvalid, "set 1");
  EXPECT_FAILURE(owners({{1}, {0}, {}, {0, 0}, {}, 1}).status(), kInvalid, "holders 0 to 0");
  EXPECT_FAILURE(owners({{1}, {0}, {}, {0, 2}, {1, 0}, 2}).status(), kInvalid, "rank 0");
  EXPECT_FAILURE(owners({{1}, {0}, {}, {0, 1}, {2}, 2}).status(), kInvalid, "rank 2");
  EXPECT_FAILURE(owners({{1, 2}, {0}, {}, {0, 1}, {0}, 1}).status(), kInvalid, "lengths");
  EXPECT_FAILURE(owners({{~uint64_t{0}, 1}, {0, 0}, {}, {0, 1}, {0}, 1}).status(), kInvalid,
                 "2^64");
  EXPECT_FAILURE(owners({{}, {}, {}, {}, {}, 0}).status(), kInvalid, "0 ranks");
}

}  // namespace
}  // namespace shardwright::plan
