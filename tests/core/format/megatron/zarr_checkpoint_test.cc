// SPDX-License-Identifier: Apache-2.0
//
// Directories of the zarr backend made by hand: what they become when they are converted, and what
// is refused and how. Those that megatron-core wrote are in tests/golden/megatron_zarr.
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/format/format.h"
#include "core/format/megatron/zarr_contents.h"
#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::megatron {
namespace {

using torch_save::test::file_of;

std::string header(std::string_view shape, std::string_view chunks, std::string_view dtype = "|u1",
                   std::string_view fill = "null") {
  return fmt::format(R"({{"chunks": {}, "compressor": null, "dtype": "{}", "fill_value": {},)"
                     R"( "filters": null, "order": "C", "shape": {}, "zarr_format": 2}})",
                     chunks, dtype, fill, shape);
}

class ZarrDirectory : public testing::Test {
 protected:
  void SetUp() override {
    put("metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1})");
  }
  void put(const std::string& name, std::string_view bytes) {
    ASSERT_TRUE(storage_->remove("c/" + name).ok());
    safetensors::test::store(storage_.get(), "c/" + name, bytes);
  }
  void put_object(const std::string& name, char number) {
    put(name, file_of(std::string("\x80\x02K") + number + ".", {}));
  }
  Result<std::shared_ptr<const OpenedCheckpoint>> open() {
    return table_.open_to_convert({storage_, "c"});
  }
  // The bytes of a chunk, or of an object, by what its extent says.
  std::string bytes_at(const OpenedCheckpoint& checkpoint, const Extent& extent) {
    std::string bytes(extent.size_bytes, '\0');
    const auto object = extent.file == checkpoint.derived_file()
                            ? checkpoint.open_derived()
                            : storage_->open("c/" + checkpoint.files()[extent.file].key, {});
    EXPECT_TRUE(object.ok()) << object.status().to_string();
    const Status read = (*object)->read_at(extent.offset, std::as_writable_bytes(std::span(bytes)));
    EXPECT_TRUE(read.ok()) << read.to_string();
    return bytes;
  }
  std::string chunk(const OpenedCheckpoint& checkpoint, size_t number) {
    return bytes_at(checkpoint, *checkpoint.chunk_extent(number));
  }
  void expect_refused(StatusCode code, std::string_view says, std::string_view file) {
    const Status status = open().status();
    EXPECT_FAILURE(status, code, says);
    EXPECT_EQ(status.detail("file"), file) << status.to_string();
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  const FormatTable table_;
};

TEST_F(ZarrDirectory, IsOpenedToBeConvertedAndForNothingElse) {
  put("w/.zarray", header("[3]", "[3]"));
  put("w/0", "abc");
  const Status refused = table_.open({storage_, "c"}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(refused.detail("file"), "metadata.json");
  EXPECT_NE(refused.detail("hint").find("shardwright convert"), std::string::npos);
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->format_name(), "megatron");
  ASSERT_EQ((*opened)->catalog().tensors.size(), 1U);
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "w");
  EXPECT_EQ(chunk(**opened, 0), "abc");
}

TEST_F(ZarrDirectory, PaddingAtEdgesIsNotOfTheTensor) {
  // Rows 0-1 and 2, columns 0-2 and 3: the last column and the last row have padding.
  put("w/.zarray", header("[3, 4]", "[2, 3]"));
  put("w/0.0", "abcefg");
  put("w/0.1", "d##h##");
  put("w/1.0", "ijk###");
  put("w/1.1", "l#####");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const char* const expected[] = {"abcefg", "dh", "ijk", "l"};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(chunk(**opened, i), expected[i]) << i;
  // Only what lies apart in its file is made of it.
  EXPECT_EQ((*opened)->chunk_extent(1)->file, (*opened)->derived_file());
  EXPECT_NE((*opened)->chunk_extent(2)->file, (*opened)->derived_file());
}

TEST_F(ZarrDirectory, ChunksWithoutFilesHaveTheFillValue) {
  put("w/.zarray", header("[5]", "[2]", "|u1", "122"));
  put("w/1", "cd");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ(chunk(**opened, 0) + chunk(**opened, 1) + chunk(**opened, 2), "zzcdz");
  ASSERT_EQ((*opened)->notes().size(), 1U);
  EXPECT_NE((*opened)->notes()[0].find("2 of 3 chunks of tensor 'w'"), std::string::npos);
}

TEST_F(ZarrDirectory, TakesScalarsEmptyArraysAndChunksInFolders) {
  put("s/.zarray", header("[]", "[]"));
  put("s/0", "x");
  put("e/.zarray", header("[0, 3]", "[1, 3]"));
  std::string nested = header("[2, 2]", "[1, 2]");
  nested.insert(1, R"("dimension_separator": "/", )");
  put("n/.zarray", nested);
  put("n/0/0", "ab");
  put("n/1/0", "cd");
  put("n/inner/.zarray", header("[2]", "[2]"));
  put("n/inner/0", "ef");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const plan::Catalog& catalog = (*opened)->catalog();
  ASSERT_EQ(catalog.tensors.size(), 4U);
  EXPECT_EQ(catalog.tensor_name(2), "n/inner");
  EXPECT_EQ(catalog.tensors[0].chunk_count, 0U);
  EXPECT_EQ(chunk(**opened, catalog.tensors[1].chunk_begin + 1), "cd");
  EXPECT_EQ(chunk(**opened, catalog.tensors[2].chunk_begin), "ef");
  EXPECT_EQ(chunk(**opened, catalog.tensors[3].chunk_begin), "x");
}

TEST_F(ZarrDirectory, ObjectsAreListsUnderTheNamesOfTorchDist) {
  put_object("rng/shard_0.0_1.2.pt", 1);
  put_object("rng/shard_0.1_1.2.pt", 2);
  put_object("old/shard_0.0_2.pt", 3);
  put_object("old/shard_1.3_2.pt", 4);
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const plan::Catalog& catalog = (*opened)->catalog();
  std::string found;
  for (size_t i = 0; i < catalog.objects.size(); ++i)
    found += fmt::format("{}={} ", catalog.object_name(i),
                         bytes_at(**opened, *(*opened)->object_extent(i)));
  EXPECT_EQ(found,
            "old/shard_0.0_2.4=[3] old/shard_1.3_2.4=[4] "
            "rng/shard_0.0_1.2=[1] rng/shard_0.1_1.2=[2] ");
}

TEST_F(ZarrDirectory, LocksOfFlattenedSavesAreNothing) {
  put("w/.zarray", header("[2]", "[2]"));
  put("w/0", "ab");
  put("w.sync/.zarray", "");
  put("w.sync/0", "");
  put("w/0.partial", "a");
  put("notes.txt", "mine");
  put("w/.zattrs", "{}");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensors.size(), 1U);
  ASSERT_EQ((*opened)->notes().size(), 1U);
  EXPECT_NE((*opened)->notes()[0].find("2 files are no chunk and no object"), std::string::npos)
      << (*opened)->notes()[0];
}

TEST_F(ZarrDirectory, RefusesChunksThatAreLost) {
  put("w/.zarray", header("[5]", "[2]"));
  put("w/0", "ab");
  put("w/2", "e#");
  expect_refused(StatusCode::kDataLoss, "1 of 3 are missing", "w/1");
  put("w/1", "c");
  expect_refused(StatusCode::kDataLoss, "has 1 bytes, a chunk has 2", "w/1");
  put("w/1", "cdx");
  expect_refused(StatusCode::kDataLoss, "has 3 bytes, a chunk has 2", "w/1");
  put("w/1", "cd");
  ASSERT_TRUE(open().ok());
  put("w/3", "gh");
  expect_refused(StatusCode::kDataLoss, "no chunk of its shape [5] in chunks of [2]", "w/3");
}

TEST_F(ZarrDirectory, RefusesArraysThatSayNothingOrTooMuch) {
  put("w/0.1", "ab");
  expect_refused(StatusCode::kDataLoss, ".zarray is not there", "w/0.1");
  put("w/.zarray", std::string(70000, ' '));
  expect_refused(StatusCode::kDataLoss, "more than 65536 bytes", "w/.zarray");
  put("w/.zarray", "");
  expect_refused(StatusCode::kDataLoss, "no JSON", "w/.zarray");
  put("w/.zarray", header("[1]", "[1]"));
  put("v/zarr.json", "{}");
  expect_refused(StatusCode::kUnimplemented, "version 3 of zarr", "v/zarr.json");
}

// A few bytes must not become as many elements as they say.
TEST_F(ZarrDirectory, RefusesArraysThatAreMostlyFilled) {
  for (const auto& [shape, chunks] :
       {std::pair{"[4611686018427387904]", "[1]"}, std::pair{"[4611686018427387904]", "[4194304]"},
        std::pair{"[1048577]", "[1]"}, std::pair{"[1000000000]", "[1000000000]"}}) {
    put("w/.zarray", header(shape, chunks, "|u1", "0"));
    const Status status = open().status();
    EXPECT_FAILURE(status, StatusCode::kResourceExhausted, "have no file");
    EXPECT_EQ(status.detail("tensor"), "w");
    put("w/.zarray", header(shape, chunks));
    EXPECT_FAILURE(open().status(), StatusCode::kDataLoss, "no fill_value");
  }
}

TEST_F(ZarrDirectory, RefusesObjectsThatAreDamagedOrThereTwice) {
  put("k/shard_0_1.pt", "PK\x03\x04 and no more");
  expect_refused(StatusCode::kDataLoss, "reading the object of 'k/shard_0_1.pt'", "k/shard_0_1.pt");
  put_object("k/shard_0_1.pt", 1);
  put_object("old/shard_0.0_1.pt", 1);
  put_object("old/shard_0.0_1.1.pt", 1);
  expect_refused(StatusCode::kDataLoss, "both the object", "old/shard_0.0_1.pt");
}

TEST_F(ZarrDirectory, RefusesObjectsOutsideOfTheirGrid) {
  for (const char* name : {"k/shard_3.0_2.4.pt", "k/shard_0.9223372036854775807_1.pt"}) {
    put_object(name, 1);
    expect_refused(StatusCode::kDataLoss, "of the key 'k'", name);
    EXPECT_EQ(open().status().detail("object"), "k");
    ASSERT_TRUE(storage_->remove(std::string("c/") + name).ok());
  }
}

TEST_F(ZarrDirectory, NamesTheCommonStateThatIsNotThere) {
  put("metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1,)"
                       R"( "common_backend": "torch", "common_backend_version": 1})");
  expect_refused(StatusCode::kDataLoss, "common state", "common.pt");
  put("common.pt", file_of(std::string("\x80\x02}X\x01\x00\x00\x00"
                                       "aK\x07s.",
                                       13),
                           {}));
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().object_name(0), "common.a");
}

TEST_F(ZarrDirectory, AnotherVersionOfTheBackendIsNotRead) {
  put("metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 2})");
  expect_refused(StatusCode::kUnimplemented, "sharded_backend_version is 2", "metadata.json");
}

// There are more names in front of metadata.json than recognition looks at.
TEST_F(ZarrDirectory, IsRecognisedBehindManyNames) {
  put("a/.zarray", header("[5000]", "[1]"));
  for (int i = 0; i < 5000; ++i) put(fmt::format("a/{}", i), "x");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().chunk_count(), 5000U);
  EXPECT_EQ(table_.open({storage_, "c"}).status().detail("file"), "metadata.json");
}

TEST_F(ZarrDirectory, SeesThatAFileWasReplacedOrIsGone) {
  put("w/.zarray", header("[3, 2]", "[2, 1]"));
  for (const char* name : {"w/0.0", "w/0.1", "w/1.0", "w/1.1"}) put(name, "ab");
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const uint32_t file = (*opened)->chunk_file(3);
  EXPECT_EQ((*opened)->files()[file].key, "w/1.1");
  EXPECT_TRUE((*opened)->prepare_file(file).ok());
  put("w/1.1", "abc");
  EXPECT_EQ((*opened)->prepare_file(file).code(), StatusCode::kAborted);
  ASSERT_TRUE(storage_->remove("c/w/1.1").ok());
  EXPECT_EQ((*opened)->prepare_file(file).code(), StatusCode::kDataLoss);
  EXPECT_EQ((*opened)->check_file(file).code(), StatusCode::kDataLoss);
}

// On files, where names could lead out or round in circles.
TEST_F(ZarrDirectory, FollowsNoLinks) {
  const shardwright::test::TemporaryDirectory directory;
  const std::filesystem::path root = directory / "root";
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << text;
  };
  write("metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1})");
  write("w/.zarray", header("[3]", "[3]"));
  write("w/0", "abc");
  std::filesystem::create_directory_symlink(root, root / "w/circle");
  std::filesystem::create_directory_symlink("/", root / "all");
  const Location location{storage::make_posix_storage(root), ""};
  const auto opened = table_.open_to_convert(location);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensors.size(), 1U);
  std::filesystem::rename(root / "w/0", directory / "elsewhere");
  std::filesystem::create_symlink(directory / "elsewhere", root / "w/0");
  EXPECT_FAILURE(table_.open_to_convert(location).status(), StatusCode::kDataLoss,
                 "the file 'w/0' of a chunk is not there");
}

}  // namespace
}  // namespace shardwright::format::megatron
