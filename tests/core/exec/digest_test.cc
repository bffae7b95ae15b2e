// SPDX-License-Identifier: Apache-2.0
//
// The digest of a tensor does not depend on the chunks that hold it, nor on the memory that is
// there to compute it.
#include <gtest/gtest.h>

#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {
namespace {

using integrity::TensorDigestAlgorithm;
using shardwright::test::RandomSource;

std::vector<std::byte> digest_of(const Dense& truth, TensorDigestAlgorithm algorithm) {
  integrity::TensorDigester digester(algorithm);
  digester.update(truth.bytes);
  return digester.finish();
}

// Saves the truth cut into boxes over ranks and gives the digest of the stored tensor.
std::vector<std::byte> stored_digest(const Dense& truth, const std::vector<Box>& boxes,
                                     Runtime* runtime, TensorDigestAlgorithm algorithm) {
  CheckpointFixture fixture;
  const size_t ranks = std::min<size_t>(boxes.size(), 4);
  std::vector<Holding> holdings(std::max<size_t>(ranks, 1));
  std::vector<std::shared_ptr<State>> states;
  for (size_t rank = 0; rank < holdings.size(); ++rank) {
    std::vector<Box> mine;
    for (size_t i = rank; i < boxes.size(); i += holdings.size()) mine.push_back(boxes[i]);
    add_boxes(&holdings[rank], truth, mine, true, EntryKind::kSharded);
    states.push_back(holdings[rank].state);
  }
  fixture.save(states);
  const auto checkpoint =
      *Checkpoint::open(runtime == nullptr ? fixture.runtime() : *runtime, fixture.location());
  const Result<std::vector<std::byte>> digest =
      checkpoint->tensor_digest(0, algorithm, CallContext());
  EXPECT_TRUE(digest.ok()) << digest.status().to_string();
  return digest.ok() ? *digest : std::vector<std::byte>();
}

TEST(TensorDigest, IsTheSameForEveryWayToCutTheTensor) {
  RandomSource random;
  for (int round = 0; round < 40; ++round) {
    Dims shape(static_cast<size_t>(random.between(0, 4)), 1);
    for (int64_t& extent : shape) extent = random.between(1, 12);
    const Dense truth = random_dense(
        random, "w", random.pick<DType>({DType::kUint8, DType::kBfloat16, DType::kFloat64}), shape);
    const std::vector<Box> boxes =
        random_cuts(random, shape, static_cast<int32_t>(random.between(1, 12)));
    for (const TensorDigestAlgorithm algorithm :
         {TensorDigestAlgorithm::kXxh3, TensorDigestAlgorithm::kSha256}) {
      ASSERT_EQ(stored_digest(truth, boxes, nullptr, algorithm), digest_of(truth, algorithm))
          << round;
    }
  }
}

TEST(TensorDigest, NeedsLittleMemoryForColumnShards) {
  RandomSource random;
  const Dense truth = random_dense(random, "w", DType::kUint8, {5000, 8192});  // 40 MB in 4 columns
  std::vector<Box> boxes;
  for (int64_t column = 0; column < 4; ++column)
    boxes.push_back({{0, column * 2048}, {5000, 2048}});
  RuntimeOptions options;
  options.threads = 2;
  options.memory_budget = 32 << 20;
  const auto runtime = std::move(*Runtime::create(options));
  EXPECT_EQ(stored_digest(truth, boxes, runtime.get(), TensorDigestAlgorithm::kXxh3),
            digest_of(truth, TensorDigestAlgorithm::kXxh3));
  EXPECT_LE(runtime->staging().peak_bytes(), uint64_t{32} << 20);
}

TEST(TensorDigest, OfNoElementsIsThatOfNoBytes) {
  RandomSource random;
  const Dense truth = random_dense(random, "w", DType::kFloat32, {0, 7});
  EXPECT_EQ(stored_digest(truth, {}, nullptr, TensorDigestAlgorithm::kXxh3),
            digest_of(truth, TensorDigestAlgorithm::kXxh3));
}

}  // namespace
}  // namespace shardwright::exec::test
