// SPDX-License-Identifier: Apache-2.0
//
// Digest sidecars, sound and hostile; names of files; what ranks say of their items.
#include "core/format/torch_dcp/digest_sidecar.h"

#include <gtest/gtest.h>

#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

const std::string kGeneration(32, 'b');

DigestSidecar sample() {
  DigestSidecar sidecar;
  sidecar.generation = kGeneration;
  sidecar.created_unix_ns = 1234567;
  sidecar.chunks = {{0, 384}, {SidecarItem::kNoDigest, 0}};
  sidecar.objects = {{2, 0}};
  sidecar.digests.resize(3);
  sidecar.digests[1][5] = std::byte{7};
  return sidecar;
}

Result<DigestSidecar> decode(std::span<const std::byte> bytes) {
  const auto header = decode_sidecar_header(bytes);
  if (!header.has_value()) return data_loss("no header");
  return decode_sidecar(*header, bytes.subspan(kSidecarHeaderBytes));
}

TEST(DigestSidecar, IsReadAsItWasWritten) {
  const std::vector<std::byte> index(100, std::byte{3});
  const auto bytes = encode_sidecar(sample(), index);
  const auto header = decode_sidecar_header(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->index_bytes, 100U);
  const auto again = decode(bytes);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->generation, kGeneration);
  EXPECT_EQ(again->created_unix_ns, 1234567);
  EXPECT_EQ(again->chunks[0].payload_offset, 384U);
  EXPECT_EQ(again->chunks[1].first_digest, SidecarItem::kNoDigest);
  EXPECT_EQ(again->objects[0].first_digest, 2U);
  EXPECT_EQ(again->digests, sample().digests);
}

TEST(DigestSidecar, NoBitOfItCanBeAnother) {
  const auto sound = encode_sidecar(sample(), {});
  for (size_t at = 0; at < sound.size(); ++at) {
    if (at >= kSidecarHeaderBytes - 8 && at < kSidecarHeaderBytes) continue;  // says nothing
    for (const int bit : {0, 7}) {
      auto spoiled = sound;
      spoiled[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(decode(spoiled).ok()) << at;
    }
  }
  for (size_t size = 0; size < sound.size(); ++size)
    EXPECT_FALSE(decode(std::span(sound).first(size)).ok()) << size;
}

// Counts that lie, under digests that hold.
TEST(DigestSidecar, TakesNoMemoryForWhatIsNotThere) {
  for (const size_t field : {8, 16, 24}) {
    auto bytes = encode_sidecar(sample(), {});
    const auto header = *decode_sidecar_header(bytes);
    std::vector<std::byte> body(bytes.begin() + kSidecarHeaderBytes, bytes.end());
    for (size_t i = 0; i < 8; ++i) body[field + i] = std::byte{0xFF};
    SidecarHeader lying = header;
    lying.body_digest = integrity::xxh3_128(body);
    EXPECT_EQ(decode_sidecar(lying, body).status().code(), StatusCode::kDataLoss) << field;
  }
}

TEST(DigestSidecar, NamesNoBlockThatIsNotThere) {
  DigestSidecar sidecar = sample();
  sidecar.objects[0].first_digest = 4;
  EXPECT_EQ(decode(encode_sidecar(sidecar, {})).status().code(), StatusCode::kDataLoss);
}

TEST(FileNames, AreToldFromThoseOfOthers) {
  EXPECT_TRUE(is_data_file("__0_0.distcp"));
  EXPECT_TRUE(is_data_file("__12_345.distcp"));
  EXPECT_TRUE(is_data_file(data_file_name(7, kGeneration)));
  for (const char* name :
       {"0_0.distcp", "__0.distcp", "__0_0.distcp.txt", "__a_0.distcp", "__0_0.backup.distcp",
        "model.distcp", "__0_0", "logs/__0_0.distcp", "__0_.distcp", ".metadata", ""})
    EXPECT_FALSE(is_data_file(name)) << name;
  EXPECT_EQ(generation_of_file(data_file_name(7, kGeneration)), kGeneration);
  EXPECT_EQ(generation_of_file(digests_file_name(kGeneration)), kGeneration);
  EXPECT_EQ(generation_of_file(".metadata." + kGeneration), kGeneration);
  for (const char* name : {"__0_0.distcp", ".metadata", ".metadata.tmp", ".shardwright.x.digests"})
    EXPECT_EQ(generation_of_file(name), "") << name;
  EXPECT_TRUE(is_digests_file(digests_file_name(kGeneration)));
  EXPECT_FALSE(is_digests_file(journal_file_name(kGeneration)));
}

TEST(FileNames, MayBeginWithWhatTheirEntriesBeginWith) {
  const DataFile file{3, 1, kGeneration, "model.layers_"};
  const std::string name = data_file_name(file);
  EXPECT_EQ(name, "model.layers___3_1." + kGeneration + ".distcp");
  const auto parsed = parse_data_file_name(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->hint, "model.layers_");
  EXPECT_EQ(parsed->rank, 3);
  EXPECT_EQ(parsed->number, 1U);
  EXPECT_EQ(generation_of_file(name), kGeneration);
  EXPECT_TRUE(is_data_file(name));
  EXPECT_TRUE(is_data_file("rows__0_0.distcp"));
  const std::vector<std::string> wrong = {"a/", "..", ".shardwright.", "a\\", {"a\0", 2}};
  for (const std::string& beginning : wrong) {
    EXPECT_FALSE(is_data_file(beginning + "__0_0.distcp")) << beginning;
    EXPECT_FALSE(parse_data_file_name(beginning + data_file_name(7, kGeneration)).has_value());
  }
}

TEST(RankItems, DetailsAreReadAsTheyWereWritten) {
  WrittenItems items;
  items.items = {{0, 1000, 384, 48}, {1024, 500, 0, 500}};
  items.digests.resize(2);
  items.digests[1][0] = std::byte{9};
  const auto bytes = encode_details(items);
  const auto again = decode_details(bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->items[1].offset, 1024U);
  EXPECT_EQ(again->items[0].payload_bytes, 48U);
  EXPECT_EQ(again->digests, items.digests);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_details(std::span(bytes).first(size)).ok()) << size;
  auto lying = bytes;
  for (size_t i = 0; i < 8; ++i) lying[i] = std::byte{0xFF};
  EXPECT_FALSE(decode_details(lying).ok());
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
