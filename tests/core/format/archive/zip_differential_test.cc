// SPDX-License-Identifier: Apache-2.0
//
// Against Python's zipfile: what it writes is read, what is written it reads, and of damaged
// archives nothing is taken that it reads differently.
#include <cstdio>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/format/archive/zip_reader.h"
#include "core/integrity/crc32.h"
#include "tests/core/format/archive/oracle.h"
#include "tests/core/format/archive/sample_archives.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::archive {
namespace {

using test::text_of_file;

bool run_oracle(const std::string& arguments) {
  return test::run_oracle("zip_oracle.py", arguments);
}

// The lines of the oracle by our reader.
std::string listing_of(std::string_view archive) {
  const ArchiveBytes bytes = test::bytes_of_text(archive);
  const auto directory = ZipDirectory::read(bytes);
  if (!directory.ok()) return "refused\n";
  std::string lines;
  for (size_t i = 0; i < directory->size(); ++i) {
    const ZipEntry entry = directory->entry(i);
    const auto payload = read_payload(bytes, entry, 1 << 20);
    if (!payload.ok()) return "refused\n";
    lines += fmt::format("{} {} {}\n", to_hex(std::as_bytes(std::span(entry.name))),
                         payload->size(), integrity::crc32(0, *payload));
  }
  return lines;
}

TEST(ZipDifferential, ReadsWhatZipfileWritesAndNothingThatItReadsOtherwise) {
  const shardwright::test::TemporaryDirectory folder;
  // The same each time, but for the long run: the short one cannot fail by chance.
  constexpr int64_t kSeed = 20;
  shardwright::test::RandomSource random;
  const int64_t seed = shardwright::test::is_soak() ? random.between(0, 1 << 30) : kSeed;
  const int64_t sound = shardwright::test::rounds(100, 2000);
  const int64_t damaged = shardwright::test::rounds(400, 20000);
  ASSERT_TRUE(run_oracle(fmt::format("'{}' {} {} {}", folder / "", seed, sound, damaged)));
  int64_t both = 0;
  for (int64_t i = 0; i < sound + damaged; ++i) {
    const std::string archive = text_of_file(folder / fmt::format("{}.zip", i));
    const std::string expected = text_of_file(folder / fmt::format("{}.txt", i));
    const std::string found = listing_of(archive);
    if (i < sound) {
      EXPECT_EQ(found, expected) << i;
    } else if (found != "refused\n" && expected != "refused\n") {
      EXPECT_EQ(found, expected) << i;
      ++both;
    }
  }
  EXPECT_GT(both, 0);
}

TEST(ZipDifferential, ZipfileReadsWhatIsWritten) {
  const shardwright::test::TemporaryDirectory folder;
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    const std::string archive = test::archive_of({{"archive/data.pkl", "a pickle"},
                                                  {"archive/data/0", std::string(9000, 'x'), 4096},
                                                  {"archive/data/1", ""},
                                                  {"archive/version", "3\n"}},
                                                 framing);
    const std::string path = folder / "a.zip";
    std::ofstream(path, std::ios::binary) << archive;
    const std::string list = folder / "a.txt";
    ASSERT_TRUE(run_oracle(fmt::format("--list '{}' > '{}'", path, list)));
    EXPECT_EQ(text_of_file(list), listing_of(archive));
    EXPECT_NE(text_of_file(list), "refused\n");
  }
}

}  // namespace
}  // namespace shardwright::format::archive
