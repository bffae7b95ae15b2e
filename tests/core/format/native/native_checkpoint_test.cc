// SPDX-License-Identifier: Apache-2.0
//
// Opening a checkpoint: what it tells, that every damage of manifest, index, trailer, header and
// payload is found and named, and what happens when another save replaces it.
#include "core/format/native/native_checkpoint.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/format/native/native_format.h"
#include "core/storage/backends.h"
#include "tests/core/format/native/sample_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::native {
namespace {

using test::kSampleGeneration;
using test::make_sample;
using test::Sample;
using test::SampleOptions;
using Bytes = std::vector<std::byte>;

Location stored(const Sample& sample, const std::string& prefix = "run/a") {
  Location location{storage::make_memory_storage(), prefix};
  test::store_sample(sample, location.storage.get(), prefix);
  return location;
}

std::string rank_key(int32_t rank) {
  return rank_file_key(kSampleGeneration, rank);
}

// Opens, prepares all files and checks all blocks: the first failure.
Status check_everything(const Location& location) {
  SHW_ASSIGN_OR_RETURN(const std::shared_ptr<const OpenedCheckpoint> opened,
                       make_format()->open(Sight{location}, nullptr));
  for (uint32_t file = 0; file < opened->files().size(); ++file)
    SHW_RETURN_IF_ERROR(opened->prepare_file(file));
  const plan::Catalog& catalog = opened->catalog();
  for (size_t item = 0; item < catalog.chunk_count() + catalog.objects.size(); ++item) {
    const bool is_chunk = item < catalog.chunk_count();
    const size_t object = item - catalog.chunk_count();
    SHW_ASSIGN_OR_RETURN(const Extent extent,
                         is_chunk ? opened->chunk_extent(item) : opened->object_extent(object));
    SHW_ASSIGN_OR_RETURN(
        const Bytes file,
        storage::read_all(*location.storage,
                          storage::join_key(location.prefix, opened->files()[extent.file].key),
                          1 << 24));
    for (uint64_t block = 0; block < integrity::block_count(extent.size_bytes); ++block) {
      const uint64_t begin = extent.offset + block * kDigestBlockBytes;
      const uint64_t size = std::min(kDigestBlockBytes, extent.offset + extent.size_bytes - begin);
      const auto bytes =
          std::span(file).subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
      SHW_RETURN_IF_ERROR(is_chunk ? opened->check_chunk_block(item, block, bytes)
                                   : opened->check_object_block(object, block, bytes));
    }
  }
  return {};
}

Status check_damaged(const Sample& sample, const std::string& key, Bytes bytes) {
  Sample damaged = sample;
  damaged.files[key] = std::move(bytes);
  return check_everything(stored(damaged));
}

TEST(NativeCheckpoint, TellsWhatTheManifestSays) {
  const auto opened = make_format()->open(Sight{stored(make_sample())}, nullptr);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->format_name(), "native");
  EXPECT_EQ((*opened)->generation(), kSampleGeneration);
  EXPECT_EQ((*opened)->world_size(), 2);
  EXPECT_EQ((*opened)->metadata().at("step"), "100");
  ASSERT_EQ((*opened)->files().size(), 2U);
  EXPECT_EQ((*opened)->files()[1].key, rank_key(1));
  EXPECT_EQ((*opened)->digest_block_bytes(), kDigestBlockBytes);
  EXPECT_EQ((*opened)->chunk_file(1), 1U);
  const Result<Extent> extent = (*opened)->chunk_extent(1);
  ASSERT_TRUE(extent.ok()) << extent.status().to_string();
  EXPECT_EQ(extent->file, 1U);
  EXPECT_EQ(extent->offset, 4096U);
  EXPECT_EQ(extent->size_bytes, 32U);
}

TEST(NativeCheckpoint, HoldsInEveryByteWhenNothingHappenedToIt) {
  for (const bool large : {false, true}) {
    for (const bool digests : {false, true}) {
      SampleOptions options;
      options.large = large;
      options.digests = digests;
      const Status status = check_everything(stored(make_sample(options)));
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  EXPECT_TRUE(check_everything(stored(make_sample(), "")).ok());
}

TEST(NativeCheckpoint, FindsEveryFlippedBitOfTheManifest) {
  const Sample sample = make_sample();
  const std::string key(kManifestName);
  const Bytes& good = sample.files.at(key);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_EQ(check_damaged(sample, key, std::move(bytes)).code(), StatusCode::kDataLoss) << bit;
  }
}

TEST(NativeCheckpoint, FindsEveryFlippedBitOfARankFile) {
  const Sample sample = make_sample();
  const Bytes& good = sample.files.at(rank_key(0));
  const ManifestFile& info = sample.manifest.files[0];
  std::vector<std::pair<size_t, size_t>> parts = {{0, 64},
                                                  {4000, 4096},
                                                  {4096, 4096 + 66},
                                                  {4224, 4227},
                                                  {info.index_position, info.size_bytes}};
  for (const auto& [begin, end] : parts) {
    for (size_t bit = begin * 8; bit < end * 8; ++bit) {
      Bytes bytes = good;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      const Status status = check_damaged(sample, rank_key(0), std::move(bytes));
      ASSERT_EQ(status.code(), StatusCode::kDataLoss) << bit << status.to_string();
      EXPECT_EQ(status.detail("file"), rank_key(0)) << status.to_string();
    }
  }
}

TEST(NativeCheckpoint, FindsEveryTruncationAndEveryAppendedByte) {
  const Sample sample = make_sample();
  for (const std::string& key : {std::string(kManifestName), rank_key(1)}) {
    const Bytes& good = sample.files.at(key);
    const size_t step = key == kManifestName ? 1 : 7;
    for (size_t size = 0; size < good.size(); size += step) {
      Bytes bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(check_damaged(sample, key, std::move(bytes)).code(), StatusCode::kDataLoss)
          << key << " " << size;
    }
    Bytes longer = good;
    longer.push_back(std::byte{0});
    EXPECT_EQ(check_damaged(sample, key, std::move(longer)).code(), StatusCode::kDataLoss);
  }
}

TEST(NativeCheckpoint, FindsSwappedFilesAndFilesOfAnotherGeneration) {
  const Sample sample = make_sample();
  EXPECT_EQ(check_damaged(sample, rank_key(0), sample.files.at(rank_key(1))).code(),
            StatusCode::kDataLoss);
  SampleOptions older;
  older.generation = std::string(32, '7');
  const Sample other = make_sample(older);
  const Status status =
      check_damaged(sample, rank_key(0), other.files.at(rank_file_key(older.generation, 0)));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
}

TEST(NativeCheckpoint, FindsWholeBlocksThatChangedPlaces) {
  SampleOptions options;
  options.large = true;
  const Sample sample = make_sample(options);
  Bytes bytes = sample.files.at(rank_key(0));
  // Blocks 0 and 1 of the large tensor change places: each is whole, none is where it belongs.
  std::swap_ranges(bytes.begin() + 4096, bytes.begin() + 4096 + (1 << 20),
                   bytes.begin() + 4096 + (1 << 20));
  const Status status = check_damaged(sample, rank_key(0), std::move(bytes));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.detail("tensor"), "large");
  EXPECT_EQ(status.detail("offset"), "4096");
  EXPECT_EQ(status.detail("length"), std::to_string(1 << 20));
  EXPECT_EQ(status.detail("box"), "[0:2621440]");
  EXPECT_NE(status.detail("expected"), status.detail("found"));
}

TEST(NativeCheckpoint, SaysWhichFileIsMissing) {
  const Location location = stored(make_sample());
  const auto opened = make_format()->open(Sight{location}, nullptr);
  ASSERT_TRUE(location.storage->remove(storage::join_key(location.prefix, rank_key(1))).ok());
  EXPECT_TRUE((*opened)->prepare_file(0).ok());
  const Status status = (*opened)->prepare_file(1);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
  EXPECT_EQ(status.detail("file"), rank_key(1));
  EXPECT_EQ((*opened)->prepare_file(2).code(), StatusCode::kOutOfRange);
}

TEST(NativeCheckpoint, SaysThatItWasReplacedWhileReading) {
  const Location location = stored(make_sample());
  const auto opened = make_format()->open(Sight{location}, nullptr);
  SampleOptions newer;
  newer.generation = std::string(32, '9');
  test::store_sample(make_sample(newer), location.storage.get(), location.prefix);
  ASSERT_TRUE(location.storage->remove(storage::join_key(location.prefix, rank_key(0))).ok());
  const Status status = (*opened)->prepare_file(0);
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  EXPECT_EQ(status.detail("generation"), newer.generation);
}

TEST(NativeCheckpoint, TriesAFileAgainThatFailedForAWhile) {
  const Location inner = stored(make_sample());
  bool failing = true;
  const Location location{storage::make_fault_storage(
                              *inner.storage,
                              [&](const storage::StorageEvent& event, uint64_t*) {
                                const bool hit = failing && event.key.ends_with("rank-00000.shw");
                                return hit ? unavailable("injected") : Status();
                              }),
                          inner.prefix};
  const auto opened = make_format()->open(Sight{location}, nullptr);
  EXPECT_EQ((*opened)->prepare_file(0).code(), StatusCode::kUnavailable);
  failing = false;
  EXPECT_TRUE((*opened)->prepare_file(0).ok());
}

TEST(NativeCheckpoint, PreparesAFileOnceForAllThreads) {
  const Location inner = stored(make_sample());
  std::atomic<int> opens = 0;
  const Location location{storage::make_recording_storage(
                              *inner.storage,
                              [&](const storage::StorageEvent& event) {
                                if (event.operation == storage::StorageEvent::Operation::kOpen)
                                  ++opens;
                              }),
                          inner.prefix};
  const auto opened = make_format()->open(Sight{location}, nullptr);
  opens = 0;
  std::vector<std::thread> threads;
  for (int each = 0; each < 4; ++each) {
    threads.emplace_back([&] { EXPECT_TRUE((*opened)->prepare_file(0).ok()); });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(opens, 1);
}

TEST(NativeCheckpoint, ListsThePaddingBetweenWhatIsStored) {
  SampleOptions options;
  options.large = true;
  const Sample sample = make_sample(options);
  const auto opened = make_format()->open(Sight{stored(sample)}, nullptr);
  const Result<std::vector<Extent>> gaps = (*opened)->padding(0);
  ASSERT_TRUE(gaps.ok());
  constexpr uint64_t kSlab = 4096 + 2621440;  // behind the large tensor
  // No gap behind the 64 bytes of the weight, then behind the scalar, then behind the object.
  ASSERT_EQ(gaps->size(), 2U);
  EXPECT_EQ((*gaps)[0].offset, kSlab + 66);
  EXPECT_EQ((*gaps)[0].size_bytes, 62U);
  EXPECT_EQ((*gaps)[1].offset, kSlab + 131);
  EXPECT_EQ((*gaps)[1].size_bytes, 4096U - 131);  // the index begins at the next page
}

TEST(NativeCheckpoint, RefusesToCheckBytesOfAFileThatWasNotPrepared) {
  const auto opened = make_format()->open(Sight{stored(make_sample())}, nullptr);
  const Bytes bytes(64);
  EXPECT_EQ((*opened)->check_chunk_block(0, 0, bytes).code(), StatusCode::kInternal);
  ASSERT_TRUE((*opened)->prepare_file(0).ok());
  EXPECT_EQ((*opened)->check_chunk_block(0, 1, bytes).code(), StatusCode::kInternal);
  EXPECT_EQ((*opened)->check_chunk_block(0, 0, std::span(bytes).first(63)).code(),
            StatusCode::kInternal);
  EXPECT_EQ((*opened)->check_chunk_block(0, 0, bytes).code(), StatusCode::kDataLoss);
}

TEST(CurrentCheckpoint, IsKnownByGenerationAndVersion) {
  const Location empty{storage::make_memory_storage(), "run"};
  EXPECT_FALSE(read_current(empty)->exists);
  const Location location = stored(make_sample({.kept_generations = {std::string(32, 'a')}}));
  const Result<CurrentCheckpoint> current = read_current(location);
  ASSERT_TRUE(current.ok());
  EXPECT_TRUE(current->exists);
  EXPECT_EQ(current->generation, kSampleGeneration);
  EXPECT_EQ(current->version, location.storage->stat("run/a/manifest.shw")->version);
  EXPECT_EQ(current->kept_generations, std::vector<std::string>{std::string(32, 'a')});
}

TEST(CurrentCheckpoint, ThatIsDamagedExistsWithoutAGeneration) {
  Sample sample = make_sample();
  sample.files[std::string(kManifestName)].back() ^= std::byte{1};
  const Location location = stored(sample);
  const Result<CurrentCheckpoint> current = read_current(location);
  ASSERT_TRUE(current.ok());
  EXPECT_TRUE(current->exists);
  EXPECT_TRUE(current->damaged);
  EXPECT_EQ(current->generation, "");
  EXPECT_EQ(list_generations(location).status().code(), StatusCode::kDataLoss);
}

// Counts the bytes that are read of a sparse manifest of this size whose ends are these.
uint64_t bytes_read_of_sparse(uint64_t size, bool identified, StatusCode expected) {
  const shardwright::test::TemporaryDirectory directory;
  const std::string path = directory / "manifest.shw";
  {
    std::ofstream file(path, std::ios::binary);
    const auto length = static_cast<uint32_t>(size - 4 - 16);
    if (identified) file.write(reinterpret_cast<const char*>(&length), 4).write("1234SHWM", 8);
  }
  std::filesystem::resize_file(path, size);
  const auto posix = storage::make_posix_storage(directory.path());
  uint64_t read = 0;
  Location location{storage::make_recording_storage(*posix,
                                                    [&read](const storage::StorageEvent& event) {
                                                      if (event.operation ==
                                                          storage::StorageEvent::Operation::kRead)
                                                        read += event.size_bytes;
                                                    }),
                    ""};
  EXPECT_EQ(make_format()->open(Sight{location}, nullptr).status().code(), expected);
  const Result<CurrentCheckpoint> current = read_current(location);
  EXPECT_TRUE(current.ok() && current->exists && current->damaged);
  return read;
}

TEST(SparseManifest, IsRefusedBeforeMemoryIsTakenForIt) {
  for (const uint64_t size : {uint64_t{1} << 23, (uint64_t{1} << 31) - 1, uint64_t{1} << 40}) {
    for (const bool identified : {false, true})
      EXPECT_LT(bytes_read_of_sparse(size, identified, StatusCode::kDataLoss), 100U) << size;
  }
}

TEST(Generations, AreListedWithWhatTheyHold) {
  const std::string crashed(32, '5');
  const std::string empty(32, '6');
  const std::string other(32, '7');
  const Location location = stored(make_sample({.kept_generations = {other}}));
  storage::Storage& storage = *location.storage;
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  for (const std::string& key :
       {"run/a/" + crashed + "/rank-00000.shw", "run/a/manifest.shw." + crashed,
        "run/a/" + other + "/rank-00000.shw", std::string("run/a/not-a-generation/x")}) {
    const auto object = storage.open(key, options);
    ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span("abc", 3))).ok());
  }
  ASSERT_TRUE(storage.create_prefix("run/a/" + empty).ok());
  const Result<std::vector<GenerationInfo>> found = list_generations(location);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_EQ(found->size(), 4U);
  EXPECT_EQ((*found)[0].generation, kSampleGeneration);
  EXPECT_TRUE((*found)[0].named);
  EXPECT_EQ((*found)[0].keys.size(), 2U);
  EXPECT_EQ((*found)[1].generation, crashed);
  EXPECT_FALSE((*found)[1].named);
  EXPECT_EQ((*found)[1].size_bytes, 6U);
  EXPECT_EQ((*found)[1].keys.size(), 2U);
  EXPECT_EQ((*found)[2].keys, std::vector<std::string>{"run/a/" + empty + "/"});
  EXPECT_GT((*found)[2].modified_ns, 0);
  EXPECT_TRUE((*found)[3].named);
}

}  // namespace
}  // namespace shardwright::format::native
