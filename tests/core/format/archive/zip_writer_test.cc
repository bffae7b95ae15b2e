// SPDX-License-Identifier: Apache-2.0
//
// What is written, byte for byte where torch.save's bytes are known, and archives beyond 4 GiB of
// which only headers exist.
#include "core/format/archive/zip_writer.h"

#include <map>

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/format/archive/zip_reader.h"
#include "core/integrity/crc32.h"
#include "tests/core/format/archive/sample_archives.h"

namespace shardwright::format::archive {
namespace {

using test::archive_of;
using test::text_of;

// The pickle of torch.zeros(3, 4) and the records beside it as torch 2.15 saves them to a stream.
std::vector<test::SampleEntry> records_of_a_tensor() {
  const auto pickle = from_hex(
      "800263746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a7100282858070000007374"
      "6f"
      "72616765710163746f7263680a466c6f617453746f726167650a7102580100000030710358030000006370757104"
      "4b"
      "0c747105514b004b034b048671064b044b018671078963636f6c6c656374696f6e730a4f72646572656444696374"
      "0a"
      "71082952710974710a52710b2e");
  return {{"archive/data.pkl", text_of(*pickle)},
          {"archive/.format_version", "1"},
          {"archive/.storage_alignment", "64"},
          {"archive/byteorder", "little"},
          {"archive/data/0", std::string(48, '\0')},
          {"archive/version", "3\n"},
          {"archive/.data/serialization_id", std::string(40, '1')}};
}

TEST(ZipWriter, PlacesRecordsWhereTorchDoes) {
  ZipWriter writer(ZipFraming::kTorch);
  const std::vector<std::pair<uint64_t, uint64_t>> places = {
      {0, 64}, {234, 320}, {337, 448}, {466, 576}, {598, 704}, {768, 832}, {850, 960}};
  for (const test::SampleEntry& record : records_of_a_tensor())
    ASSERT_TRUE(writer.add(record.name, record.payload.size()).ok());
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(writer.place(i).header_offset, places[i].first) << i;
    EXPECT_EQ(writer.place(i).payload_offset, places[i].second) << i;
  }
  EXPECT_EQ(writer.end_offset(), 1016U);
  EXPECT_EQ(writer.total_bytes(), 1577U);
}

TEST(ZipWriter, WritesTheBytesThatTorchWrites) {
  const std::string archive = archive_of(records_of_a_tensor());
  EXPECT_EQ(to_hex(std::as_bytes(std::span(archive)).first(64)),
            "504b030400000808000000000000000000000000000000000000100012006172636869"
            "76652f646174612e706b6c46420e005a5a5a5a5a5a5a5a5a5a5a5a5a5a");
  EXPECT_EQ(to_hex(std::as_bytes(std::span(archive)).subspan(218, 16)),
            "504b07089b6b15169a0000009a000000");
  EXPECT_EQ(to_hex(std::as_bytes(std::span(archive)).subspan(1479)),
            "504b06062c000000000000001e032d000000000000000000070000000000000007000000000000"
            "00cf01000000000000f803000000000000504b060700000000c70500000000000001000000504b"
            "05060000000007000700cf010000f80300000000");
}

TEST(ZipWriter, LeavesNoTrailerBehindNothing) {
  const std::string archive = archive_of({{"archive/data/0", ""}});
  EXPECT_EQ(archive.substr(6, 2), std::string("\0\x08", 2));
  EXPECT_EQ(archive.substr(64, 4), "PK\x01\x02");
}

TEST(ZipWriter, AlignsInTheFileWhenItIsToldWhereTheArchiveLies) {
  ZipWriter writer(ZipFraming::kPlain, 1000);
  ASSERT_TRUE(writer.add("a", 10).ok());
  ASSERT_TRUE(writer.add("b", 100'000, 4096).ok());
  ASSERT_TRUE(writer.add("c", 1, 32768).ok());
  EXPECT_EQ((1000 + writer.place(0).payload_offset) % 64, 0U);
  EXPECT_EQ((1000 + writer.place(1).payload_offset) % 4096, 0U);
  EXPECT_EQ((1000 + writer.place(2).payload_offset) % 32768, 0U);
  EXPECT_EQ(writer.end_bytes(), 3 * 47 + 22U);
}

TEST(ZipWriter, RefusesWhatNoReaderWouldTake) {
  ZipWriter writer(ZipFraming::kPlain);
  ASSERT_TRUE(writer.add("a", 10).ok());
  EXPECT_EQ(writer.add("a", 10).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(writer.add("../a", 10).status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(writer.add("", 10).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(writer.add(std::string(4097, 'n'), 1).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(writer.add("b", 10, 48).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.add("b", 10, 65536).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.add("b", ~uint64_t{0}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(writer.entry_count(), 1U);
}

// An archive of which only what is not payload exists; payload reads as zeros.
class SparseArchive {
 public:
  explicit SparseArchive(const ZipWriter& writer) : size_(writer.total_bytes()) {
    for (size_t i = 0; i < writer.entry_count(); ++i) {
      const ZipWriter::Place& place = writer.place(i);
      parts_[place.header_offset] = writer.header(i);
      parts_[place.payload_offset + place.size_bytes] = writer.trailer(i);
    }
    parts_[writer.end_offset()] = writer.end();
  }
  ArchiveBytes bytes() const {
    ArchiveBytes bytes;
    bytes.size_bytes = size_;
    bytes.file = "a.zip";
    bytes.read = [this](uint64_t offset, std::span<std::byte> data) {
      for (size_t i = 0; i < data.size(); ++i) data[i] = at(offset + i);
      return Status();
    };
    return bytes;
  }

 private:
  std::byte at(uint64_t offset) const {
    auto part = parts_.upper_bound(offset);
    if (part == parts_.begin()) return {};
    --part;
    const uint64_t place = offset - part->first;
    return place < part->second.size() ? part->second[place] : std::byte{};
  }

  uint64_t size_;
  std::map<uint64_t, std::vector<std::byte>> parts_;
};

TEST(ZipWriter, ArchivesBeyondFourGibibytesAreRead) {
  constexpr uint64_t kLarge = (uint64_t{1} << 32) + 1024;
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    ZipWriter writer(framing);
    const std::vector<uint64_t> sizes = {3, kLarge, 2, 0, 0xFFFFFFFF};
    for (size_t i = 0; i < sizes.size(); ++i)
      ASSERT_TRUE(writer.add("archive/data/" + std::to_string(i), sizes[i]).ok());
    const std::vector<std::byte> zeros(3);
    writer.set_crc(2, integrity::crc32(0, std::span(zeros).first(2)));
    const SparseArchive sparse(writer);
    const ArchiveBytes bytes = sparse.bytes();
    const auto directory = ZipDirectory::read(bytes);
    ASSERT_TRUE(directory.ok()) << directory.status().to_string();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ZipEntry entry = directory->entry(i);
      EXPECT_EQ(entry.size_bytes, sizes[i]);
      const auto payload = locate_payload(bytes, entry);
      ASSERT_TRUE(payload.ok()) << i << payload.status().to_string();
      EXPECT_EQ(*payload, writer.place(i).payload_offset);
    }
    EXPECT_TRUE(check_payload(bytes, directory->entry(2)).ok());
  }
}

TEST(ZipWriter, LargeRecordsLieWhereTorchPutsThem) {
  ZipWriter writer(ZipFraming::kTorch);
  for (const auto& [name, size] :
       std::vector<std::pair<std::string, uint64_t>>{{"archive/data.pkl", 155},
                                                     {"archive/.format_version", 1},
                                                     {"archive/.storage_alignment", 2},
                                                     {"archive/byteorder", 6},
                                                     {"archive/data/0", (uint64_t{1} << 32) + 1024},
                                                     {"archive/version", 2}})
    ASSERT_TRUE(writer.add(name, size).ok());
  EXPECT_EQ(writer.place(4).payload_offset, 704U);
  EXPECT_EQ(writer.place(5).header_offset, 4294969048U);
  EXPECT_EQ(writer.place(5).payload_offset, 4294969152U);
  EXPECT_EQ(writer.trailer(5).size(), 24U);
}

}  // namespace
}  // namespace shardwright::format::archive
