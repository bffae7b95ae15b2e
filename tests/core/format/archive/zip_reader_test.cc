// SPDX-License-Identifier: Apache-2.0
//
// Archives as they should be, and each thing that can be wrong with one.
#include "core/format/archive/zip_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/core/format/archive/sample_archives.h"
#include "tests/core/format/safetensors/sample_files.h"

namespace shardwright::format::archive {
namespace {

using test::archive_of;
using test::bytes_of_text;
using test::kCentral;
using test::kEnd;
using test::kEnd64;
using test::kLocal;
using test::kLocator;
using test::patch;
using test::text_of;

const std::vector<test::SampleEntry> kEntries = {{"archive/data.pkl", "a pickle"},
                                                 {"archive/data/0", std::string(200, 'x')},
                                                 {"archive/data/1", ""},
                                                 {"archive/version", "3\n"}};

// The payloads of an archive by its directory, joined; or its failure.
Result<std::string> payloads_of(std::string_view archive) {
  const ArchiveBytes bytes = bytes_of_text(archive);
  SHW_ASSIGN_OR_RETURN(const ZipDirectory directory, ZipDirectory::read(bytes, 128));
  std::string all;
  for (size_t i = 0; i < directory.size(); ++i) {
    const ZipEntry entry = directory.entry(i);
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> payload, read_payload(bytes, entry, 1000));
    SHW_RETURN_IF_ERROR(check_payload(bytes, entry));
    all += fmt::format("{}={};", entry.name, text_of(payload));
  }
  return all;
}

void expect_refused(const std::string& archive, std::string_view says,
                    StatusCode code = StatusCode::kDataLoss) {
  const Status status = payloads_of(archive).status();
  EXPECT_EQ(status.code(), code) << says << ": " << status.to_string();
  EXPECT_EQ(status.detail("file"), "a.zip") << says;
  EXPECT_NE(status.to_string().find(says), std::string::npos) << says << ": " << status.to_string();
}

TEST(ZipReader, GivesWhatWasWrittenInEitherFraming) {
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    const std::string archive = archive_of(kEntries, framing);
    const auto payloads = payloads_of(archive);
    ASSERT_TRUE(payloads.ok()) << payloads.status().to_string();
    EXPECT_EQ(*payloads, "archive/data.pkl=a pickle;archive/data/0=" + std::string(200, 'x') +
                             ";archive/data/1=;archive/version=3\n;");
    const auto directory = ZipDirectory::read(bytes_of_text(archive));
    EXPECT_EQ(directory->find("archive/version"), 3U);
    EXPECT_EQ(directory->find("archive/data/"), std::nullopt);
    EXPECT_EQ(*locate_payload(bytes_of_text(archive), directory->entry(1)) % 64, 0U);
  }
  EXPECT_EQ(*payloads_of(archive_of({}, ZipFraming::kPlain)), "");
}

TEST(ZipReader, ReadsAnArchiveInTheMiddleOfAFile) {
  const std::string archive = archive_of(kEntries);
  const auto storage = storage::make_memory_storage();
  safetensors::test::store(storage.get(), "f", "before" + archive + "behind");
  const auto object = storage->open("f", {});
  const ArchiveBytes bytes = bytes_of(**object, 6, archive.size(), "f");
  const auto directory = ZipDirectory::read(bytes);
  ASSERT_TRUE(directory.ok()) << directory.status().to_string();
  EXPECT_EQ(text_of(*read_payload(bytes, directory->entry(0), 100)), "a pickle");
  EXPECT_EQ(ZipDirectory::read(bytes_of(**object, 6, archive.size() - 1, "f")).status().code(),
            StatusCode::kDataLoss);
  // The object is shorter than it was said to be.
  const ArchiveBytes longer = bytes_of(**object, 6, archive.size() + 100, "f");
  EXPECT_EQ(ZipDirectory::read(longer).status().code(), StatusCode::kDataLoss);
}

TEST(ZipReader, ReadsLittleToFindAPayload) {
  const std::string archive = archive_of({{"archive/data.pkl", "p"},
                                          {"archive/data/0", std::string(1 << 20, 'x')},
                                          {"archive/version", "3\n"}});
  ArchiveBytes bytes = bytes_of_text(archive);
  size_t reads = 0;
  uint64_t bytes_read = 0;
  bytes.read = [&, read = bytes.read](uint64_t offset, std::span<std::byte> data) {
    ++reads;
    bytes_read += data.size();
    return read(offset, data);
  };
  const auto directory = ZipDirectory::read(bytes, 1024);
  const auto payload = locate_payload(bytes, directory->entry(1));
  EXPECT_EQ(archive.substr(*payload, 4), "xxxx");
  EXPECT_EQ(reads, 3U);  // the tail, its zip64 end record, one local header
  EXPECT_LT(bytes_read, 1200U);
}

TEST(ZipReader, RefusesAnArchiveThatWasCutAnywhere) {
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    const std::string archive = archive_of(kEntries, framing);
    for (size_t size = 0; size < archive.size(); ++size) {
      const Status status = payloads_of(archive.substr(0, size)).status();
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << size;
    }
  }
}

TEST(ZipReader, TakesCommentsAndBytesBehindTheArchive) {
  const std::string archive = archive_of(kEntries);
  EXPECT_TRUE(payloads_of(archive + "behind").ok());
  std::string commented = archive + std::string(0xFFFF, 'c');
  patch(&commented, kEnd, 0, 20, uint16_t{0xFFFF});
  EXPECT_TRUE(payloads_of(commented).ok());
  EXPECT_TRUE(payloads_of(archive + std::string(0xFFFF, 'c')).ok());
  expect_refused(archive + std::string(0x10000, 'c'), "end record is missing");
  expect_refused("x" + archive, "zip64 locator points");
  expect_refused("x" + archive_of(kEntries, ZipFraming::kPlain), "does not end where");
}

TEST(ZipReader, RefusesTwoArchivesInOne) {
  const std::string outer = archive_of(kEntries, ZipFraming::kPlain);
  // A comment that holds a directory of its own over the same entries.
  std::string inner = outer.substr(outer.find("PK\x01\x02"));
  const auto directory_bytes = static_cast<uint32_t>(inner.size() - 22);
  patch(&inner, kEnd, 0, 12, directory_bytes);
  patch(&inner, kEnd, 0, 16, static_cast<uint32_t>(outer.size()));
  std::string both = outer + inner;
  patch(&both, kEnd, 0, 20, static_cast<uint16_t>(inner.size()));
  EXPECT_EQ(ZipDirectory::read(bytes_of_text(both)).status().code(), StatusCode::kDataLoss);
  // A signature in a comment is none.
  std::string quoted = outer + "PK\x05\x06" + std::string(30, '\0');
  patch(&quoted, kEnd, 0, 20, uint16_t{34});
  EXPECT_TRUE(payloads_of(quoted).ok());
  std::string many = outer;
  for (int i = 0; i < 70; ++i) many += "PK\x05\x06";
  expect_refused(many + std::string(22, ' '), "more than 64 end records");
}

TEST(ZipReader, TheFirstReadDecidesNothing) {
  const std::string sound = archive_of(kEntries);
  // Without its zip64 end record the end record would fit, were there no locator in front of it.
  std::string headless = sound;
  patch(&headless, kEnd64, 0, 3, uint8_t{0x26});
  const auto directory = static_cast<uint32_t>(test::place_of(sound, kCentral, 0));
  const auto end = static_cast<uint32_t>(test::place_of(sound, kEnd, 0));
  patch(&headless, kEnd, 0, 12, end - directory);
  for (uint64_t tail = 0; tail < sound.size() + 10; ++tail) {
    EXPECT_TRUE(ZipDirectory::read(bytes_of_text(sound), tail).ok()) << tail;
    EXPECT_EQ(ZipDirectory::read(bytes_of_text(headless), tail).status().code(),
              StatusCode::kDataLoss)
        << tail;
  }
}

struct Change {
  std::string_view signature;
  size_t nth;
  size_t offset;
  uint64_t value;
  size_t bytes;
  std::string_view says;
  StatusCode code = StatusCode::kDataLoss;
};

void expect_refused_changes(ZipFraming framing, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    std::string archive = archive_of(kEntries, framing);
    const size_t at = test::place_of(archive, change.signature, change.nth) + change.offset;
    std::memcpy(archive.data() + at, &change.value, change.bytes);
    expect_refused(archive, change.says, change.code);
  }
}

TEST(ZipReader, RefusesALyingEndRecord) {
  const StatusCode no = StatusCode::kUnimplemented;
  expect_refused_changes(ZipFraming::kPlain,
                         {{kEnd, 0, 4, 1, 2, "several parts", no},
                          {kEnd, 0, 6, 1, 2, "several parts", no},
                          {kEnd, 0, 8, 3, 2, "several parts", no},
                          {kEnd, 0, 12, 1, 4, "does not end where"},
                          {kEnd, 0, 16, 1, 4, "does not end where"},
                          {kEnd, 0, 16, 0xFFFFFFFF, 4, "does not end where"},
                          {kEnd, 0, 8, 0x00050005, 4, "entry 4 of 5 is missing"},
                          {kEnd, 0, 8, 0x00030003, 4, "follow the last of 3 entries"},
                          {kEnd, 0, 8, 0xFFFFFFFF, 4, "65535 entries do not fit"},
                          {kEnd, 0, 20, 1, 2, "comment of its end record leaves"}});
}

TEST(ZipReader, RefusesALyingZip64Record) {
  const StatusCode no = StatusCode::kUnimplemented;
  expect_refused_changes(ZipFraming::kTorch,
                         {{kLocator, 0, 4, 1, 4, "several parts", no},
                          {kLocator, 0, 16, 2, 4, "several parts", no},
                          {kLocator, 0, 8, ~uint64_t{0}, 8, "points nowhere"},
                          {kLocator, 0, 8, 0, 8, "points to no zip64 end record"},
                          {kEnd64, 0, 4, 45, 8, "points to no zip64 end record"},
                          {kEnd64, 0, 4, ~uint64_t{0}, 8, "points to no zip64 end record"},
                          {kEnd64, 0, 16, 1, 4, "several parts", no},
                          {kEnd64, 0, 24, 5, 8, "several parts", no},
                          {kEnd64, 0, 40, 1, 8, "zip64 end record differ"},
                          {kEnd64, 0, 48, 1, 8, "zip64 end record differ"}});
  std::string archive = archive_of(kEntries);
  patch(&archive, kEnd, 0, 12, uint64_t{0xFFFFFFFFFFFFFFFF});
  EXPECT_TRUE(payloads_of(archive).ok());
  std::string huge = archive;
  patch(&huge, kEnd64, 0, 40, ~uint64_t{0} - 1);
  expect_refused(huge, "does not end where");
  std::string crowded = archive;
  patch(&crowded, kEnd, 0, 8, uint32_t{0xFFFFFFFF});
  patch(&crowded, kEnd64, 0, 24, uint64_t{1} << 40);
  patch(&crowded, kEnd64, 0, 32, uint64_t{1} << 40);
  expect_refused(crowded, "entries do not fit");
}

TEST(ZipReader, RefusesALyingDirectory) {
  const StatusCode no = StatusCode::kUnimplemented;
  expect_refused_changes(ZipFraming::kPlain,
                         {{kCentral, 1, 0, 0, 4, "entry 1 of 4 is missing"},
                          {kCentral, 1, 8, 0x0801, 2, "is encrypted", no},
                          {kCentral, 1, 8, 0x0840, 2, "is encrypted", no},
                          {kCentral, 1, 8, 0x0820, 2, "patch data", no},
                          {kCentral, 1, 8, 0x0808, 2, "differs from the directory"},
                          {kCentral, 1, 10, 8, 2, "is deflated (method 8)", no},
                          {kCentral, 1, 10, 99, 2, "is compressed (method 99)", no},
                          {kCentral, 1, 16, 5, 4, "differs from the directory"},
                          {kCentral, 1, 20, 5, 4, "take 5"},
                          {kCentral, 1, 24, 5, 4, "its 5 bytes take 200"},
                          {kCentral, 1, 24, 0xFFFFFFFF, 4, "wrong zip64 field"},
                          {kCentral, 3, 28, 4000, 2, "leaves its directory"},
                          {kCentral, 3, 30, 1, 2, "leaves its directory"},
                          {kCentral, 1, 34, 1, 2, "another part"},
                          {kCentral, 1, 42, 73, 4, "is missing"},
                          {kCentral, 1, 42, 0, 4, "overlaps"},
                          {kCentral, 1, 42, 0xFFFFFFFE, 4, "does not lie in front"},
                          {kCentral, 1, 42, 0xFFFFFFFF, 4, "wrong zip64 field"}});
}

TEST(ZipReader, RefusesALocalHeaderThatSaysSomethingElse) {
  expect_refused_changes(ZipFraming::kPlain, {{kLocal, 1, 0, 0, 4, "is missing"},
                                              {kLocal, 1, 6, 0, 2, "differs"},
                                              {kLocal, 1, 8, 8, 2, "differs"},
                                              {kLocal, 1, 14, 0, 4, "differs"},
                                              {kLocal, 1, 18, 0, 4, "differs"},
                                              {kLocal, 1, 22, 201, 4, "differs"},
                                              {kLocal, 1, 22, 0xFFFFFFFF, 4, "zip64 field"},
                                              {kLocal, 1, 26, 13, 2, "another name"},
                                              {kLocal, 1, 28, 5000, 2, "leaves no room"},
                                              {kLocal, 1, 40, 'D', 1, "another name"}});
  expect_refused_changes(ZipFraming::kTorch, {{kLocal, 1, 14, 1, 4, "differs"},
                                              {kLocal, 1, 18, 1, 4, "differs"},
                                              {kLocal, 1, 6, 0x0800, 2, "differs"}});
}

TEST(ZipReader, RefusesNamesThatLeadOut) {
  const StatusCode unsafe = StatusCode::kPermissionDenied;
  for (const char* name : {"..", "../a", "a/../b", "a/..", "/a", "\\a", "a\\..\\b", "c:a"}) {
    std::string archive = archive_of({{std::string(std::strlen(name), 'n'), "x"}});
    for (size_t at;
         (at = archive.find(std::string(std::strlen(name), 'n') + "FB")) != archive.npos;)
      archive.replace(at, std::strlen(name), name);
    const size_t central = archive.find("PK\x01\x02");
    archive.replace(central + 46, std::strlen(name), name);
    expect_refused(archive, "leads out", unsafe);
    EXPECT_EQ(payloads_of(archive).status().detail("unsafe"), "path escape") << name;
  }
  for (const char* name : {"a..b", "...", "a/...b", "..a"})
    EXPECT_TRUE(payloads_of(archive_of({{name, "x"}})).ok()) << name;
}

TEST(ZipReader, RefusesNamesThatAreNoneOrTwice) {
  std::string archive = archive_of({{"ab", "x"}, {"cd", "y"}});
  patch(&archive, kCentral, 1, 46, uint16_t{0x6261});
  expect_refused(archive, "two entries 'ab'");
  archive = archive_of({{"ab", "x"}});
  patch(&archive, kCentral, 0, 46, uint16_t{0xFFFF});
  expect_refused(archive, "no UTF-8");
  patch(&archive, kCentral, 0, 46, uint16_t{0x0061});
  expect_refused(archive, "no UTF-8");
  EXPECT_TRUE(payloads_of(archive_of({{std::string(4096, 'n'), "x"}})).ok());
}

TEST(ZipReader, ComparesTheChecksumUnlessItIsZero) {
  std::string archive = archive_of(kEntries);
  archive[archive.find("xxx")] = 'y';
  expect_refused(archive, "CRC-32 of entry 'archive/data/0'");
  const auto directory = ZipDirectory::read(bytes_of_text(archive));
  EXPECT_EQ(check_payload(bytes_of_text(archive), directory->entry(1)).code(),
            StatusCode::kDataLoss);
  EXPECT_TRUE(check_payload(bytes_of_text(archive), directory->entry(0)).ok());
  patch(&archive, kCentral, 1, 16, uint32_t{0});
  EXPECT_TRUE(payloads_of(archive).ok());
}

TEST(ZipReader, ReadsNoMoreThanIsWanted) {
  const std::string archive = archive_of({{"large", std::string(1001, 'x')}});
  expect_refused(archive, "more than 1000", StatusCode::kResourceExhausted);
  EXPECT_EQ(payloads_of(archive).status().detail("limit"), "1000");
}

TEST(ZipHead, ShowsThePlaceOfALargePayload) {
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    const std::string archive = archive_of({{"archive/data.pkl", "PK\x07\x08 pickle"},
                                            {"archive/byteorder", "little"},
                                            {"archive/data/0", std::string(5000, 'x'), 4096}},
                                           framing);
    for (const size_t size : {size_t{600}, size_t{4096}, size_t{5000}}) {
      const std::string head = archive.substr(0, size);
      const auto entries = read_zip_head(bytes_of_text(archive), std::as_bytes(std::span(head)));
      ASSERT_TRUE(entries.ok()) << entries.status().to_string();
      ASSERT_EQ(entries->size(), 3U) << size;
      EXPECT_EQ((*entries)[0].size_bytes, 11U);
      EXPECT_EQ((*entries)[1].payload_offset % 64, 0U);
      EXPECT_EQ((*entries)[2].name, "archive/data/0");
      EXPECT_EQ((*entries)[2].payload_offset, 4096U);
      const bool is_known = framing == ZipFraming::kPlain;
      EXPECT_EQ((*entries)[2].size_bytes.has_value(), is_known);
    }
  }
}

TEST(ZipHead, RefusesWhatTheDirectoryWouldRefuse) {
  const auto head_of = [](std::string_view archive) {
    return read_zip_head(bytes_of_text(archive), std::as_bytes(std::span(archive)));
  };
  std::string archive = archive_of(kEntries, ZipFraming::kPlain);
  patch(&archive, kLocal, 1, 8, uint16_t{8});
  EXPECT_EQ(head_of(archive).status().code(), StatusCode::kUnimplemented);
  patch(&archive, kLocal, 0, 30, uint16_t{0x2E2E});
  patch(&archive, kLocal, 0, 32, uint8_t{'/'});
  EXPECT_EQ(head_of(archive).status().code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(head_of("no archive").ok());
  EXPECT_TRUE(head_of("no archive")->empty());
  archive = archive_of(kEntries, ZipFraming::kPlain);
  patch(&archive, kLocal, 0, 18, uint32_t{1});
  EXPECT_EQ(head_of(archive).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace shardwright::format::archive
