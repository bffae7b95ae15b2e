// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads of torch's format in which one rank has no memory from some allocation on. All
// ranks end alike, the checkpoint before stays whole or the new one is there, and with memory the
// next call does what it should.
#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/no_memory.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::give_memory;
using shardwright::test::take_memory;

SaveOptions torch_options() {
  SaveOptions options;
  options.format = "torch-dcp";
  return options;
}

class TorchDcpMemory : public testing::Test {
 protected:
  // The starving rank's thread has so many allocations left. *was_starved: it wanted more.
  std::vector<Result<Report>> save(const World& world, int32_t starving, int64_t allowed,
                                   bool* was_starved) {
    std::vector<Result<Report>> results(world.ranks.size(),
                                        Result<Report>(internal_error("not run")));
    on_ranks(static_cast<int32_t>(world.ranks.size()),
             [&](int32_t rank, collective::Collective& collective) {
               const auto index = static_cast<size_t>(rank);
               const SaveOptions options = torch_options();
               if (rank == starving) take_memory(allowed);
               results[index] = exec::save(*runtime_, world.ranks[index].state, location_,
                                           collective, options, CallContext());
               if (rank == starving) *was_starved = give_memory();
             });
    return results;
  }
  void save_well(const World& world) {
    const auto saved = save_world(*runtime_, world, location_, torch_options());
    ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  }
  void collect() {
    GcOptions options;
    options.apply = true;
    options.grace_ns = -1;
    const auto collected = collect_garbage(*runtime_, location_, options);
    EXPECT_TRUE(collected.ok()) << collected.status().to_string();
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime(1);
  const format::Location location_{storage::make_memory_storage(), "ckpt"};
};

TEST_F(TorchDcpMemory, ASaveThatHasNoneLeavesTheOldOrTheNewCheckpoint) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  const World old_world = make_small_world(2, 1);
  const World new_world = make_small_world(2, 2);
  for (const int32_t rank : {0, 1}) {
    bool was_starved = true;
    int64_t allowed = 0;
    for (; was_starved; allowed += 1 + allowed / 16) {
      save_well(old_world);
      collect();
      const size_t before = keys_at(location_).size();
      const auto saved = save(new_world, rank, allowed, &was_starved);
      const std::string what =
          fmt::format("{} allowed to rank {}\n{}", allowed, rank, texts(saved));
      const StatusCode code = agreed_code(saved);
      EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kResourceExhausted) << what;
      const bool is_unknown = saved[0].status().detail("commit") == "unknown";
      const bool has_new = bool(stores(*runtime_, location_, new_world));
      if (code == StatusCode::kOk) {
        EXPECT_TRUE(has_new) << what;
      } else if (!is_unknown || !has_new) {
        EXPECT_TRUE(stores(*runtime_, location_, old_world)) << what;
        EXPECT_EQ(keys_at(location_).size(), before) << what << "something is left";
      }
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(allowed, 100) << "it came as far as writing";
  }
}

TEST_F(TorchDcpMemory, ALoadThatHasNoneSaysSo) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  const World world = make_small_world(3, 1);
  save_well(world);
  const auto alone = collective::make_single_collective();
  bool was_starved = true;
  int64_t allowed = 0;
  for (; was_starved; allowed += 1 + allowed / 16) {
    Holding wanted;
    add_whole(&wanted, world.tensors[0], /*filled=*/false);
    take_memory(allowed);
    const Result<Report> loaded =
        exec::load(*runtime_, location_, *wanted.state, *alone, LoadOptions(), CallContext());
    was_starved = give_memory();
    if (loaded.ok()) {
      EXPECT_TRUE(holds(wanted, 0, world.tensors[0])) << allowed;
    } else {
      EXPECT_EQ(loaded.status().code(), StatusCode::kResourceExhausted)
          << allowed << ": " << loaded.status().to_string();
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(allowed, 100) << "it came as far as reading";
}

}  // namespace
}  // namespace shardwright::exec::test
