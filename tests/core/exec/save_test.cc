// SPDX-License-Identifier: Apache-2.0
//
// Saves that succeed, and what they leave at the path.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "tests/core/exec/save_world.h"
#include "tests/core/exec/serial_storage.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

namespace native = format::native;

class SaveTest : public testing::Test {
 protected:
  std::unique_ptr<Runtime> runtime_ = make_runtime();
  format::Location location_{storage::make_memory_storage(), "run/ckpt"};
};

TEST_F(SaveTest, GivesBackTheStateForAnyNumberOfRanks) {
  for (const int32_t ranks : {1, 2, 3, 4}) {
    const World world = make_world(ranks, 17);
    const auto results = save_world(*runtime_, world, location_);
    ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
    EXPECT_TRUE(stores(*runtime_, location_, world)) << ranks;
  }
}

TEST_F(SaveTest, WorksOnFilesWithDirectWrites) {
  const shardwright::test::TemporaryDirectory directory;
  const format::Location files{storage::make_posix_storage(directory.path()), "ckpt"};
  for (const int32_t ranks : {1, 3}) {
    const World world = make_world(ranks, 18);
    const auto results = save_world(*runtime_, world, files);
    ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
    EXPECT_TRUE(stores(*runtime_, files, world)) << ranks;
  }
}

TEST_F(SaveTest, WritesAscendingWithoutGapsWhereTheStorageNeedsIt) {
  const format::Location serial{std::make_shared<SerialStorage>(), "ckpt"};
  const World world = make_world(2, 19);
  const auto results = save_world(*runtime_, world, serial);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_TRUE(stores(*runtime_, serial, world));
}

TEST_F(SaveTest, ReplacesTheOldCheckpointAndRemovesItsGeneration) {
  const World old_world = make_world(2, 1);
  const World new_world = make_world(3, 2);
  const auto first = save_world(*runtime_, old_world, location_);
  ASSERT_EQ(agreed_code(first), StatusCode::kOk) << texts(first);
  const auto second = save_world(*runtime_, new_world, location_);
  ASSERT_EQ(agreed_code(second), StatusCode::kOk) << texts(second);
  EXPECT_TRUE(stores(*runtime_, location_, new_world));
  ASSERT_EQ(second[0]->removed.size(), 1U);
  EXPECT_EQ(second[0]->removed[0].name, first[0]->generation);
  EXPECT_GT(second[0]->removed[0].bytes, 0U);
  for (const std::string& key : keys_at(location_))
    EXPECT_EQ(key.find(first[0]->generation), std::string::npos) << key;
}

TEST_F(SaveTest, KeepsAsManyGenerationsAsAsked) {
  SaveOptions options;
  options.keep_generations = 3;
  std::vector<std::string> generations;
  for (uint64_t i = 0; i < 5; ++i) {
    const auto results = save_world(*runtime_, make_small_world(1, i), location_, options);
    ASSERT_TRUE(results[0].ok()) << texts(results);
    generations.push_back(results[0]->generation);
  }
  const auto listed = native::list_generations(location_);
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  ASSERT_EQ(listed->size(), 3U);
  for (const format::GenerationInfo& info : *listed) {
    EXPECT_TRUE(info.named);
    EXPECT_NE(std::find(generations.begin() + 2, generations.end(), info.generation),
              generations.end());
  }
}

TEST_F(SaveTest, RefusesWhatIsThereBeforeAnythingIsWritten) {
  const World old_world = make_small_world(2, 1);
  ASSERT_EQ(agreed_code(save_world(*runtime_, old_world, location_)), StatusCode::kOk);
  const auto before = contents(location_);
  SaveOptions options;
  options.overwrite = Overwrite::kRefuse;
  const auto results = save_world(*runtime_, make_small_world(2, 2), location_, options);
  EXPECT_EQ(agreed_code(results), StatusCode::kAlreadyExists) << texts(results);
  EXPECT_EQ(contents(location_), before);
  const format::Location other{location_.storage, "elsewhere"};
  EXPECT_EQ(agreed_code(save_world(*runtime_, old_world, other, options)), StatusCode::kOk);
}

TEST_F(SaveTest, DigestsAndDurabilityThatAreOffShowInTheReport) {
  const shardwright::test::TemporaryDirectory directory;
  const format::Location files{storage::make_posix_storage(directory.path()), "ckpt"};
  const World world = make_small_world(2, 1);
  SaveOptions options;
  options.digests = false;
  options.durability = Durability::kNone;
  const auto results = save_world(*runtime_, world, files, options);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  for (const Result<Report>& report : results) {
    EXPECT_EQ(report->durability, "none");
    EXPECT_EQ(report->dir_fsync, "skipped");
    EXPECT_FALSE(report->digests);
  }
  EXPECT_TRUE(stores(*runtime_, files, world));
}

TEST_F(SaveTest, WithoutDurabilityNothingIsSynced) {
  std::atomic<int> syncs = 0;
  const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
  const format::Location recorded{
      storage::make_recording_storage(*memory,
                                      [&syncs](const storage::StorageEvent& event) {
                                        using Operation = storage::StorageEvent::Operation;
                                        syncs += event.operation == Operation::kSync ||
                                                 event.operation == Operation::kSyncPrefix;
                                      }),
      "ckpt"};
  SaveOptions options;
  options.durability = Durability::kNone;
  const World world = make_small_world(1, 1);
  ASSERT_TRUE(save_world(*runtime_, world, recorded, options)[0].ok());
  EXPECT_EQ(syncs, 0);
  ASSERT_TRUE(save_world(*runtime_, world, recorded)[0].ok());
  EXPECT_EQ(syncs, 3);  // file, prefix, manifest
}

TEST_F(SaveTest, ARankThatWritesNothingHasNoFile) {
  World world = make_small_world(3, 5);
  world.ranks[1] = Holding();
  world.ranks[1].state = std::make_shared<State>();
  world.ranks[0] = Holding();
  add_whole(&world.ranks[0], world.tensors[0], true, EntryKind::kSharded);
  world.ranks[2] = Holding();
  add_object(&world.ranks[2], "only", "bytes", EntryKind::kRankLocal);
  const auto results = save_world(*runtime_, world, location_);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_EQ(results[1]->bytes_written, 0U);
  EXPECT_TRUE(stores(*runtime_, location_, world));
  for (const std::string& key : keys_at(location_))
    EXPECT_EQ(key.find("rank-00001"), std::string::npos) << key;
}

TEST_F(SaveTest, AnEmptyStateIsACheckpointToo) {
  World world;
  world.ranks.resize(2);
  const auto results = save_world(*runtime_, world, location_);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_TRUE(stores(*runtime_, location_, world));
}

TEST_F(SaveTest, ReplacesADamagedManifestAndLeavesItsFilesAlone) {
  const World old_world = make_small_world(1, 1);
  const auto first = save_world(*runtime_, old_world, location_);
  ASSERT_TRUE(first[0].ok());
  const std::string key = location_.prefix + "/manifest.shw";
  auto bytes = *storage::read_all(*location_.storage, key, UINT64_MAX / 2);
  bytes[bytes.size() / 2] ^= std::byte{1};
  ASSERT_TRUE(location_.storage->remove(key).ok());
  {
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreateVisible;
    auto object = location_.storage->open(key, create);
    ASSERT_TRUE((*object)->write_at(0, bytes).ok());
    ASSERT_TRUE((*object)->close().ok());
  }
  const World new_world = make_small_world(1, 2);
  const auto second = save_world(*runtime_, new_world, location_);
  ASSERT_TRUE(second[0].ok()) << texts(second);
  EXPECT_TRUE(stores(*runtime_, location_, new_world));
  EXPECT_TRUE(second[0]->removed.empty());
  EXPECT_FALSE(second[0]->notes.empty());
  const std::vector<std::string> keys = keys_at(location_);
  EXPECT_TRUE(std::ranges::any_of(keys, [&](const std::string& each) {
    return each.find(first[0]->generation) != std::string::npos;
  }));
}

TEST_F(SaveTest, MetadataComesBack) {
  SaveOptions options;
  options.metadata = {{"step", "100"}, {"config", "{\"a\": 1}"}};
  ASSERT_TRUE(save_world(*runtime_, make_small_world(1, 1), location_, options)[0].ok());
  const auto opened = Checkpoint::open(*runtime_, location_);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->opened().metadata(), options.metadata);
}

TEST_F(SaveTest, TheReportSaysWhatWasDone) {
  const World world = make_world(2, 3);
  const auto results = save_world(*runtime_, world, location_);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  uint64_t written = 0;
  for (size_t rank = 0; rank < 2; ++rank) {
    const Report& report = *results[rank];
    EXPECT_EQ(report.operation, "save");
    EXPECT_EQ(report.format, "native");
    EXPECT_EQ(report.path, "run/ckpt");
    EXPECT_EQ(report.rank, static_cast<int32_t>(rank));
    EXPECT_EQ(report.world_size, 2);
    EXPECT_EQ(report.generation, results[0]->generation);
    EXPECT_EQ(report.durability, "volatile");
    EXPECT_EQ(report.tensors, world.tensors.size());
    EXPECT_EQ(report.objects, 3U);
    EXPECT_EQ(report.bytes_total, results[0]->bytes_total);
    EXPECT_EQ(report.files, 2U);
    EXPECT_EQ(report.bytes_files, results[0]->bytes_files);
    EXPECT_GT(report.bytes_state, 0U);
    written += report.bytes_written;
  }
  EXPECT_EQ(results[0]->bytes_total, written);  // payload, which is stored once
  EXPECT_GT(results[0]->bytes_files, written);
}

TEST_F(SaveTest, ProgressReachesItsEnd) {
  const World world = make_world(1, 3);
  Progress progress;
  bool staged = false;
  CallContext call;
  call.progress = &progress;
  call.on_staged = [&staged] { staged = true; };
  const auto results = save_world(
      *runtime_, world, [&](int32_t) { return RankCall{SaveOptions(), location_, call}; });
  ASSERT_TRUE(results[0].ok()) << texts(results);
  EXPECT_TRUE(staged);
  EXPECT_EQ(progress.stage.load(), static_cast<int32_t>(Stage::kDone));
  EXPECT_EQ(progress.bytes_done.load(), progress.bytes_total.load());
  EXPECT_GT(progress.bytes_total.load(), 0U);
  EXPECT_EQ(progress.items_done.load(), progress.items_total.load());
}

// Everything at the path after a save with fixed time and generation.
auto deterministic_save(const World& world, int32_t threads) {
  shardwright::test::FakeClock clock;
  RuntimeOptions options;
  options.threads = threads;
  options.clock = &clock;
  options.random = counting_random(7);
  const auto runtime = Runtime::create(options);
  EXPECT_TRUE(runtime.ok());
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  const auto results = save_world(**runtime, world, location);
  EXPECT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  return contents(location);
}

TEST_F(SaveTest, EqualInputsGiveEqualBytesWhateverTheThreadCount) {
  for (const int32_t ranks : {1, 3}) {
    const World world = make_world(ranks, 23);
    const auto expected = deterministic_save(world, 1);
    EXPECT_EQ(expected.size(), static_cast<size_t>(ranks) + 1);
    for (const int32_t threads : {2, 4, 8}) EXPECT_EQ(deterministic_save(world, threads), expected);
  }
}

TEST_F(SaveTest, StagingMemoryStaysWithinASmallBudget) {
  RuntimeOptions options;
  options.threads = 8;
  options.memory_budget = 2 * kWriteBlockBytes;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok());
  World world;
  world.ranks.resize(1);
  shardwright::test::RandomSource random(5);
  world.tensors.push_back(random_dense(random, "large", DType::kFloat32, Dims{9, 1 << 20}));
  add_whole(&world.ranks[0], world.tensors[0], true);
  const auto results = save_world(**runtime, world, location_);
  ASSERT_TRUE(results[0].ok()) << texts(results);
  EXPECT_LE(results[0]->staging_peak_bytes, options.memory_budget);
  EXPECT_GT(results[0]->staging_peak_bytes, 0U);
  EXPECT_TRUE(stores(**runtime, location_, world));
}

TEST_F(SaveTest, ATraceHoldsTheSteps) {
  const shardwright::test::TemporaryDirectory directory;
  SaveOptions options;
  options.trace_path = directory / "trace.json";
  const auto results = save_world(*runtime_, make_small_world(2, 1), location_, options);
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  const auto files = storage::make_posix_storage(directory.path());
  for (const char* name : {"trace.json", "trace.json.rank-1"}) {
    const auto bytes = storage::read_all(*files, name, 1 << 20);
    ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
    const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    EXPECT_NE(text.find("\"traceEvents\""), std::string::npos);
    EXPECT_NE(text.find("\"sync\""), std::string::npos);
  }
}

TEST_F(SaveTest, ATraceThatCannotBeWrittenIsANote) {
  SaveOptions options;
  options.trace_path = "/proc/no/such/place/trace.json";
  const auto results = save_world(*runtime_, make_small_world(1, 1), location_, options);
  ASSERT_TRUE(results[0].ok()) << texts(results);
  ASSERT_EQ(results[0]->notes.size(), 1U);
}

}  // namespace
}  // namespace shardwright::exec::test
