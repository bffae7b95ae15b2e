// SPDX-License-Identifier: Apache-2.0
//
// Conversions between formats: every byte arrives, a conversion that was cut off goes on, the
// source stays as it was.
#include "core/exec/convert.h"

#include <atomic>

#include "core/storage/backends.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

class Convert : public testing::Test {
 protected:
  Convert() {
    shardwright::test::RandomSource random;
    truth_ = {random_dense(random, "a", DType::kFloat32, {300, 1001}),
              random_dense(random, "b", DType::kBfloat16, {7, 11, 13}),
              random_dense(random, "c", DType::kInt64, {}),
              random_dense(random, "d", DType::kUint8, {0, 3}),
              random_dense(random, "e", DType::kUint8, {2'500'000})};
    for (const Dense& tensor : truth_) {
      if (tensor.shape.empty() || tensor.shape[0] < 3) {
        add_whole(&sources_[0], tensor, true, EntryKind::kReplicated);
        continue;
      }
      const int64_t rows = tensor.shape[0] / 3;
      Box first = whole_box(tensor.shape);
      Box second = first;
      first.sizes[0] = rows;
      second.offsets[0] = rows;
      second.sizes[0] -= rows;
      add_boxes(&sources_[0], tensor, {first}, true, EntryKind::kSharded);
      add_boxes(&sources_[1], tensor, {second}, true, EntryKind::kSharded);
    }
    fixture_.save({sources_[0].state, sources_[1].state}, {}, "source");
    before_ = fixture_.keys("source");
  }

  Result<Report> run(const std::string& from, const std::string& to, ConvertOptions options,
                     std::shared_ptr<storage::Storage> target = nullptr) {
    RuntimeOptions runtime;
    runtime.threads = 2;
    const auto writing = Runtime::create(runtime);
    return convert(fixture_.runtime(), **writing, fixture_.location(from),
                   {target == nullptr ? fixture_.store() : std::move(target), to}, options,
                   CallContext());
  }
  ConvertOptions options(const char* format, uint64_t max_shard_bytes = 0) {
    ConvertOptions options;
    options.format = format;
    options.max_shard_bytes = max_shard_bytes;
    return options;
  }
  bool holds_truth(const std::string& prefix) {
    Holding target;
    for (const Dense& tensor : truth_) add_whole(&target, tensor, false);
    const auto loaded = fixture_.load({target.state}, {}, prefix);
    EXPECT_TRUE(loaded.front().ok()) << loaded.front().status().to_string();
    for (size_t i = 0; i < truth_.size(); ++i) {
      if (!holds(target, i, truth_[i])) return false;
    }
    return true;
  }

  CheckpointFixture fixture_;
  std::vector<Dense> truth_;
  Holding sources_[2];
  std::vector<std::string> before_;
};

TEST_F(Convert, ThereAndBackHasAllBytes) {
  for (const uint64_t shard : {uint64_t{0}, uint64_t{100'000}, uint64_t{1'000'000}}) {
    const std::string there = "there" + std::to_string(shard);
    const auto out = run("source", there, options("safetensors", shard));
    ASSERT_TRUE(out.ok()) << out.status().to_string();
    EXPECT_EQ(out->operation, "convert");
    EXPECT_TRUE(holds_truth(there));
    const auto back = run(there, "back" + std::to_string(shard), options("native", shard));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_TRUE(holds_truth("back" + std::to_string(shard)));
    const Result<Report> verified =
        fixture_.open("back" + std::to_string(shard))->verify(true, CallContext());
    EXPECT_TRUE(verified.ok()) << verified.status().to_string();
  }
  const auto one = run("source", "one.safetensors", options("safetensors"));
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  EXPECT_TRUE(holds_truth("one.safetensors"));
  EXPECT_EQ(fixture_.keys("source"), before_);
}

// Workers hold memory while they wait for more of it, so what they hold and what they wait for are
// of different budgets. On files, which are read directly: through staging memory.
TEST_F(Convert, EndsWithTheLeastMemoryAndManyWorkers) {
  shardwright::test::RandomSource random;
  const std::vector<Dense> truth{random_dense(random, "large", DType::kUint8, {7001, 5731})};
  Holding whole;
  add_whole(&whole, truth[0], true);
  fixture_.save({whole.state}, {}, "large");
  RuntimeOptions least;
  least.threads = 4;
  least.memory_budget = 2 * kWriteBlockBytes;
  const auto reading = Runtime::create(least);
  const auto writing = Runtime::create(least);
  CallContext call;
  call.control.end_within(real_clock().monotonic_ns(), int64_t{120} * 1000 * 1000 * 1000);
  const shardwright::test::TemporaryDirectory directory;
  const std::shared_ptr<storage::Storage> files = storage::make_posix_storage(directory / "root");
  format::Location from = fixture_.location("large");
  for (const char* format : {"safetensors", "native"}) {
    const format::Location to{files, format};
    const auto made = convert(**reading, **writing, from, to, options(format), call);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    from = to;
  }
}

TEST_F(Convert, RefusesOnePlaceForBoth) {
  for (const char* to : {"source", "source/below"}) {
    const Status refused = run("source", to, options("safetensors")).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << to;
    EXPECT_EQ(refused.detail("parameter"), "target");
  }
  EXPECT_EQ(fixture_.keys("source"), before_);
}

TEST_F(Convert, ReplacesAnotherCheckpointOnlyWhenTold) {
  ASSERT_TRUE(run("source", "t", options("native", 1'000'000)).ok());
  EXPECT_TRUE(run("source", "t", options("native", 1'000'000)).ok());  // it is this one
  EXPECT_EQ(run("source", "t", options("native", 100'000)).status().code(),
            StatusCode::kAlreadyExists);
  ConvertOptions replace = options("native", 100'000);
  replace.overwrite = Overwrite::kReplace;
  EXPECT_TRUE(run("source", "t", replace).ok());
  EXPECT_TRUE(holds_truth("t"));
}

// Whichever call of the storage fails: the next conversion goes on, and leaves what one that was
// never cut off leaves.
TEST_F(Convert, GoesOnWhereItWasCutOff) {
  for (const char* format : {"native", "safetensors"}) {
    const std::string to = std::string("cut-") + format;
    const ConvertOptions small = options(format, 1'000'000);
    ASSERT_TRUE(run("source", to + "-whole", small).ok());
    const size_t keys = fixture_.keys(to + "-whole").size();
    bool has_failed = true;
    bool went_on = false;
    for (int64_t failing = 1; has_failed; failing += 3) {
      const std::string place = to + std::to_string(failing);
      std::atomic<int64_t> calls = 0;
      const std::shared_ptr<storage::Storage> faulty = storage::make_fault_storage(
          *fixture_.store(), [&](const storage::StorageEvent&, uint64_t*) {
            return ++calls >= failing ? unavailable("the storage is away") : Status();
          });
      has_failed = !run("source", place, small, faulty).ok();
      const auto again = run("source", place, small);
      ASSERT_TRUE(again.ok()) << place << ": " << again.status().to_string();
      for (const std::string& note : again->notes) went_on |= note.find("earlier") != note.npos;
      EXPECT_TRUE(holds_truth(place)) << place;
      EXPECT_EQ(fixture_.keys(place).size(), keys) << place;
    }
    EXPECT_TRUE(went_on) << format;
  }
  EXPECT_EQ(fixture_.keys("source"), before_);
}

// A byte that changes in the target's storage after it was written.
TEST_F(Convert, ReadsBackWhatItWrote) {
  for (const char* format : {"native", "safetensors"}) {
    const std::string to = std::string("lost-") + format;
    const auto writer = fixture_.runtime().formats().writer(format);
    ASSERT_TRUE(writer.ok());
    const std::string commit_key = (*writer)->commit_key(fixture_.location(to));
    bool changed = false;
    const std::shared_ptr<storage::Storage> forgetful = storage::make_fault_storage(
        *fixture_.store(), [&](const storage::StorageEvent& event, uint64_t*) {
          const bool is_commit = event.operation == storage::StorageEvent::Operation::kCommit;
          if (!is_commit || event.key != commit_key) return Status();
          for (const std::string& key : fixture_.keys(to)) {
            std::vector<std::byte> bytes = fixture_.get(key);
            if (bytes.size() < 2'000'000) continue;
            bytes[bytes.size() / 2] ^= std::byte{4};
            fixture_.put(key, bytes);
            changed = true;
          }
          return Status();
        });
    const Status status = run("source", to, options(format, 3'000'000), forgetful).status();
    EXPECT_TRUE(changed) << format;
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
    EXPECT_EQ(status.detail("tensor"), "e");
    ConvertOptions trusting = options(format, 3'000'000);
    trusting.compare = false;
    EXPECT_TRUE(run("source", to + "2", trusting).ok());
  }
}

}  // namespace
}  // namespace shardwright::exec::test
