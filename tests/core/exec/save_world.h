// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary of the save tests: a model whose entries are of every kind, held by any number of
// ranks, saved by ranks as threads, and compared with the truth after loading. One test thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/load.h"
#include "core/exec/save.h"
#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {

// What is saved: the truth and each rank's part of it. Values depend on number alone.
struct World {
  std::vector<Dense> tensors;
  std::vector<Holding> ranks;
  std::vector<std::shared_ptr<const State>> states() const;
};

// Sharded rows (uneven, of three digest blocks in all), a plain replicated tensor, a scalar, an
// empty tensor, many small ones, a replicated and a rank_local object.
World make_world(int32_t world_size, uint64_t number);
// One small tensor in parts of equal size: quick to save, for tests that save very often.
World make_small_world(int32_t world_size, uint64_t number);

// What one rank is called with; the default is what all ranks share.
struct RankCall {
  SaveOptions options;
  format::Location location;
  CallContext call;
};
using RankCallOf = std::function<RankCall(int32_t)>;

// Saves on all ranks; results by rank.
std::vector<Result<Report>> save_world(Runtime& runtime, const World& world,
                                       const RankCallOf& call_of);
std::vector<Result<Report>> save_world(Runtime& runtime, const World& world,
                                       const format::Location& location,
                                       const SaveOptions& options = {});

// The code that all ranks returned; fails the test when they differ.
StatusCode agreed_code(const std::vector<Result<Report>>& results);
std::string texts(const std::vector<Result<Report>>& results);

// Whether the checkpoint at the location opens, verifies deeply and holds the world's tensors.
testing::AssertionResult stores(Runtime& runtime, const format::Location& location,
                                const World& world);

// Every key at and below the location's prefix, with its bytes.
std::vector<std::pair<std::string, std::vector<std::byte>>> contents(
    const format::Location& location);
std::vector<std::string> keys_at(const format::Location& location);

std::unique_ptr<Runtime> make_runtime(int32_t threads = 2);
// Random source that gives the same generations in every run.
RandomSource counting_random(uint8_t number);

}  // namespace shardwright::exec::test
