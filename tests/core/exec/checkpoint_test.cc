// SPDX-License-Identifier: Apache-2.0
//
// Reading an opened checkpoint: names, boxes, objects, what is read and how much.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

constexpr int64_t kMiB = 1 << 20;

// A checkpoint of one rank with a matrix of 3 MiB, a scalar, an empty tensor and two objects.
struct SmallCheckpoint : testing::Test {
  RandomSource random;
  CheckpointFixture fixture;
  Dense matrix = random_dense(random, "layers.0.weight", DType::kFloat32, {768, 1024});
  Dense scalar = random_dense(random, "step", DType::kInt64, {});
  Dense empty = random_dense(random, "none", DType::kFloat32, {0, 5});
  std::shared_ptr<const Checkpoint> checkpoint;

  void SetUp() override {
    Holding holding;
    for (const Dense* dense : {&matrix, &scalar, &empty}) add_whole(&holding, *dense, true);
    add_object(&holding, "config", "{\"a\":1}");
    add_object(&holding, "nothing", "");
    fixture.save_one(holding);
    checkpoint = fixture.open();
    ASSERT_NE(checkpoint, nullptr);
  }

  size_t tensor(std::string_view name) const { return *checkpoint->find_tensor(name, -1); }

  Result<ReadOutcome> read(const Dense& dense, const Box& box, std::vector<std::byte>* memory,
                           VerifyRule verify = VerifyRule::kOnRead) const {
    memory->assign(static_cast<size_t>(box_element_count(box)) * dense.element_bytes(),
                   std::byte{0});
    BoxRead wanted{tensor(dense.name), box, {}};
    wanted.target.data = memory->data();
    wanted.target.dtype = dense.dtype;
    wanted.target.shape = box.sizes;
    return checkpoint->read_boxes({&wanted, 1}, verify, CallContext());
  }
};

TEST_F(SmallCheckpoint, ReadsBoxesOfAnyPlaceAndSize) {
  for (int round = 0; round < 200; ++round) {
    Box box = whole_box(matrix.shape);
    for (size_t d = 0; d < 2; ++d) {
      box.offsets[d] = random.between(0, matrix.shape[d] - 1);
      box.sizes[d] = random.between(0, matrix.shape[d] - box.offsets[d]);
    }
    std::vector<std::byte> memory;
    const VerifyRule rule = round % 2 == 0 ? VerifyRule::kOnRead : VerifyRule::kOff;
    const Result<ReadOutcome> outcome = read(matrix, box, &memory, rule);
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
    ASSERT_EQ(memory, matrix.box_bytes(box)) << box_text(box);
  }
}

TEST_F(SmallCheckpoint, ReadsScalarsAndEmptyTensors) {
  std::vector<std::byte> memory;
  ASSERT_TRUE(read(scalar, whole_box(scalar.shape), &memory).ok());
  EXPECT_EQ(memory, scalar.bytes);
  const Result<ReadOutcome> none = read(empty, whole_box(empty.shape), &memory);
  ASSERT_TRUE(none.ok()) << none.status().to_string();
  EXPECT_EQ(none->bytes_read, 0U);
}

TEST_F(SmallCheckpoint, ReadsTheDigestBlocksThatHoldTheBoxAndNoMore) {
  std::vector<std::byte> memory;
  const Result<ReadOutcome> row = read(matrix, {{300, 0}, {1, 1024}}, &memory);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->bytes_read, static_cast<uint64_t>(kMiB));
  EXPECT_EQ(row->bytes_over_read, static_cast<uint64_t>(kMiB - 4096));
  const Result<ReadOutcome> unchecked =
      read(matrix, {{300, 0}, {1, 1024}}, &memory, VerifyRule::kOff);
  ASSERT_TRUE(unchecked.ok());
  EXPECT_EQ(unchecked->bytes_read, 4096U);
  EXPECT_EQ(unchecked->bytes_over_read, 0U);
}

TEST_F(SmallCheckpoint, ReadsIntoStridedMemory) {
  const Box box{{10, 20}, {5, 7}};
  std::vector<float> memory(5 * 2 * 7 * 3, -1.0F);
  BoxRead wanted{tensor(matrix.name), box, {}};
  wanted.target.data = reinterpret_cast<std::byte*>(memory.data());
  wanted.target.dtype = DType::kFloat32;
  wanted.target.shape = box.sizes;
  wanted.target.strides = {42, 3};
  ASSERT_TRUE(checkpoint->read_boxes({&wanted, 1}, VerifyRule::kOnRead, CallContext()).ok());
  const std::vector<std::byte> expected = matrix.box_bytes(box);
  for (size_t row = 0; row < 5; ++row) {
    for (size_t column = 0; column < 7; ++column) {
      ASSERT_EQ(0, std::memcmp(&memory[row * 42 + column * 3],
                               expected.data() + (row * 7 + column) * 4, 4));
      ASSERT_EQ(memory[row * 42 + column * 3 + 1], -1.0F);
    }
  }
}

TEST_F(SmallCheckpoint, RefusesBoxesAndMemoryThatDoNotFit) {
  std::vector<std::byte> memory(64);
  BoxRead wanted{tensor(matrix.name), {{0, 1020}, {1, 8}}, {}};
  wanted.target.data = memory.data();
  wanted.target.dtype = DType::kFloat32;
  wanted.target.shape = {1, 8};
  const auto code = [&] {
    return checkpoint->read_boxes({&wanted, 1}, VerifyRule::kOnRead, CallContext()).status().code();
  };
  EXPECT_EQ(code(), StatusCode::kOutOfRange);
  wanted.box = {{0, 0}, {1, 8}};
  wanted.target.dtype = DType::kInt32;
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  wanted.target.dtype = DType::kFloat32;
  wanted.target.shape = {8, 1};
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  wanted.target.shape = {1, 8};
  wanted.target.read_only = true;
  EXPECT_EQ(code(), StatusCode::kInvalidArgument);
  wanted.target.read_only = false;
  wanted.target.device_type = static_cast<int32_t>(DeviceType::kCuda);
  EXPECT_EQ(code(), StatusCode::kUnimplemented);
  wanted.tensor = 99;
  EXPECT_EQ(code(), StatusCode::kOutOfRange);
}

TEST_F(SmallCheckpoint, FindsEntriesAndNamesTheNearestOnes) {
  EXPECT_TRUE(checkpoint->find_tensor("step", 0).ok());
  const Status status = checkpoint->find_tensor("layers.0.weigth", -1).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("layers.0.weight"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(checkpoint->find_object("step", -1).status().code(), StatusCode::kNotFound);
}

TEST_F(SmallCheckpoint, ReadsObjects) {
  const auto text = [&](std::string_view name) {
    const Result<std::vector<std::byte>> bytes =
        checkpoint->read_object(*checkpoint->find_object(name, -1), VerifyRule::kOnRead);
    EXPECT_TRUE(bytes.ok());
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  };
  EXPECT_EQ(text("config"), "{\"a\":1}");
  EXPECT_EQ(text("nothing"), "");
  EXPECT_EQ(checkpoint->read_object(99, VerifyRule::kOnRead).status().code(),
            StatusCode::kOutOfRange);
}

TEST_F(SmallCheckpoint, DescribesItselfAsJson) {
  const std::string with = checkpoint->info_json(true);
  for (const std::string_view part :
       {"\"schema\":1", "\"format\":\"native\"", "\"name\":\"layers.0.weight\"",
        "\"shape\":[768,1024]", "\"dtype\":\"float32\"",
        "\"content_type\":\"application/octet-stream\"", "\"tensors\":3"}) {
    EXPECT_NE(with.find(part), std::string::npos) << part << " in " << with;
  }
  EXPECT_EQ(checkpoint->info_json(false).find("layers.0.weight"), std::string::npos);
}

TEST_F(SmallCheckpoint, StopsWhenItIsCancelled) {
  CancellationFlag flag;
  flag.cancel();
  CallContext call;
  call.control.cancellation = &flag;
  std::vector<std::byte> memory(matrix.bytes.size());
  BoxRead wanted{tensor(matrix.name), whole_box(matrix.shape), {}};
  wanted.target.data = memory.data();
  wanted.target.dtype = DType::kFloat32;
  wanted.target.shape = matrix.shape;
  EXPECT_EQ(checkpoint->read_boxes({&wanted, 1}, VerifyRule::kOnRead, call).status().code(),
            StatusCode::kCancelled);
}

TEST(Checkpoint, SaysWhatIsNotThere) {
  CheckpointFixture fixture;
  EXPECT_EQ(Checkpoint::open(fixture.runtime(), fixture.location("nowhere")).status().code(),
            StatusCode::kNotFound);
}

TEST(Checkpoint, FindsTheEntryOfTheRank) {
  RandomSource random;
  CheckpointFixture fixture;
  std::vector<Dense> truth;
  std::vector<std::shared_ptr<State>> states;
  std::vector<Holding> holdings(3);
  for (size_t rank = 0; rank < 3; ++rank) {
    truth.push_back(random_dense(random, "rng", DType::kUint8, {16}));
    add_whole(&holdings[rank], truth.back(), true, EntryKind::kRankLocal);
    states.push_back(holdings[rank].state);
  }
  fixture.save(states);
  const auto checkpoint = fixture.open();
  for (size_t rank = 0; rank < 3; ++rank) {
    const size_t found = *checkpoint->find_tensor("rng", static_cast<int32_t>(rank));
    EXPECT_EQ(listed_tensor_name(checkpoint->catalog(), found), "rng@rank-" + std::to_string(rank));
  }
  EXPECT_EQ(*checkpoint->find_tensor("rng", -1), *checkpoint->find_tensor("rng", 0));
}

TEST(Checkpoint, ReadsManyBoxesAtOnceFromManyThreads) {
  RandomSource random;
  CheckpointFixture fixture;
  const Dense truth = random_dense(random, "w", DType::kUint8, {5 * kMiB});
  Holding holding;
  add_whole(&holding, truth, true);
  fixture.save_one(holding);
  const auto checkpoint = fixture.open();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::vector<std::byte>> memory(20, std::vector<std::byte>(100000));
      std::vector<BoxRead> reads;
      for (int64_t i = 0; i < 20; ++i) {
        BoxRead read{0, {{(i * 261001 + t * 7) % (5 * kMiB - 100000)}, {100000}}, {}};
        read.target.data = memory[static_cast<size_t>(i)].data();
        read.target.dtype = DType::kUint8;
        read.target.shape = {100000};
        reads.push_back(std::move(read));
      }
      ASSERT_TRUE(checkpoint->read_boxes(reads, VerifyRule::kOnRead, CallContext()).ok());
      for (size_t i = 0; i < reads.size(); ++i) ASSERT_EQ(memory[i], truth.box_bytes(reads[i].box));
    });
  }
}

}  // namespace
}  // namespace shardwright::exec::test
