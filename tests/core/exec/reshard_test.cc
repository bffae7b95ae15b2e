// SPDX-License-Identifier: Apache-2.0
//
// Property: what was saved under any layout is loaded byte for byte under any other, on any number
// of ranks.
#include <gtest/gtest.h>

#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

// A format, where it is saved, and the largest dtype that it knows.
struct Place {
  const char* format;
  const char* prefix;
  DType largest;
  uint64_t max_shard_bytes = 0;
};

std::vector<Dense> random_tensors(RandomSource& random, DType largest) {
  const std::vector<DType> dtypes{DType::kUint8, DType::kBfloat16, DType::kFloat32, DType::kInt64,
                                  largest};
  std::vector<Dense> tensors;
  const int64_t count = random.between(1, 8);
  for (int64_t i = 0; i < count; ++i) {
    Dims shape(static_cast<size_t>(random.between(0, 4)), 1);
    for (int64_t& extent : shape) extent = random.chance(5) ? 0 : random.between(1, 24);
    // Now and then larger than a digest block.
    if (random.chance(15) && !shape.empty()) shape[0] *= random.between(1, 200);
    tensors.push_back(
        random_dense(random, "tensor." + std::to_string(i), random.pick(dtypes), shape));
  }
  return tensors;
}

// Each tensor is cut at random and the boxes go to random ranks; some are whole on every rank.
std::vector<Holding> random_holdings(RandomSource& random, const std::vector<Dense>& tensors,
                                     bool filled) {
  std::vector<Holding> holdings(static_cast<size_t>(random.between(1, 6)));
  for (const Dense& tensor : tensors) {
    if (random.chance(25)) {
      for (Holding& holding : holdings) add_whole(&holding, tensor, filled, EntryKind::kReplicated);
      continue;
    }
    std::vector<std::vector<Box>> boxes(holdings.size());
    for (Box& box :
         random_cuts(random, tensor.shape, static_cast<int32_t>(random.between(1, 10)))) {
      const auto rank =
          static_cast<size_t>(random.between(0, static_cast<int64_t>(holdings.size()) - 1));
      // A sharded box may be held twice; one of the holders writes it.
      if (random.chance(10)) boxes[(rank + 1) % boxes.size()].push_back(box);
      if (boxes[rank].empty() || boxes[rank].back() != box) boxes[rank].push_back(std::move(box));
    }
    for (size_t rank = 0; rank < holdings.size(); ++rank) {
      add_boxes(&holdings[rank], tensor, boxes[rank], filled, EntryKind::kSharded);
    }
  }
  return holdings;
}

std::vector<std::shared_ptr<State>> states_of(const std::vector<Holding>& holdings) {
  std::vector<std::shared_ptr<State>> states;
  for (const Holding& holding : holdings) states.push_back(holding.state);
  return states;
}

class Reshard : public testing::TestWithParam<Place> {};

TEST_P(Reshard, GivesEveryRankItsBytesUnderAnyLayout) {
  RandomSource random;
  SaveOptions save;
  save.format = GetParam().format;
  save.max_shard_bytes = GetParam().max_shard_bytes;
  for (int64_t round = 0; round < shardwright::test::rounds(60); ++round) {
    CheckpointFixture fixture;
    const std::vector<Dense> tensors = random_tensors(random, GetParam().largest);
    const std::vector<Holding> sources = random_holdings(random, tensors, true);
    fixture.save(states_of(sources), save, GetParam().prefix);
    const std::vector<Holding> targets = random_holdings(random, tensors, false);
    LoadOptions options;
    options.verify = random.chance(20) ? VerifyRule::kOff : VerifyRule::kOnRead;
    for (const Result<Report>& report :
         fixture.load(states_of(targets), options, GetParam().prefix)) {
      ASSERT_TRUE(report.ok()) << report.status().to_string();
    }
    for (const Holding& target : targets) {
      for (size_t i = 0; i < tensors.size(); ++i)
        ASSERT_TRUE(holds(target, i, tensors[i])) << "round " << round;
    }
    const Result<Report> verified = fixture.open(GetParam().prefix)->verify(true, CallContext());
    ASSERT_TRUE(verified.ok() && verified->damage.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Reshard,
                         testing::Values(Place{"native", "ckpt", DType::kComplex128},
                                         Place{"safetensors", "ckpt", DType::kComplex64},
                                         Place{"safetensors", "ckpt", DType::kComplex64, 4096},
                                         Place{"safetensors", "models/one.safetensors",
                                               DType::kComplex64}));

TEST(ReshardFiles, WorksOnFilesWithDirectReads) {
  RandomSource random;
  const std::string directory =
      testing::TempDir() + "/shw-reshard-" + std::to_string(random.next());
  CheckpointFixture fixture(storage::make_posix_storage(directory));
  const Dense truth = random_dense(random, "w", DType::kFloat32, {3000, 2003});  // 24 MB
  std::vector<Holding> sources(2);
  add_boxes(&sources[0], truth, {{{0, 0}, {1700, 2003}}}, true);
  add_boxes(&sources[1], truth, {{{1700, 0}, {1300, 2003}}}, true);
  fixture.save(states_of(sources));
  std::vector<Holding> targets(3);
  add_boxes(&targets[0], truth, {{{0, 0}, {3000, 1000}}}, false);
  add_boxes(&targets[1], truth, {{{0, 1000}, {3000, 1003}}}, false);
  add_whole(&targets[2], truth, false);
  for (const Result<Report>& report : fixture.load(states_of(targets))) {
    ASSERT_TRUE(report.ok()) << report.status().to_string();
  }
  for (const Holding& target : targets) EXPECT_TRUE(holds(target, 0, truth));
  for (const std::string& key : fixture.keys()) ASSERT_TRUE(fixture.store()->remove(key).ok());
}

}  // namespace
}  // namespace shardwright::exec::test
