// SPDX-License-Identifier: Apache-2.0
//
// What FormatTable::open says about everything that may lie at a path.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/format/format.h"
#include "core/storage/backends.h"
#include "tests/core/format/native/sample_checkpoint.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format {
namespace {

// A directory in which a test puts names; opened as a root of posix storage and as a prefix of
// memory storage.
class Recognition : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text = "x") {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    const auto object = memory_->open("prefix/" + name, options);
    ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span(text))).ok());
  }
  // The same answer from both storages.
  Status open() {
    const Status in_memory = FormatTable().open({memory_, "prefix"}).status();
    const Status on_disk =
        FormatTable().open({storage::make_posix_storage(directory_.path()), ""}).status();
    EXPECT_EQ(in_memory.code(), on_disk.code()) << in_memory.to_string() << "\n"
                                                << on_disk.to_string();
    return on_disk;
  }
  Status open_file(std::string_view name, std::string_view text) {
    put(std::string(name), text);
    const Status by_prefix = FormatTable().open({memory_, "prefix/" + std::string(name)}).status();
    const Status by_root =
        FormatTable().open({storage::make_posix_storage(directory_ / name), ""}).status();
    const Status below =
        FormatTable()
            .open({storage::make_posix_storage(directory_.path()), std::string(name)})
            .status();
    EXPECT_EQ(by_prefix.code(), below.code()) << below.to_string();
    EXPECT_EQ(by_prefix.code(), by_root.code()) << by_root.to_string();
    return by_prefix;
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
};

TEST_F(Recognition, OpensANativeCheckpoint) {
  native::test::store_sample(native::test::make_sample(), memory_.get(), "prefix");
  const auto opened = FormatTable().open({memory_, "prefix"});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->format_name(), "native");
}

TEST_F(Recognition, SaysNotFoundForNothingAndForAnEmptyDirectory) {
  EXPECT_EQ(open().code(), StatusCode::kNotFound);
  EXPECT_EQ(
      FormatTable().open({storage::make_posix_storage(directory_ / "missing"), ""}).status().code(),
      StatusCode::kNotFound);
  EXPECT_EQ(FormatTable().open({memory_, "other"}).status().code(), StatusCode::kNotFound);
  put(".lock");
  EXPECT_EQ(open().code(), StatusCode::kNotFound);
}

TEST_F(Recognition, TellsASaveThatWasNotCommitted) {
  put(std::string(32, 'a') + "/rank-00000.shw");
  put("manifest.shw." + std::string(32, 'a'));
  const Status status = open();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.detail("hint").find("gc"), std::string_view::npos);
}

TEST_F(Recognition, NamesOtherFamiliesOfDirectories) {
  const std::pair<const char*, const char*> table[] = {
      {"rank_0.ckpt", "MindSpore"},
      {"__0_0.distcp", "torch DCP"},
      {"pytorch_model.bin", "torch.save"},
      {"latest_checkpointed_iteration.txt", "Megatron"}};
  for (const auto& [name, family] : table) {
    const auto memory = std::shared_ptr<storage::Storage>(storage::make_memory_storage());
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    ASSERT_TRUE(memory->open(std::string("p/") + name, options).ok());
    const Status status = FormatTable().open({memory, "p"}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << name;
    EXPECT_NE(status.detail("format").find(family), std::string_view::npos) << status.to_string();
  }
}

TEST_F(Recognition, NamesOtherFamiliesOfFiles) {
  EXPECT_EQ(open_file("model.pt", std::string_view("sys_info\0", 9)).detail("format"),
            "a tar archive of torch before 0.1.10");
  EXPECT_EQ(open_file("old.pth", "\x80\x02pickle").code(), StatusCode::kUnimplemented);
}

TEST_F(Recognition, TakesArchivesForFilesOfTorchSaveWhateverTheirName) {
  EXPECT_EQ(open_file("model.pt", "PK\x03\x04rest of an archive").code(), StatusCode::kDataLoss);
  EXPECT_EQ(open_file("model.safetensors", "PK\x03\x04 by another writer").code(),
            StatusCode::kDataLoss);
}

TEST_F(Recognition, OpensSafetensorsWhateverTheirName) {
  const std::string_view empty("\x02\0\0\0\0\0\0\0{}", 10);
  EXPECT_TRUE(open_file("model.safetensors", empty).ok());
  EXPECT_TRUE(open_file("weights", empty).ok());
  EXPECT_TRUE(open().ok());
  put("cut.safetensors", "\x02");
  EXPECT_EQ(FormatTable().open({memory_, "prefix/cut.safetensors"}).status().code(),
            StatusCode::kDataLoss);
}

TEST_F(Recognition, LeavesSafetensorsOfOtherFamiliesToThem) {
  put("model.safetensors", std::string_view("\x02\0\0\0\0\0\0\0{}", 10));
  EXPECT_TRUE(open().ok());
  put(".metadata");
  EXPECT_EQ(open().detail("file"), ".metadata");
}

TEST_F(Recognition, FindsModelsBesideFoldersOfManyNames) {
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(memory_->open("prefix/.git/" + std::to_string(i), options).ok());
  const auto object = memory_->open("prefix/model.safetensors", options);
  const std::string_view empty("\x02\0\0\0\0\0\0\0{}", 10);
  ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span(empty))).ok());
  EXPECT_TRUE(FormatTable().open({memory_, "prefix"}).ok());
}

// Its name is among the first, and is looked for once more because others follow.
TEST_F(Recognition, SeesAModelOnceInFrontOfManyNames) {
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(memory_->open("prefix/samples/" + std::to_string(i), options).ok());
  safetensors::test::store(memory_.get(), "prefix/model.safetensors",
                           safetensors::test::file_of(
                               "{" + safetensors::test::entry_of("w", "U8", "[4]", 0, 4) + "}", 4));
  const auto opened = FormatTable().open({memory_, "prefix"});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->files().size(), 1U);
}

TEST_F(Recognition, RefusesFilesThatItDoesNotKnow) {
  for (const std::string_view text : {"", "x", "hello, this is a text file"}) {
    const Status status = open_file("notes" + std::to_string(text.size()), text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  }
}

TEST_F(Recognition, PointsFromTheManifestToItsDirectory) {
  const auto bytes = native::test::make_sample().files.at("manifest.shw");
  const Status status =
      open_file("copy.shw", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("directory"), std::string::npos);
}

TEST_F(Recognition, SaysWhatItLookedAtInAnUnknownDirectory) {
  put("readme.txt");
  put("data/values.csv");
  const Status status = open();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("manifest.shw"), std::string::npos);
  EXPECT_NE(std::string(status.message()).find("readme.txt"), std::string::npos);
}

TEST_F(Recognition, PointsFromARunToItsSteps) {
  put("step-00000100/manifest.shw");
  const Status status = open();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(status.detail("hint").empty());
}

TEST_F(Recognition, NamesTheIterationsOfARunOfMegatron) {
  put("latest_checkpointed_iteration.txt", "300\n");
  const Status none = open();
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument) << none.to_string();
  EXPECT_NE(std::string(none.message()).find("names 300"), std::string::npos) << none.message();
  for (const char* const number : {"0000100", "0000300", "0000200", "x"})
    put(std::string("iter_") + number + "/.metadata");
  const Status status = open();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
  EXPECT_NE(std::string(status.message()).find("iter_0000100, iter_0000200, iter_0000300"),
            std::string::npos)
      << status.message();
  EXPECT_NE(status.detail("hint").find("/iter_0000300'"), std::string_view::npos)
      << status.detail("hint");
  for (int i = 0; i < 9; ++i) put("iter_000090" + std::to_string(i) + "/.metadata");
  EXPECT_NE(std::string(open().message()).find("12 checkpoints of a run, one per step: ..., iter_"),
            std::string::npos);
}

TEST_F(Recognition, CallsAManifestThatIsNoneDamaged) {
  put("manifest.shw", "this is no manifest at all, but it has the name");
  EXPECT_EQ(open().code(), StatusCode::kDataLoss);
}

TEST_F(Recognition, PassesOnWhyAPathCannotBeLookedAt) {
  EXPECT_EQ(FormatTable().open({memory_, "/bad"}).status().code(), StatusCode::kInvalidArgument);
  const auto failing = std::shared_ptr<storage::Storage>(storage::make_fault_storage(
      *memory_, [](const storage::StorageEvent&, uint64_t*) { return unavailable("injected"); }));
  EXPECT_EQ(FormatTable().open({failing, "prefix"}).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace shardwright::format
