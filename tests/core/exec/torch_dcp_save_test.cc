// SPDX-License-Identifier: Apache-2.0
//
// Saving directories of torch.distributed.checkpoint: the steps of a commit on a format that is
// written in place, beside files of others, and whose digests lie in a file of their own.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/exec/convert.h"
#include "core/exec/housekeeping.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/item_archive.h"
#include "core/storage/backends.h"
#include "tests/core/exec/save_world.h"
#include "tests/core/exec/serial_storage.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

namespace torch_dcp = format::torch_dcp;

SaveOptions dcp_options() {
  SaveOptions options;
  options.format = "torch-dcp";
  return options;
}

class TorchDcpSave : public testing::Test {
 protected:
  format::Location location() const { return {memory_, "ckpt"}; }
  Status save(const World& world, const SaveOptions& options = dcp_options()) {
    const auto saved = save_world(*runtime_, world, location(), options);
    agreed_code(saved);
    return saved.front().status();
  }
  bool holds_now(const World& world) { return bool(stores(*runtime_, location(), world)); }
  std::vector<std::string> keys() const { return keys_at(location()); }
  std::string key_with(std::string_view part) const {
    for (const std::string& key : keys()) {
      if (key.find(part) != std::string::npos) return key;
    }
    ADD_FAILURE() << "no key with " << part;
    return "";
  }
  std::vector<std::byte> get(const std::string& key) const {
    return *storage::read_all(*memory_, key, uint64_t{1} << 30);
  }
  void put(const std::string& key, std::span<const std::byte> bytes) const {
    ASSERT_TRUE(memory_->remove(key).ok());
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    const auto object = memory_->open(key, options);
    ASSERT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
  }
  // A checkpoint that torch wrote.
  void put_golden(std::string_view name) const {
    const std::filesystem::path from =
        fmt::format("{}/tests/golden/torch_dcp/{}/ckpt", std::getenv("SHW_SOURCE_DIR"), name);
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      put("ckpt/" + entry.path().filename().string(), std::as_bytes(std::span(bytes)));
    }
  }
  Status collect() {
    GcOptions options;
    options.apply = true;
    options.grace_ns = -1;
    return collect_garbage(*runtime_, location(), options).status();
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime();
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
};

TEST_F(TorchDcpSave, HoldsEveryKindOfEntryOfAnyNumberOfRanks) {
  for (const int32_t ranks : {1, 2, 3, 5}) {
    const World world = make_world(ranks, static_cast<uint64_t>(ranks));
    ASSERT_TRUE(save(world).ok());
    EXPECT_TRUE(stores(*runtime_, location(), world)) << ranks;
    EXPECT_TRUE((*Checkpoint::open(*runtime_, location()))->opened().digest_block_bytes() > 0);
  }
}

TEST_F(TorchDcpSave, LeavesTheFilesOfTheLastSaveAndAllOfOthers) {
  const std::vector<std::byte> mine(3, std::byte{7});
  put("ckpt/train.log", mine);
  put("ckpt/__7_0.distcp", mine);
  put("ckpt/logs/__0_0.distcp", mine);
  ASSERT_TRUE(save(make_world(4, 1)).ok());
  const size_t first = keys().size();
  const World second = make_world(2, 2);
  ASSERT_TRUE(save(second).ok());
  EXPECT_TRUE(holds_now(second));
  EXPECT_EQ(keys().size(), first - 2);  // two ranks less
  for (const char* key : {"ckpt/train.log", "ckpt/__7_0.distcp", "ckpt/logs/__0_0.distcp"})
    EXPECT_EQ(get(key), mine) << key;
}

TEST_F(TorchDcpSave, ReplacesWhatTorchWroteAndItsFilesAlone) {
  put_golden("dcp_mesh2d_w4");
  const std::vector<std::byte> mine(3, std::byte{7});
  put("ckpt/__0_1.distcp", mine);  // the index does not name it
  const size_t torchs = keys().size();
  ASSERT_GT(torchs, 4U);
  const World world = make_world(1, 3);
  ASSERT_TRUE(save(world).ok());
  EXPECT_TRUE(holds_now(world));
  for (const std::string& key : keys()) {
    const std::string_view name = std::string_view(key).substr(5);
    const bool is_torchs = torch_dcp::is_data_file(name) &&
                           torch_dcp::generation_of_file(name).empty() && name != "__0_1.distcp";
    EXPECT_FALSE(is_torchs) << key;
  }
  EXPECT_EQ(get("ckpt/__0_1.distcp"), mine);
}

// Every call of the storage fails once: the checkpoint before stays, or the new one is there.
TEST_F(TorchDcpSave, KeepsTheOldOneWhereverTheStorageFails) {
  const World old_world = make_small_world(2, 1);
  const World new_world = make_small_world(2, 2);
  ASSERT_TRUE(save(old_world).ok());
  const size_t before = keys().size();
  bool has_failed = true;
  for (int64_t failing = 1; has_failed; ++failing) {
    std::atomic<int64_t> calls = 0;
    const std::shared_ptr<storage::Storage> faulty =
        storage::make_fault_storage(*memory_, [&](const storage::StorageEvent&, uint64_t*) {
          return ++calls == failing ? unavailable("the storage is away") : Status();
        });
    const auto saved = save_world(*runtime_, new_world, {faulty, "ckpt"}, dcp_options());
    has_failed = calls >= failing;
    const Status status = saved.front().status();
    const bool unknown = status.detail("commit") == "unknown";
    EXPECT_TRUE(has_failed || status.ok()) << failing << ": " << status.to_string();
    if (status.ok() || unknown) {
      EXPECT_TRUE(holds_now(new_world) || (unknown && holds_now(old_world))) << failing;
      ASSERT_TRUE(save(old_world).ok());
    } else {
      EXPECT_TRUE(holds_now(old_world)) << failing << ": " << status.to_string();
    }
  }
  ASSERT_TRUE(collect().ok());  // what could not be removed at its time
  EXPECT_EQ(keys().size(), before);
  EXPECT_TRUE(holds_now(old_world));
}

TEST_F(TorchDcpSave, RefusesWhatTheFormatCannotHoldBeforeItWrites) {
  shardwright::test::RandomSource random;
  World world;
  world.ranks.resize(1);
  add_whole(&world.ranks[0], random_dense(random, "odd", DType::kFloat8E3m4, {4}), true);
  const Status dtype = save(world);
  EXPECT_EQ(dtype.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(dtype.detail("tensor"), "odd");
  SaveOptions two = dcp_options();
  two.keep_generations = 2;
  EXPECT_EQ(save(make_small_world(1, 3), two).detail("parameter"), "keep_generations");
  for (const char* name : {"rng.rank-0", "rng.rank-2"}) {  // as a rank's entry would be stored
    World twice;
    twice.ranks.resize(1);
    add_whole(&twice.ranks[0], random_dense(random, "rng", DType::kUint8, {4}), true,
              EntryKind::kRankLocal);
    add_whole(&twice.ranks[0], random_dense(random, name, DType::kUint8, {4}), true);
    EXPECT_EQ(save(twice).code(), StatusCode::kInvalidArgument) << name;
  }
  World text;
  text.ranks.resize(1);
  std::vector<ObjectEntry> objects(1);
  objects[0].name = "broken";
  objects[0].content_type = "application/json";
  const std::string_view broken = "{\"a\": ";
  objects[0].bytes.assign(std::as_bytes(std::span(broken)).begin(),
                          std::as_bytes(std::span(broken)).end());
  ASSERT_TRUE(text.ranks[0].state->add_objects(std::move(objects)).ok());
  EXPECT_EQ(save(text).detail("object"), "broken");
  EXPECT_TRUE(keys_at({memory_, ""}).empty() || keys().size() <= 1);  // the lock
}

TEST_F(TorchDcpSave, IsNotPutBesideWhatIsReadBeforeOrBehindIt) {
  for (const char* other :
       {"ckpt/manifest.shw", "ckpt/__0.metadata", "ckpt/metadata.json",
        "ckpt/latest_checkpointed_iteration.txt", "ckpt/model-00001-of-00002.safetensors",
        "ckpt/model.safetensors.index.json"}) {
    put(other, std::vector<std::byte>(16));
    const Status refused = save(make_small_world(1, 1));
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << other;
    EXPECT_EQ(refused.detail("file"), other);
    ASSERT_TRUE(memory_->remove(other).ok());
  }
}

TEST_F(TorchDcpSave, FindsEveryFlippedBitOfWhatItStored) {
  const World world = make_small_world(2, 1);
  ASSERT_TRUE(save(world).ok());
  const std::shared_ptr<const Checkpoint> made = *Checkpoint::open(*runtime_, location());
  for (uint64_t chunk = 0; chunk < made->catalog().chunk_count(); ++chunk) {
    const format::Extent extent = *made->opened().chunk_extent(chunk);
    const std::string key = "ckpt/" + made->opened().files()[extent.file].key;
    const std::vector<std::byte> sound = get(key);
    for (const uint64_t at : {uint64_t{0}, extent.size_bytes / 2, extent.size_bytes - 1}) {
      std::vector<std::byte> spoiled = sound;
      spoiled[extent.offset + at] ^= std::byte{4};
      put(key, spoiled);
      EXPECT_FALSE(stores(*runtime_, location(), world)) << chunk << " at " << at;
    }
    put(key, sound);
  }
  EXPECT_TRUE(holds_now(world));
}

// Digests that cannot be used are as good as none; what they protect stays readable.
TEST_F(TorchDcpSave, OpensWhateverIsWrongWithItsDigests) {
  const World world = make_world(2, 1);
  ASSERT_TRUE(save(world).ok());
  const std::string key = key_with(".digests");
  const std::vector<std::byte> sound = get(key);
  const auto expect_off = [&](std::string_view what) {
    const auto opened = Checkpoint::open(*runtime_, location());
    ASSERT_TRUE(opened.ok()) << what;
    EXPECT_EQ((*opened)->opened().digest_block_bytes(), 0U) << what;
    EXPECT_FALSE((*opened)->opened().notes().empty()) << what;
    EXPECT_TRUE(holds_now(world)) << what;
  };
  for (size_t at = 0; at < sound.size(); at += at < 104 ? 1 : 97) {
    if (at >= 104 && at < 112) continue;  // says nothing
    std::vector<std::byte> spoiled = sound;
    spoiled[at] ^= std::byte{1};
    put(key, spoiled);
    expect_off(fmt::format("bit at {}", at));
  }
  for (const size_t size : {size_t{0}, size_t{50}, size_t{111}, size_t{112}, sound.size() - 1}) {
    put(key, std::span(sound).first(size));
    expect_off(fmt::format("{} bytes", size));
  }
  ASSERT_TRUE(memory_->remove(key).ok());
  EXPECT_TRUE(holds_now(world));
  put(key, sound);
  EXPECT_GT((*Checkpoint::open(*runtime_, location()))->opened().digest_block_bytes(), 0U);
}

TEST_F(TorchDcpSave, IsNotReadUncheckedBecauseDigestsCannotBeHad) {
  ASSERT_TRUE(save(make_small_world(1, 1)).ok());
  const std::string digests = key_with(".digests");
  const std::shared_ptr<storage::Storage> away =
      storage::make_fault_storage(*memory_, [&](const storage::StorageEvent& event, uint64_t*) {
        return event.key == digests ? unavailable("the server is away") : Status();
      });
  EXPECT_EQ(Checkpoint::open(*runtime_, {away, "ckpt"}).status().code(), StatusCode::kUnavailable);
}

TEST_F(TorchDcpSave, KeepsTheDigestsOfAStateWithoutBytes) {
  World empty;
  empty.ranks.resize(1);
  ASSERT_TRUE(save(empty).ok());
  const std::vector<std::string> before = keys();
  ASSERT_TRUE(collect().ok());
  EXPECT_EQ(keys(), before);
}

TEST_F(TorchDcpSave, TakesNoDigestsOfAnotherIndex) {
  const World first = make_world(2, 1);
  ASSERT_TRUE(save(first).ok());
  const std::vector<std::byte> stale = get(key_with(".digests"));
  const World second = make_world(2, 2);
  ASSERT_TRUE(save(second).ok());
  put(key_with(".digests"), stale);
  const std::shared_ptr<const Checkpoint> made = *Checkpoint::open(*runtime_, location());
  EXPECT_EQ(made->opened().digest_block_bytes(), 0U);
  EXPECT_TRUE(holds_now(second));
}

TEST_F(TorchDcpSave, IsReadWithoutItsDigestsAsTorchWouldWriteIt) {
  const World world = make_world(3, 4);
  SaveOptions options = dcp_options();
  options.digests = false;
  options.metadata = {{"run", "seven"}};
  ASSERT_TRUE(save(world, options).ok());
  ASSERT_TRUE(memory_->remove(key_with(".digests")).ok());
  EXPECT_TRUE(holds_now(world));
  EXPECT_EQ((*Checkpoint::open(*runtime_, location()))->opened().metadata().at("run"), "seven");
}

TEST_F(TorchDcpSave, WritesFromTheBeginningToTheEndWhereTheStorageWantsThat) {
  const World world = make_world(2, 1);
  const format::Location serial{std::make_shared<SerialStorage>(), "ckpt"};
  const auto saved = save_world(*runtime_, world, serial, dcp_options());
  ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  EXPECT_TRUE(stores(*runtime_, serial, world));
  const format::Location native{memory_, "native"};
  const Result<Report> converted =
      convert(*runtime_, *runtime_, serial, native, ConvertOptions(), CallContext());
  EXPECT_TRUE(converted.ok()) << converted.status().to_string();
}

TEST_F(TorchDcpSave, IsWrittenRoundThePageCacheOnPosix) {
  const shardwright::test::TemporaryDirectory directory;
  const World world = make_world(3, 5);
  std::filesystem::create_directory(directory.path() + "/ckpt");  // a prepared one is fine
  const format::Location place{storage::make_posix_storage(directory.path()), "ckpt"};
  for (int round = 0; round < 2; ++round) {
    const auto saved = save_world(*runtime_, world, place, dcp_options());
    ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
    EXPECT_TRUE(stores(*runtime_, place, world));
  }
  EXPECT_EQ(keys_at(place).size(), 6U);  // index, digests, lock, three ranks
}

TEST_F(TorchDcpSave, BeginsLargePayloadsAtPages) {
  const World world = make_world(2, 1);
  ASSERT_TRUE(save(world).ok());
  const std::shared_ptr<const Checkpoint> made = *Checkpoint::open(*runtime_, location());
  size_t large = 0;
  for (uint64_t chunk = 0; chunk < made->catalog().chunk_count(); ++chunk) {
    const format::Extent extent = *made->opened().chunk_extent(chunk);
    EXPECT_EQ(extent.offset % 64, 0U);
    if (extent.size_bytes < 65'536) continue;
    ++large;
    EXPECT_EQ(extent.offset % 4096, 0U);
  }
  EXPECT_GT(large, 0U);
}

TEST_F(TorchDcpSave, CanBeTheSourceAndTheTargetOfAConversion) {
  const World world = make_world(2, 6);
  ASSERT_TRUE(save(world).ok());
  ConvertOptions options;
  options.format = "torch-dcp";
  const format::Location target{memory_, "again"};
  const auto converted = convert(*runtime_, *runtime_, location(), target, options, CallContext());
  ASSERT_TRUE(converted.ok()) << converted.status().to_string();
  EXPECT_TRUE(stores(*runtime_, target, world));
}

TEST_F(TorchDcpSave, CollectsWhatKilledSavesLeft) {
  const World world = make_small_world(1, 1);
  ASSERT_TRUE(save(world).ok());
  const std::string left(32, 'a');
  const std::vector<std::byte> bytes(5);
  put("ckpt/" + torch_dcp::data_file_name(3, left), bytes);
  put("ckpt/" + torch_dcp::digests_file_name(left), bytes);
  put("ckpt/.metadata." + left, bytes);
  put("ckpt/__3_0.distcp", bytes);
  ASSERT_TRUE(collect().ok());
  for (const std::string& key : keys()) EXPECT_EQ(key.find(left), std::string::npos) << key;
  EXPECT_EQ(get("ckpt/__3_0.distcp"), bytes);
  EXPECT_TRUE(holds_now(world));
}

TEST_F(TorchDcpSave, ReadersOfTheReplacedOneAreToldSo) {
  ASSERT_TRUE(save(make_world(1, 1)).ok());
  const std::shared_ptr<const Checkpoint> old = *Checkpoint::open(*runtime_, location());
  ASSERT_TRUE(save(make_world(1, 2)).ok());
  EXPECT_EQ(old->opened().prepare_file(0).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace shardwright::exec::test
