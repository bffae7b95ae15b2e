// SPDX-License-Identifier: Apache-2.0
//
// Golden checkpoints of each version of the native format: the writer's bytes are those of the
// newest one, every one of them opens, and the dumps on docs/formats/native.md are of these files.
// SHW_UPDATE_GOLDEN=1 writes the newest files and the dumps anew; a version that was released is
// never written again.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "core/storage/backends.h"
#include "tests/core/format/native/sample_checkpoint.h"

namespace shardwright::format::native {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNewest = "v0.1";

fs::path source_directory() {
  const char* given = std::getenv("SHW_SOURCE_DIR");
  return given != nullptr ? fs::path(given) : fs::current_path();
}
fs::path golden_directory(std::string_view version) {
  return source_directory() / "tests/golden/native" / version;
}
bool updates() {
  return std::getenv("SHW_UPDATE_GOLDEN") != nullptr;
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Offset, 16 bytes, characters; a run of equal lines is one line "*".
std::string hex_dump(std::string_view bytes) {
  std::string dump;
  std::string_view last;
  bool skipping = false;
  for (size_t begin = 0; begin < bytes.size(); begin += 16) {
    const std::string_view line = bytes.substr(begin, 16);
    const bool is_last = begin + 16 >= bytes.size();
    if (begin > 0 && line == last && !is_last) {
      if (!skipping) dump += "*\n";
      skipping = true;
      continue;
    }
    skipping = false;
    last = line;
    dump += fmt::format("{:08x} ", begin);
    std::string characters;
    for (const char each : line) {
      dump += fmt::format(" {:02x}", static_cast<unsigned char>(each));
      characters += each >= 0x20 && each < 0x7f ? each : '.';
    }
    dump += fmt::format("{:{}}  |{}|\n", "", 3 * (16 - line.size()), characters);
  }
  return dump;
}

// The page with the text between two marker lines replaced.
std::string with_dump(std::string page, std::string_view name, std::string_view dump) {
  const std::string begin = fmt::format("<!-- dump of {} -->\n```text\n", name);
  const size_t from = page.find(begin);
  if (from == std::string::npos) return page + "\nmissing: " + begin;
  const size_t to = page.find("```\n", from + begin.size());
  return page.replace(from + begin.size(), to - from - begin.size(), dump);
}

TEST(NativeGolden, TheWriterStillMakesTheSameBytes) {
  const test::Sample sample = test::make_sample();
  for (const auto& [key, bytes] : sample.files) {
    const fs::path path = golden_directory(kNewest) / key;
    if (updates()) write_file(path, text_of(bytes));
    EXPECT_EQ(read_file(path), text_of(bytes)) << path;
  }
}

class NativeGoldenVersion : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Released, NativeGoldenVersion, testing::Values("v0.1"));

TEST_P(NativeGoldenVersion, OpensWithTheSameContent) {
  const std::shared_ptr<storage::Storage> storage =
      storage::make_posix_storage(golden_directory(GetParam()).string());
  const auto opened = FormatTable().open({storage, ""});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->generation(), test::kSampleGeneration);
  EXPECT_EQ((*opened)->created_unix_ns(), 1'700'000'000'123'456'789);
  EXPECT_EQ((*opened)->metadata(),
            (std::map<std::string, std::string>{{"epoch", "3"}, {"step", "100"}}));
  const plan::Catalog& catalog = (*opened)->catalog();
  ASSERT_EQ(catalog.tensors.size(), 3U);
  EXPECT_EQ(catalog.tensor_name(0), "layer.weight");
  EXPECT_EQ(catalog.tensors[1].dtype, DType::kBfloat16);
  EXPECT_EQ(catalog.tensors[2].kind, EntryKind::kRankLocal);
  EXPECT_EQ(catalog.tensors[2].rank, 1);
  ASSERT_EQ(catalog.objects.size(), 2U);
  EXPECT_EQ(catalog.object_name(0), "step");
}

TEST_P(NativeGoldenVersion, HoldsInEveryByte) {
  const std::shared_ptr<storage::Storage> storage =
      storage::make_posix_storage(golden_directory(GetParam()).string());
  const auto opened = FormatTable().open({storage, ""});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  for (uint32_t file = 0; file < (*opened)->files().size(); ++file) {
    const Status prepared = (*opened)->prepare_file(file);
    EXPECT_TRUE(prepared.ok()) << prepared.to_string();
  }
  for (size_t chunk = 0; chunk < (*opened)->catalog().chunk_count(); ++chunk) {
    const Extent extent = *(*opened)->chunk_extent(chunk);
    const std::vector<std::byte> file =
        *storage::read_all(*storage, (*opened)->files()[extent.file].key, 1 << 20);
    const auto bytes = std::span(file).subspan(extent.offset, extent.size_bytes);
    EXPECT_TRUE((*opened)->check_chunk_block(chunk, 0, bytes).ok()) << chunk;
  }
}

TEST(NativeGolden, TheFormatPageShowsTheseFiles) {
  const fs::path path = source_directory() / "docs/formats/native.md";
  const std::string page = read_file(path);
  ASSERT_FALSE(page.empty()) << path;
  std::string expected = page;
  for (const std::string& key :
       {std::string(kManifestName), rank_file_key(test::kSampleGeneration, 1)}) {
    expected = with_dump(expected, key, hex_dump(read_file(golden_directory(kNewest) / key)));
  }
  if (updates()) write_file(path, expected);
  EXPECT_EQ(read_file(path), expected)
      << "the dumps on the page are old: run with SHW_UPDATE_GOLDEN=1";
}

// "| name | value |" rows that the page and the code share.
TEST(NativeGolden, TheFormatPageNamesTheConstantsOfTheCode) {
  const std::string page = read_file(source_directory() / "docs/formats/native.md");
  const std::pair<std::string_view, uint64_t> rows[] = {
      {"format major", kFormatMajor},
      {"format minor", kFormatMinor},
      {"file header", kFileHeaderBytes},
      {"trailer", kTrailerBytes},
      {"digest block", kDigestBlockBytes},
      {"extent alignment", kExtentAlignmentBytes},
      {"slab chunk limit", kSlabChunkLimitBytes},
      {"slab alignment", kSlabAlignmentBytes},
      {"tensor rank", static_cast<uint64_t>(kMaxTensorRank)},
      {"name", kMaxNameBytes},
      {"nested path", kMaxPathTextBytes},
      {"byte object", kMaxObjectBytes},
      {"metadata", kMaxMetadataBytes},
      {"manifest or index", kMaxFlatBufferBytes},
      {"world size", static_cast<uint64_t>(kMaxWorldSize)},
  };
  for (const auto& [name, value] : rows) {
    EXPECT_NE(page.find(fmt::format("| {} | {} |", name, value)), std::string::npos)
        << name << " " << value;
  }
}

}  // namespace
}  // namespace shardwright::format::native
