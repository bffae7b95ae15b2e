// SPDX-License-Identifier: Apache-2.0
//
// Files and directories as checkpoints: which files count, what they make together, and what
// verification sees.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/format/format.h"
#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::safetensors {
namespace {

using test::entry_of;
using test::file_of;

using Opened = std::shared_ptr<const OpenedCheckpoint>;

class SafetensorsOpen : public testing::Test {
 protected:
  // A file with one tensor of four bytes.
  void put_tensor(const std::string& file, const std::string& name,
                  const std::string& metadata = "") {
    put(file, file_of("{" + metadata + entry_of(name, "U8", "[4]", 0, 4) + "}", 4));
  }
  // A part of [rows, 2] bytes that begins at row.
  void put_part(const std::string& file, int64_t row, int64_t rows, const std::string& dtype = "U8",
                const std::string& offsets = "") {
    const std::string at = offsets.empty() ? "[" + std::to_string(row) + ",0]" : offsets;
    const std::string sharding =
        R"("__metadata__":{"DCP_SHARDING_INFO":"{\"w\":{\"saved_offsets\":)" + at + R"(}}"},)";
    const auto bytes = static_cast<uint64_t>(rows * 2);
    put(file, file_of("{" + sharding +
                          entry_of("w", dtype, "[" + std::to_string(rows) + ",2]", 0, bytes) + "}",
                      bytes));
  }
  void put(const std::string& name, std::string_view bytes) {
    test::store(memory_.get(), "p/" + name, bytes);
  }
  Result<Opened> open(const std::string& name = "") {
    return FormatTable().open({memory_, name.empty() ? "p" : "p/" + name});
  }
  void expect_refused(const std::string& file, const std::string& says,
                      StatusCode code = StatusCode::kDataLoss) {
    const Status status = open().status();
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_EQ(status.detail("file"), file) << status.to_string();
    EXPECT_NE(status.to_string().find(says), std::string::npos) << status.to_string();
  }

  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
};

TEST_F(SafetensorsOpen, AFileIsACheckpoint) {
  put_tensor("m.safetensors", "w", R"("__metadata__":{"format":"pt"},)");
  const auto opened = open("m.safetensors");
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->format_name(), "safetensors");
  EXPECT_EQ((*opened)->metadata().at("format"), "pt");
  EXPECT_EQ((*opened)->generation(), "");
  EXPECT_EQ((*opened)->digest_block_bytes(), 0U);
  ASSERT_EQ((*opened)->files().size(), 1U);
  EXPECT_EQ((*opened)->files()[0].key, "m.safetensors");
  EXPECT_EQ(stored_key({memory_, "p/m.safetensors"}, (*opened)->files()[0]), "p/m.safetensors");
  const auto extent = (*opened)->chunk_extent(0);
  EXPECT_EQ(extent->offset + extent->size_bytes, (*opened)->files()[0].size_bytes);
  EXPECT_TRUE((*opened)->prepare_file(0).ok());
  EXPECT_TRUE((*opened)->check_file(0).ok());
  EXPECT_TRUE((*opened)->check_manifest().ok());
  EXPECT_TRUE((*opened)->notes().empty());
}

std::string object_in_metadata(std::string_view name, std::string_view value) {
  return R"("__metadata__":{"format":"pt","shardwright.object:)" + std::string(name) + R"(":")" +
         std::string(value) + R"("},)";
}

TEST_F(SafetensorsOpen, BytesInTheMetadataAreObjects) {
  const std::string metadata = object_in_metadata("rng", "data:a/b;base64,//4=");
  put_tensor("1.safetensors", "v", metadata);
  put_tensor("2.safetensors", "w", metadata);
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  const plan::Catalog& catalog = (*opened)->catalog();
  ASSERT_EQ(catalog.objects.size(), 1U);
  EXPECT_EQ(catalog.object_name(0), "rng");
  EXPECT_EQ(catalog.texts.at(catalog.objects[0].content_type), "a/b");
  const auto extent = (*opened)->object_extent(0);
  ASSERT_EQ(extent->file, (*opened)->derived_file());
  std::string bytes(static_cast<size_t>(extent->size_bytes), ' ');
  const auto derived = *(*opened)->open_derived();
  ASSERT_TRUE(derived->read_at(extent->offset, std::as_writable_bytes(std::span(bytes))).ok());
  EXPECT_EQ(bytes, "\xFF\xFE");
  EXPECT_EQ((*opened)->object_file(0), 0U);
}

TEST_F(SafetensorsOpen, ObjectsThatAreNoneAreRefused) {
  put_tensor("1.safetensors", "w", object_in_metadata("rng", "data:a/b;base64,//4"));
  expect_refused("1.safetensors", "the object 'rng' in its metadata is not");
  put_tensor("1.safetensors", "w", object_in_metadata("w", "data:a/b;base64,//4="));
  expect_refused("1.safetensors", "the object 'w' in its metadata is a tensor, too");
  put_tensor("1.safetensors", "w", object_in_metadata("v", "data:a/b;base64,//4="));
  put_tensor("2.safetensors", "v");
  expect_refused("2.safetensors", "its tensor 'v' is an object in the metadata of another");
  put_tensor("2.safetensors", "x", object_in_metadata("v", "data:a/b;base64,AAA="));
  expect_refused("2.safetensors", "the object 'v' in its metadata is another one in another file");
  put_tensor("1.safetensors", "w",
             object_in_metadata(std::string(70000, 'n'), "data:a/b;base64,//4="));
  expect_refused("1.safetensors", "exceed the limits");
}

TEST_F(SafetensorsOpen, AnIndexSaysWhichFilesCount) {
  put_tensor("1.safetensors", "a", R"("__metadata__":{"format":"pt","part":"1"},)");
  put_tensor("sub/2.safetensors", "b", R"("__metadata__":{"format":"pt","part":"2"},)");
  put("3.safetensors", "no file of the model");
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":8,"by":"me"},"weight_map":{"a":"1.safetensors","b":"sub/2.safetensors"}})");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->format_name(), "hf-safetensors");
  EXPECT_EQ((*opened)->files().size(), 2U);
  EXPECT_EQ((*opened)->catalog().tensors.size(), 2U);
  const std::map<std::string, std::string> metadata{
      {"by", "me"}, {"format", "pt"}, {"part@1.safetensors", "1"}, {"part@sub/2.safetensors", "2"}};
  EXPECT_EQ((*opened)->metadata(), metadata);
  EXPECT_TRUE((*opened)->notes().empty());
}

TEST_F(SafetensorsOpen, TheIndexAndItsFilesAreOfOneModel) {
  put_tensor("1.safetensors", "a");
  put("x.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})");
  expect_refused("1.safetensors", "tensor 'b' in file '1.safetensors'");
  put("x.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  expect_refused("2.safetensors", "which is not there");
  put("x.safetensors.index.json", R"({"weight_map":{"a":"../1.safetensors"}})");
  expect_refused("x.safetensors.index.json", "no path inside");
  put("y.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors"}})");
  expect_refused("y.safetensors.index.json", "2 indexes", StatusCode::kInvalidArgument);
  put("model.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors"}})");
  EXPECT_TRUE(open().ok());
}

TEST_F(SafetensorsOpen, WhatTheIndexLeavesOutIsNoted) {
  put("1.safetensors",
      file_of("{" + entry_of("a", "U8", "[4]", 0, 4) + "," + entry_of("b", "U8", "[4]", 4, 8) +
                  "," + entry_of("more", "U8", "[1]", 8, 9) + "}",
              9));
  put_tensor("2.safetensors", "b");
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":7},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensors.size(), 3U);
  ASSERT_EQ((*opened)->notes().size(), 3U);
  EXPECT_NE((*opened)->notes()[0].find("holds tensor 'b' too"), std::string::npos);
  EXPECT_NE((*opened)->notes()[1].find("the first is 'more'"), std::string::npos);
  EXPECT_NE((*opened)->notes()[2].find("have 7 bytes, they have 9"), std::string::npos);
}

TEST_F(SafetensorsOpen, WithoutAnIndexAllFilesOfTheDirectoryCount) {
  put_tensor("1.safetensors", "a");
  put_tensor("2.safetensors", "b");
  put_tensor("sub/3.safetensors", "a");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensors.size(), 2U);
  put_tensor("3.safetensors", "a");
  expect_refused("3.safetensors", "in the files '1.safetensors' and '3.safetensors'");
  put("2.safetensors", file_of("{}", 1));
  expect_refused("2.safetensors", "bytes follow");
}

TEST_F(SafetensorsOpen, PartsOfTensorsMakeThemWhole) {
  put_part("2.safetensors", 0, 3);
  put_part("1.safetensors", 3, 2);
  put_part("3.safetensors", 5, 0);
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const plan::Catalog& catalog = (*opened)->catalog();
  ASSERT_EQ(catalog.tensors.size(), 1U);
  EXPECT_EQ(Dims(catalog.shape(0)), (Dims{5, 2}));
  ASSERT_EQ(catalog.chunk_count(), 2U);
  EXPECT_EQ(catalog.chunk_box(0), (Box{{0, 0}, {3, 2}}));
  EXPECT_EQ((*opened)->files()[(*opened)->chunk_file(0)].key, "2.safetensors");
  EXPECT_TRUE((*opened)->metadata().empty());
  const auto alone = open("1.safetensors");
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(Dims((*alone)->catalog().shape(0)), (Dims{2, 2}));
}

TEST_F(SafetensorsOpen, PartsThatMakeNoTensorAreRefused) {
  put_part("1.safetensors", 0, 3);
  put_part("2.safetensors", 4, 2);
  expect_refused("1.safetensors", "do not make a whole tensor");
  put_part("2.safetensors", 2, 2);
  expect_refused("1.safetensors", "do not make a whole tensor");
  put_part("2.safetensors", 3, 2, "I8");
  expect_refused("2.safetensors", "another dtype");
  put_part("2.safetensors", 3, 2, "U8", "[3]");
  expect_refused("2.safetensors", "1 offsets");
  put_part("2.safetensors", 3, 2, "U8", "[9223372036854775807,0]");
  expect_refused("2.safetensors", "beyond what can be counted");
  put_tensor("2.safetensors", "w");
  expect_refused("2.safetensors", "no index says");
}

TEST_F(SafetensorsOpen, AFileThatWasReplacedIsNotRead) {
  put_tensor("1.safetensors", "a");
  put_tensor("2.safetensors", "b");
  const auto opened = open();
  put_tensor("2.safetensors", "c");
  EXPECT_TRUE((*opened)->prepare_file(0).ok());
  EXPECT_EQ((*opened)->prepare_file(1).code(), StatusCode::kAborted);
  EXPECT_EQ((*opened)->check_file(1).code(), StatusCode::kDataLoss);
  ASSERT_TRUE(memory_->remove("p/1.safetensors").ok());
  EXPECT_EQ((*opened)->prepare_file(0).code(), StatusCode::kDataLoss);
  EXPECT_EQ((*opened)->check_file(0).code(), StatusCode::kDataLoss);
}

TEST_F(SafetensorsOpen, AnIndexThatWasReplacedIsSeen) {
  put_tensor("1.safetensors", "a");
  put("m.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors"}})");
  const auto opened = open();
  EXPECT_TRUE((*opened)->check_manifest().ok());
  put("m.safetensors.index.json", R"({"weight_map":{"a": "1.safetensors"}})");
  EXPECT_EQ((*opened)->check_manifest().code(), StatusCode::kAborted);
  ASSERT_TRUE(memory_->remove("p/m.safetensors.index.json").ok());
  EXPECT_EQ((*opened)->check_manifest().code(), StatusCode::kDataLoss);
}

TEST_F(SafetensorsOpen, AnotherRankOpensWhatWasReadForAll) {
  put_part("2.safetensors", 0, 3);
  put_part("1.safetensors", 3, 2);
  StoredMetadata metadata;
  const Location location{memory_, "p"};
  const auto opened = FormatTable().open(location, &metadata);
  ASSERT_TRUE(opened.ok());
  const Location nowhere{storage::make_memory_storage(), "p"};
  const auto shared = FormatTable().open_shared(nowhere, metadata);
  ASSERT_TRUE(shared.ok()) << shared.status().to_string();
  EXPECT_EQ((*shared)->format_name(), (*opened)->format_name());
  EXPECT_EQ((*shared)->catalog().chunk_count(), 2U);
  EXPECT_EQ((*shared)->chunk_extent(1)->offset, (*opened)->chunk_extent(1)->offset);
  StoredMetadata cut = metadata;
  for (size_t size = 0; size < metadata.bytes.size(); ++size) {
    cut.bytes.assign(metadata.bytes.begin(), metadata.bytes.begin() + static_cast<ptrdiff_t>(size));
    const auto found = FormatTable().open_shared(location, cut);
    // A cut between two files leaves parts that make no tensor, or none at all.
    EXPECT_TRUE(!found.ok() || (*found)->catalog().tensors.empty()) << size;
  }
}

TEST_F(SafetensorsOpen, SharedFilesAreThoseOfTheIndex) {
  put_tensor("1.safetensors", "a");
  put_tensor("2.safetensors", "b");
  put("m.safetensors.index.json", R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  StoredMetadata metadata;
  ASSERT_TRUE(FormatTable().open({memory_, "p"}, &metadata).ok());
  const std::string text(reinterpret_cast<const char*>(metadata.bytes.data()),
                         metadata.bytes.size());
  const size_t second = text.rfind("2.safetensors") - 8;
  metadata.bytes.resize(second);
  EXPECT_EQ(FormatTable().open_shared({memory_, "p"}, metadata).status().code(),
            StatusCode::kDataLoss);
}

TEST(SafetensorsCache, FilesOfTheHuggingFaceCacheAreRead) {
  namespace fs = std::filesystem;
  const shardwright::test::TemporaryDirectory directory;
  const std::string digest(64, 'a');
  const fs::path snapshot = directory / "snapshots/main";
  fs::create_directories(snapshot);
  fs::create_directories(directory / "blobs");
  std::ofstream(directory / ("blobs/" + digest), std::ios::binary)
      << file_of("{" + entry_of("w", "U8", "[4]", 0, 4) + "}", 4);
  fs::create_symlink("../../blobs/" + digest, snapshot / "model.safetensors");
  const Location location{storage::make_posix_storage(snapshot), ""};
  const auto opened = FormatTable().open(location);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_TRUE((*opened)->check_file(0).ok());
  EXPECT_TRUE((*opened)->prepare_file(0).ok());
  // Links elsewhere stay what they were: not there for a listing, refused by name.
  fs::create_symlink("../../blobs/" + std::string(64, 'g'), snapshot / "2.safetensors");
  fs::create_symlink("../blobs/" + digest, snapshot / "3.safetensors");
  fs::create_symlink("../../other/" + digest, snapshot / "4.safetensors");
  fs::create_symlink(directory / ("blobs/" + digest), snapshot / "5.safetensors");
  EXPECT_EQ((*FormatTable().open(location))->files().size(), 1U);
  for (const char* name : {"2.safetensors", "3.safetensors", "4.safetensors", "5.safetensors"}) {
    EXPECT_EQ(location.storage->open(name, {}).status().detail("unsafe"), "symlink") << name;
  }
}

}  // namespace
}  // namespace shardwright::format::safetensors
