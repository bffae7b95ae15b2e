// SPDX-License-Identifier: Apache-2.0
//
// Saving safetensors: the steps of a commit on a format without generations, digests and files of
// ranks. Reshard tests load what any layout saved.
#include <atomic>

#include "core/exec/housekeeping.h"
#include "core/storage/backends.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

SaveOptions safetensors_options(uint64_t max_shard_bytes = 0) {
  SaveOptions options;
  options.format = "safetensors";
  options.max_shard_bytes = max_shard_bytes;
  return options;
}

// A row-sharded, a column-sharded and a replicated tensor.
World make_model(int32_t world_size, uint64_t number) {
  shardwright::test::RandomSource random(number);
  World world;
  world.tensors = {random_dense(random, "rows", DType::kFloat32, {12, 1000}),
                   random_dense(random, "columns", DType::kBfloat16, {500, 24}),
                   random_dense(random, "norm", DType::kFloat64, {7})};
  world.ranks.resize(static_cast<size_t>(world_size));
  for (int64_t r = 0; r < world_size; ++r) {
    Holding* const holding = &world.ranks[static_cast<size_t>(r)];
    const int64_t rows = 12 / world_size;
    const int64_t columns = 24 / world_size;
    add_boxes(holding, world.tensors[0], {{{r * rows, 0}, {rows, 1000}}}, true,
              EntryKind::kSharded);
    add_boxes(holding, world.tensors[1], {{{0, r * columns}, {500, columns}}}, true,
              EntryKind::kSharded);
    add_whole(holding, world.tensors[2], true, EntryKind::kReplicated);
  }
  return world;
}

class SafetensorsSave : public testing::TestWithParam<const char*> {
 protected:
  format::Location location() const { return {memory_, GetParam()}; }
  Status save(const World& world, const SaveOptions& options) {
    const auto saved = save_world(*runtime_, world, location(), options);
    agreed_code(saved);
    return saved.front().status();
  }
  bool holds_now(const World& world) { return bool(stores(*runtime_, location(), world)); }
  std::vector<std::string> keys() const {
    const format::Location all{memory_, ""};
    return keys_at(all);
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime();
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
};

TEST_P(SafetensorsSave, LeavesTheFilesOfTheLastSaveAndNothingElse) {
  const World first = make_model(4, 1);
  const World second = make_model(2, 2);
  ASSERT_TRUE(save(first, safetensors_options(20'000)).ok());
  EXPECT_TRUE(holds_now(first));
  const std::vector<std::string> before = keys();
  ASSERT_TRUE(save(second, safetensors_options(20'000)).ok());
  EXPECT_TRUE(holds_now(second));
  EXPECT_EQ(keys().size(), before.size());
}

TEST_P(SafetensorsSave, RefusesWhatTheFormatCannotHoldBeforeItWrites) {
  shardwright::test::RandomSource random;
  const auto refused = [&](const Dense& tensor, EntryKind kind) {
    World world;
    world.ranks.resize(2);
    for (Holding& holding : world.ranks) add_whole(&holding, tensor, true, kind);
    return save(world, safetensors_options());
  };
  const Status dtype =
      refused(random_dense(random, "wide", DType::kComplex128, {4}), EntryKind::kReplicated);
  EXPECT_EQ(dtype.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(dtype.detail("tensor"), "wide");
  const Status local =
      refused(random_dense(random, "seed", DType::kUint8, {4}), EntryKind::kRankLocal);
  EXPECT_EQ(local.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(local.detail("tensor"), "seed");
  const Status name =
      refused(random_dense(random, "__metadata__", DType::kUint8, {4}), EntryKind::kReplicated);
  EXPECT_EQ(name.detail("tensor"), "__metadata__");
  World world = make_model(2, 3);
  add_object(&world.ranks[1], "blob", "\xff\xfe", EntryKind::kRankLocal);
  const Status object = save(world, safetensors_options());
  EXPECT_EQ(object.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(object.detail("object"), "blob");
  world = make_model(1, 3);
  add_object(&world.ranks[0], "small", "x");
  add_object(&world.ranks[0], "large", std::string(50'000'000, 'x'));
  const Status large = save(world, safetensors_options());
  EXPECT_EQ(large.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(large.detail("object"), "large");
  SaveOptions taken = safetensors_options();
  taken.metadata["shardwright.object:x"] = "data:;base64,";
  EXPECT_EQ(save(make_model(1, 3), taken).detail("parameter"), "metadata");
  SaveOptions two = safetensors_options();
  two.keep_generations = 2;
  EXPECT_EQ(save(make_model(1, 3), two).detail("parameter"), "keep_generations");
  EXPECT_TRUE(keys().empty());
}

// Bytes are text of the first file's metadata, and are bytes again where they are read.
TEST_P(SafetensorsSave, KeepsBytes) {
  World world = make_model(2, 4);
  const std::pair<const char*, std::string> objects[] = {
      {"blob", std::string("\xff\xfe\0z", 4)}, {"empty", ""}, {"shardwright.object:x", "y"}};
  for (Holding& holding : world.ranks) {
    for (const auto& [name, bytes] : objects) add_object(&holding, name, bytes);
  }
  ASSERT_TRUE(save(world, safetensors_options(20'000)).ok());
  EXPECT_TRUE(holds_now(world));
  const auto opened = Checkpoint::open(*runtime_, location());
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->opened().metadata().size(), 1U);
  ASSERT_EQ((*opened)->catalog().objects.size(), 3U);
  for (const auto& [name, bytes] : objects) {
    const auto found = (*opened)->find_object(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const auto read = (*opened)->read_object(*found, VerifyRule::kOnRead);
    ASSERT_TRUE(read.ok()) << read.status().to_string();
    EXPECT_TRUE(std::ranges::equal(*read, std::as_bytes(std::span(bytes)))) << name;
  }
  const auto verified = (*opened)->verify(true, CallContext());
  ASSERT_TRUE(verified.ok()) << verified.status().to_string();
}

// Every call of the storage fails once: the checkpoint before stays, or the new one is there.
TEST_P(SafetensorsSave, KeepsTheOldOneWhereverTheStorageFails) {
  const World old_world = make_model(2, 1);
  const World new_world = make_model(2, 2);
  ASSERT_TRUE(save(old_world, safetensors_options(20'000)).ok());
  const auto before = contents({memory_, ""});
  bool has_failed = true;
  for (int64_t failing = 1; has_failed; ++failing) {
    std::atomic<int64_t> calls = 0;
    const std::shared_ptr<storage::Storage> faulty =
        storage::make_fault_storage(*memory_, [&](const storage::StorageEvent&, uint64_t*) {
          return ++calls == failing ? unavailable("the storage is away") : Status();
        });
    const auto saved =
        save_world(*runtime_, new_world, {faulty, GetParam()}, safetensors_options(20'000));
    has_failed = calls >= failing;
    const Status status = saved.front().status();
    const bool unknown = status.detail("commit") == "unknown";
    EXPECT_TRUE(has_failed || status.ok()) << failing << ": " << status.to_string();
    if (status.ok() || unknown) {
      EXPECT_TRUE(holds_now(new_world) || (unknown && holds_now(old_world))) << failing;
      ASSERT_TRUE(save(old_world, safetensors_options(20'000)).ok());
    } else {
      EXPECT_TRUE(holds_now(old_world)) << failing << ": " << status.to_string();
    }
  }
  // What could not be removed at its time is found later.
  if (location().prefix == "model") {
    GcOptions options;
    options.apply = true;
    options.grace_ns = -1;
    const Result<Report> collected = collect_garbage(*runtime_, location(), options);
    EXPECT_TRUE(collected.ok() && !collected->removed.empty()) << collected.status().to_string();
  }
  EXPECT_EQ(contents({memory_, ""}).size(), before.size());
  EXPECT_TRUE(holds_now(old_world));
}

INSTANTIATE_TEST_SUITE_P(Places, SafetensorsSave, testing::Values("model", "one.safetensors"));

TEST(SafetensorsFiles, AreWrittenByRanksOnPosix) {
  const shardwright::test::TemporaryDirectory directory;
  const std::unique_ptr<Runtime> runtime = make_runtime();
  const World world = make_model(4, 5);
  for (const char* place : {"model", "one.safetensors"}) {
    const format::Location location{storage::make_posix_storage(directory.path()), place};
    const auto saved = save_world(*runtime, world, location, safetensors_options(20'000));
    EXPECT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
    EXPECT_TRUE(stores(*runtime, location, world));
  }
}

// So that tensors of whole pages are transferred without a copy.
TEST(SafetensorsFiles, OfAMiBBeginTheirTensorsAtAPage) {
  const std::unique_ptr<Runtime> runtime = make_runtime();
  const format::Location location{storage::make_memory_storage(), "one.safetensors"};
  shardwright::test::RandomSource random;
  for (const int64_t bytes : {(1 << 20) - 1, 1 << 20}) {
    World world;
    world.tensors = {random_dense(random, "w", DType::kUint8, {bytes})};
    world.ranks.resize(1);
    add_whole(&world.ranks[0], world.tensors[0], true, EntryKind::kReplicated);
    const auto saved = save_world(*runtime, world, location, safetensors_options());
    ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
    const std::shared_ptr<const Checkpoint> made = *Checkpoint::open(*runtime, location);
    const uint64_t begin = made->opened().chunk_extent(0)->offset;
    EXPECT_EQ(begin % 8, 0U);
    EXPECT_EQ(begin % 4096 == 0, bytes >= 1 << 20) << begin;
    EXPECT_TRUE(stores(*runtime, location, world));
  }
}

TEST(SafetensorsFiles, OfASaveThatWasNotCommittedAreNoCheckpoint) {
  const std::unique_ptr<Runtime> runtime = make_runtime();
  const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
  const format::Location location{memory, "p"};
  const World world = make_model(2, 1);
  ASSERT_EQ(agreed_code(save_world(*runtime, world, location, safetensors_options())),
            StatusCode::kOk);
  ASSERT_TRUE(memory->remove("p/model.safetensors.index.json").ok());
  EXPECT_EQ(Checkpoint::open(*runtime, location).status().code(), StatusCode::kNotFound);
}

TEST(SafetensorsFiles, AnotherFormatIsRefusedByName) {
  const std::unique_ptr<Runtime> runtime = make_runtime();
  const format::Location location{storage::make_memory_storage(), "p"};
  SaveOptions options;
  options.format = "torch_dcp";
  const Status refused = save_world(*runtime, make_model(1, 1), location, options).front().status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(refused.detail("parameter"), "format");
}

TEST(SafetensorsFiles, AreNotPutBesideWhatIsReadBeforeThem) {
  const std::unique_ptr<Runtime> runtime = make_runtime();
  const World world = make_model(1, 1);
  for (const char* other : {"p/model.safetensors", "p/manifest.shw", "p/.metadata",
                            "p/__0.metadata", "p/metadata.json"}) {
    CheckpointFixture fixture;
    fixture.put(other, std::vector<std::byte>(16));
    const auto saved = save_world(*runtime, world, fixture.location("p"), safetensors_options());
    EXPECT_EQ(saved.front().status().code(), StatusCode::kFailedPrecondition) << other;
    EXPECT_EQ(saved.front().status().detail("file"), other);
    EXPECT_EQ(fixture.keys().size(), 1U);
  }
}

}  // namespace
}  // namespace shardwright::exec::test
