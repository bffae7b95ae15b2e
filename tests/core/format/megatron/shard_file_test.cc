// SPDX-License-Identifier: Apache-2.0
//
// Names of files of sharded objects, and archives that become archives of a list.
#include "core/format/megatron/shard_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/torch_dcp/byte_items.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::megatron {
namespace {

using torch_save::test::entries_of;
using torch_save::test::file_of;
using torch_save::test::pickle_of;

TEST(ShardFile, HasTheNameOfItsObject) {
  const auto name = object_of_file("rng/state/shard_0.12_1.16.pt");
  ASSERT_TRUE(name.ok() && name->has_value());
  EXPECT_EQ((*name)->key, "rng/state");
  EXPECT_EQ((*name)->offsets, (Dims{0, 12}));
  EXPECT_EQ((*name)->shape, (Dims{1, 16}));
  const auto old_name = object_of_file("rng/shard_0.12_1.pt");
  ASSERT_TRUE(old_name.ok() && old_name->has_value());
  EXPECT_EQ((*old_name)->shape, (Dims{1, -1}));
}

TEST(ShardFile, OtherNamesAreNone) {
  for (const char* path :
       {"shard_0_1.pt", "/shard_0_1.pt", "k/shard_0_1", "k/shard_0.pt", "k/shard__.pt",
        "k/shard_0_1_2.pt", "k/shard_00_1.pt", "k/shard_-1_1.pt", "k/shard_0._1.1.pt",
        "k/shard_0.0.0_1.pt", "k/shard_0_1.1.pt", "k/shard_a_1.pt", "k/shard_0_1.pt.pt",
        "k/shard_9999999999999999999_1.pt", "k/share_0_1.pt", "k/.pt", "k/shard_0_1/0.pt"}) {
    const auto name = object_of_file(path);
    ASSERT_TRUE(name.ok()) << name.status().to_string();
    EXPECT_FALSE(name->has_value()) << path;
  }
}

TEST(ShardFile, CellsOutsideOfTheirGridAreRefused) {
  for (const char* path : {"a/k/shard_1_1.pt", "a/k/shard_0.4_2.4.pt", "a/k/shard_2.0_2.pt",
                           "a/k/shard_0_0.pt", "a/k/shard_0.9223372036854775807_1.pt"}) {
    const Status status = object_of_file(path).status();
    EXPECT_FAILURE(status, StatusCode::kDataLoss, "outside the grid", "'a/k'", path);
    EXPECT_EQ(status.detail("file"), path);
    EXPECT_EQ(status.detail("object"), "a/k");
  }
}

std::vector<std::byte> whole(const ListedArchive& listed, std::string_view source) {
  std::vector<std::byte> bytes;
  const auto from = std::as_bytes(std::span(source));
  for (const ListedArchive::Part& part : listed.parts) {
    EXPECT_EQ(part.size_bytes, part.bytes.empty() ? part.size_bytes : part.bytes.size());
    const auto range = part.bytes.empty() ? from.subspan(part.offset, part.size_bytes)
                                          : std::span<const std::byte>(part.bytes);
    bytes.insert(bytes.end(), range.begin(), range.end());
  }
  EXPECT_EQ(bytes.size(), listed.size_bytes);
  return bytes;
}

Result<ListedArchive> list(std::string_view file) {
  return listed_archive(archive::bytes_of(std::as_bytes(std::span(file)), 0, "k/shard_0_1.pt"));
}

TEST(ListedArchive, HoldsAListOfTheValueAndTheSameStorages) {
  const std::string storage(40000, 's');
  torch_save::test::SampleTensor tensor;
  tensor.storage_elements = 10000;
  tensor.shape = {10000};
  const std::string file = file_of(pickle_of("w", tensor), {storage});
  const auto listed = list(file);
  ASSERT_TRUE(listed.ok()) << listed.status().to_string();
  // The storage stays where it is.
  EXPECT_TRUE(std::ranges::any_of(listed->parts, [](const ListedArchive::Part& part) {
    return part.bytes.empty() && part.size_bytes == 40000;
  }));
  const std::vector<std::byte> bytes = whole(*listed, file);
  const archive::ArchiveBytes made = archive::bytes_of(bytes, 0, "made");
  ASSERT_TRUE(archive::check_payloads(made).ok());
  const auto records = archive::TorchArchive::open(made);
  ASSERT_TRUE(records.ok()) << records.status().to_string();
  const auto pickle = records->read_pickle(made);
  ASSERT_TRUE(pickle.ok()) << pickle.status().to_string();
  archive::PickleOptions options;
  options.vocabulary = archive::torch_vocabulary();
  const auto value = archive::read_pickle(*pickle, options);
  ASSERT_TRUE(value.ok()) << value.status().to_string();
}

// Plain values come as what torch_dist gives them as: the text of a list.
TEST(ListedArchive, OfAPlainValueIsReadAsAList) {
  const std::pair<std::string, std::string_view> table[] = {
      {std::string("\x80\x02K\x07.", 5), "[7]"},
      {std::string("\x80\x02}q\x00.", 6), "[{}]"},
      {"I7\n.", "[7]"}};
  for (const auto& [pickle, text] : table) {
    const std::string file = file_of(pickle, {});
    const auto listed = list(file);
    ASSERT_TRUE(listed.ok()) << listed.status().to_string();
    uint64_t budget = 1 << 20;
    const auto object = torch_dcp::read_object(whole(*listed, file), "f", &budget);
    EXPECT_EQ(object.bytes, text);
  }
}

TEST(ListedArchive, RefusesWhatIsNoArchiveOfAValue) {
  EXPECT_EQ(list("").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(list(std::string(400, 'x')).status().code(), StatusCode::kDataLoss);
  const std::string sound = file_of(pickle_of("w", {}), {std::string(16, 'x')});
  EXPECT_EQ(list(sound.substr(0, sound.size() - 1)).status().code(), StatusCode::kDataLoss);
  EXPECT_FAILURE(list(file_of("\x80\x02K\x07", {})).status(), StatusCode::kDataLoss,
                 "does not end");
}

}  // namespace
}  // namespace shardwright::format::megatron
