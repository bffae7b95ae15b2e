// SPDX-License-Identifier: Apache-2.0
#include "tests/core/format/archive/sample_archives.h"

#include <gtest/gtest.h>

#include "core/integrity/crc32.h"

namespace shardwright::format::archive::test {

std::string archive_of(const std::vector<SampleEntry>& entries, ZipFraming framing,
                       uint64_t file_offset, Checksummed checksummed) {
  ZipWriter writer(framing, file_offset);
  for (const SampleEntry& entry : entries) {
    const auto added = writer.add(entry.name, entry.payload.size(), entry.alignment_bytes);
    EXPECT_TRUE(added.ok()) << added.status().to_string();
    if (checksummed == Checksummed::kNo) continue;
    writer.set_crc(*added, integrity::crc32(0, std::as_bytes(std::span(entry.payload))));
  }
  std::string archive;
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(archive.size(), writer.place(i).header_offset);
    archive += text_of(writer.header(i));
    EXPECT_EQ(archive.size(), writer.place(i).payload_offset);
    archive += entries[i].payload + text_of(writer.trailer(i));
    EXPECT_EQ(archive.size(), writer.place(i).end_offset);
  }
  archive += text_of(writer.end());
  EXPECT_EQ(archive.size(), writer.total_bytes());
  return archive;
}

size_t place_of(const std::string& archive, std::string_view signature, size_t nth) {
  const std::string wanted = "PK" + std::string(signature);
  size_t at = archive.find(wanted);
  for (; nth > 0; --nth) at = archive.find(wanted, at + 1);
  if (at < archive.size()) return at;
  ADD_FAILURE() << "the archive has no such record";
  return 0;
}

ArchiveBytes bytes_of_text(std::string_view archive) {
  return bytes_of(std::as_bytes(std::span(archive)), 0, "a.zip");
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace shardwright::format::archive::test
