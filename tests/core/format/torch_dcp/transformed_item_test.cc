// SPDX-License-Identifier: Apache-2.0
//
// Items that are stored through a stream transform.
#include "core/format/torch_dcp/transformed_item.h"

#include <gtest/gtest.h>

#include "core/format/archive/pickle_writer.h"
#include "core/format/format.h"
#include "core/storage/backends.h"
#include "tests/core/format/torch_dcp/sample_checkpoint.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::torch_dcp {
namespace {

using test::packed;
using test::SampleDirectory;
using test::tensor_item;

constexpr std::string_view kFirst = "aaaabbbbccccdddd";
constexpr std::string_view kSecond = "eeeeffffgggghhhh";

// w of 4 x 2 in two chunks, the second one stored through zstd.
SampleDirectory sample() {
  SampleDirectory directory;
  directory.tensors.push_back({"w", {4, 2}, {{{0, 0}, {2, 2}, {}}, {{2, 0}, {2, 2}, {}}}});
  directory.tensors[0].chunks[0].item.bytes = tensor_item({2, 2}, kFirst);
  directory.tensors[0].chunks[1].item.bytes = packed(tensor_item({2, 2}, kSecond));
  directory.tensors[0].chunks[1].item.transforms = {"stream.zstd/1"};
  return directory;
}

class TransformedItem : public testing::Test {
 protected:
  void open(const SampleDirectory& directory) {
    test::place_and_store(storage_.get(), "p", directory);
    const auto opened = FormatTable().open({storage_, "p"});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    checkpoint_ = *opened;
  }
  Result<std::string> read(size_t chunk) {
    SHW_ASSIGN_OR_RETURN(const Extent extent, checkpoint_->chunk_extent(chunk));
    EXPECT_EQ(extent.file, checkpoint_->derived_file());
    SHW_ASSIGN_OR_RETURN(const auto derived, checkpoint_->open_derived());
    std::string bytes(extent.size_bytes, '?');
    SHW_RETURN_IF_ERROR(derived->read_at(extent.offset, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }
  std::string object() {
    const Extent extent = *checkpoint_->object_extent(0);
    std::string bytes(extent.size_bytes, '?');
    EXPECT_TRUE((*checkpoint_->open_derived())
                    ->read_at(extent.offset, std::as_writable_bytes(std::span(bytes)))
                    .ok());
    return bytes;
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  std::shared_ptr<const OpenedCheckpoint> checkpoint_;
};

TEST_F(TransformedItem, IsReadAsTheArchiveThatItWas) {
  open(sample());
  const auto bytes = read(1);
  ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
  EXPECT_EQ(*bytes, kSecond);
}

TEST_F(TransformedItem, MayBeAnObject) {
  SampleDirectory directory = sample();
  archive::PickleWriter pickle(archive::PickleProtocol::k2);
  directory.objects.push_back({"step", {}});
  directory.objects[0].item.bytes =
      packed(test::value_item(std::move(pickle.empty_list().integer(7).append()).finish()));
  directory.objects[0].item.transforms = {"stream.zstd/1"};
  open(directory);
  const plan::Catalog& catalog = checkpoint_->catalog();
  EXPECT_EQ(catalog.texts.at(catalog.objects[0].content_type), "application/json");
  EXPECT_EQ(object(), "[7]");
}

TEST_F(TransformedItem, OfAnotherKindIsRefusedByName) {
  for (const std::vector<std::string>& transforms : {std::vector<std::string>{"stream.rot13/1"},
                                                     {"stream.zstd/2"},
                                                     {"stream.zstd/10"},
                                                     {"stream.zstd/1", "stream.zstd/1"},
                                                     {"stream.zstd"},
                                                     {"zstd"}}) {
    SampleDirectory directory = sample();
    directory.tensors[0].chunks[1].item.transforms = transforms;
    open(directory);
    const Status refused = checkpoint_->chunk_extent(1).status();
    EXPECT_FAILURE(refused, StatusCode::kUnimplemented, transforms[0], "'w'");
    EXPECT_EQ(refused.detail("file"), "__0_0.distcp");
    EXPECT_NE(refused.detail("offset"), "");
  }
}

TEST_F(TransformedItem, OfALaterVersionOfTheSameKindIsRead) {
  SampleDirectory directory = sample();
  directory.tensors[0].chunks[1].item.transforms = {"stream.zstd/1.4"};
  open(directory);
  EXPECT_EQ(*read(1), kSecond);
}

TEST_F(TransformedItem, IsNoBiggerThanTheIndexSays) {
  SampleDirectory directory = sample();
  std::string& item = directory.tensors[0].chunks[1].item.bytes;
  item = packed(tensor_item({2, 2}, kSecond) + std::string(size_t{64} << 20, '\0'));
  open(directory);
  const auto refused = read(1);
  EXPECT_FAILURE(refused.status(), StatusCode::kDataLoss, "can be expected of it", "'w'");
  EXPECT_EQ(refused.status().detail("file"), "__0_0.distcp");
}

// The checksums of an archive are compared whenever it is unpacked.
TEST_F(TransformedItem, HasItsChecksumsCompared) {
  SampleDirectory directory = sample();
  std::string item = tensor_item({2, 2}, kSecond);
  item[item.find(kSecond)] ^= 1;
  directory.tensors[0].chunks[1].item.bytes = packed(item);
  open(directory);
  EXPECT_FAILURE(read(1).status(), StatusCode::kDataLoss, "CRC-32 of entry 'archive/data/0'");
}

TEST_F(TransformedItem, ThatIsDamagedNamesFileAndPlace) {
  SampleDirectory directory = sample();
  directory.tensors[0].chunks[1].item.bytes[9] ^= 0x55;
  open(directory);
  const auto refused = read(1);
  EXPECT_EQ(refused.status().code(), StatusCode::kDataLoss) << refused.status().to_string();
  EXPECT_EQ(refused.status().detail("file"), "__0_0.distcp");
  EXPECT_NE(refused.status().detail("offset"), "");
}

TEST(UnpackedArchives, KeepTheFewThatWereUsedLast) {
  UnpackedArchives archives;
  std::vector<int> unpacked(8, 0);
  const auto get = [&](uint64_t number) {
    const auto bytes = archives.get(number, [&]() -> Result<UnpackedArchives::Bytes> {
      ++unpacked[number];
      return UnpackedArchives::Bytes(10, static_cast<std::byte>(number));
    });
    EXPECT_EQ((*bytes)->front(), static_cast<std::byte>(number));
  };
  for (const uint64_t number : {0, 1, 2, 3, 0, 4, 0, 1}) get(number);
  EXPECT_EQ(unpacked, (std::vector<int>{1, 2, 1, 1, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
