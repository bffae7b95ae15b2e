// SPDX-License-Identifier: Apache-2.0
//
// A directory that is opened again: what was opened before where nothing has changed, and never
// where something has.
#include "core/format/torch_dcp/kept_openings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_writer.h"
#include "core/format/format.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/storage/backends.h"
#include "tests/core/format/torch_dcp/sample_checkpoint.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::format::torch_dcp {
namespace {

using Opening = std::shared_ptr<const OpenedCheckpoint>;

constexpr std::string_view kOneElement = "aaaabbbb";

// w of two elements, and the object "step".
test::SampleDirectory sample(int64_t step, const std::string& file = "__0_0.distcp") {
  test::SampleDirectory directory;
  directory.tensors.push_back({"w", {2}, {{{0}, {2}, {}}}});
  directory.tensors[0].chunks[0].item.bytes = test::tensor_item({2}, kOneElement);
  directory.tensors[0].chunks[0].item.file = file;
  archive::PickleWriter pickle(archive::PickleProtocol::k2);
  directory.objects.push_back({"step", {}});
  directory.objects[0].item.bytes =
      test::value_item(std::move(pickle.empty_list().integer(step).append()).finish());
  directory.objects[0].item.file = file;
  return directory;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct stat stat_of(const std::string& path) {
  struct stat found{};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found;
}

// Does it, and again until the file system's clock has gone on: the promise is about changes that
// are not within one tick of it. Access and modification times are what they were.
void change(const std::string& path, const std::function<void()>& how) {
  const struct stat before = stat_of(path);
  const auto is_later = [&] {
    const struct stat now = stat_of(path);
    return now.st_ctim.tv_sec != before.st_ctim.tv_sec ||
           now.st_ctim.tv_nsec != before.st_ctim.tv_nsec;
  };
  do {
    how();
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  } while (!is_later());
}

void write_in_place(const std::string& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(::pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ::close(file);
}

class KeptOpeningsTest : public testing::Test {
 protected:
  void put(const test::SampleDirectory& directory, const std::string& name = "c") {
    test::place_and_store(storage::make_posix_storage(folder_.path()).get(), name, directory);
  }
  // Files of another checkpoint, to be put in place of those that are there.
  std::string bytes_of(const test::SampleDirectory& directory, const std::string& file) {
    put(directory, "other");
    return read_file(folder_ / ("other/" + file));
  }
  Result<Opening> try_open(const std::string& name = "c") {
    const std::string path = folder_ / name;
    return table_.open({storage::make_posix_storage(path), "", path, path});
  }
  Opening open(const std::string& name = "c") {
    const auto opened = try_open(name);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return opened.ok() ? *opened : nullptr;
  }
  static std::string step_of(const OpenedCheckpoint& opened) {
    const auto extent = opened.object_extent(0);
    if (!extent.ok()) return extent.status().to_string();
    std::string bytes(extent->size_bytes, '?');
    const auto derived = opened.open_derived();
    const Status read =
        (*derived)->read_at(extent->offset, std::as_writable_bytes(std::span(bytes)));
    return read.ok() ? bytes : read.to_string();
  }

  shardwright::test::TemporaryDirectory folder_;
  // All that the test makes lies well in the past.
  shardwright::test::FakeClock clock_{1, real_clock().unix_ns() + 2 * KeptOpenings::kSettledNs};
  FormatTable table_{clock_};
};

TEST_F(KeptOpeningsTest, GivesAgainWhatWasOpened) {
  put(sample(7));
  put(sample(8), "d");
  const Opening first = open();
  const Opening other = open("d");
  EXPECT_EQ(open(), first);
  EXPECT_EQ(open("d"), other);
  EXPECT_EQ(step_of(*first), "[7]");
  EXPECT_EQ(step_of(*other), "[8]");
}

TEST_F(KeptOpeningsTest, HeedsOnlyFilesOfTheCheckpoint) {
  put(sample(7));
  const Opening first = open();
  std::ofstream(folder_ / "c/train.log") << "step 7";
  EXPECT_EQ(open(), first);
}

TEST_F(KeptOpeningsTest, NeverServesWhatHasChanged) {
  const std::string index = folder_ / "c/.metadata";
  const std::string data = folder_ / "c/__0_0.distcp";
  const std::string new_data = bytes_of(sample(9), "__0_0.distcp");
  put(sample(7));
  ASSERT_EQ(read_file(data).size(), new_data.size());
  const std::string old_index = read_file(index);
  struct Case {
    const char* what;
    std::function<void()> change;
    const char* step;  // "" = it opens no more
  };
  const std::vector<Case> cases = {
      {"an object is rewritten in place, and the time set back",
       [&] { change(data, [&] { write_in_place(data, new_data); }); }, "[9]"},
      {"the index is cut, and the time set back",
       [&] { change(index, [&] { std::filesystem::resize_file(index, old_index.size() - 1); }); },
       ""},
      {"the index is whole again",
       [&] { change(index, [&] { write_in_place(index, old_index); }); }, "[9]"},
      {"the index is rewritten in place with a byte that is another",
       [&] {
         std::string bytes = old_index;
         bytes.back() = 'x';
         change(index, [&] { write_in_place(index, bytes); });
       },
       ""},
      {"the index is replaced by one of the same size",
       [&] {
         std::ofstream(folder_ / "new", std::ios::binary) << old_index;
         std::filesystem::rename(folder_ / "new", index);
       },
       "[9]"},
      {"the data is replaced",
       [&] {
         put(sample(7), "other");
         std::filesystem::rename(folder_ / "other/__0_0.distcp", data);
       },
       "[7]"},
      {"digests come",
       [&] { std::ofstream(folder_ / ("c/" + digests_file_name(std::string(32, 'a')))) << "no"; },
       "[7]"},
      {"the index of a rank comes", [&] { std::ofstream(folder_ / "c/__0.metadata") << old_index; },
       "[7]"},
      {"it alone is left", [&] { std::filesystem::remove(index); }, "[7]"},
      {"the data goes", [&] { std::filesystem::remove(data); }, "gone"},
  };
  Opening before = open();
  for (const Case& each : cases) {
    ASSERT_EQ(try_open().ok() ? *try_open() : nullptr, before) << "before " << each.what;
    each.change();
    const auto after = try_open();
    ASSERT_EQ(after.ok(), *each.step != '\0') << each.what << ": " << after.status().to_string();
    EXPECT_TRUE(!after.ok() || *after != before) << each.what;
    if (after.ok() && *each.step == '[') {
      EXPECT_EQ(step_of(**after), each.step) << each.what;
    }
    before = after.ok() ? *after : nullptr;
  }
}

TEST_F(KeptOpeningsTest, KeepsNothingOfADirectoryThatHasJustChanged) {
  put(sample(7));
  const shardwright::test::FakeClock now(1, real_clock().unix_ns());
  const FormatTable table(now);
  const std::string path = folder_ / "c";
  const format::Location location{storage::make_posix_storage(path), "", path, path};
  EXPECT_NE(*table.open(location), *table.open(location));
}

TEST_F(KeptOpeningsTest, KeepsNothingOfFilesThatItHasNotSeen) {
  put(sample(7, "data/__0_0.distcp"));
  EXPECT_NE(open(), open());
  EXPECT_EQ(step_of(*open()), "[7]");
}

TEST_F(KeptOpeningsTest, KeepsNothingOfAStorageWithoutTimesOfChanges) {
  const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
  test::place_and_store(memory.get(), "c", sample(7));
  EXPECT_NE(*table_.open({memory, "c"}), *table_.open({memory, "c"}));
  EXPECT_NE(*table_.open({memory, "c", "c", "/c"}), *table_.open({memory, "c", "c", "/c"}));
}

TEST_F(KeptOpeningsTest, ForgetsWhatWasUsedLongestAgo) {
  put(sample(7));
  const Opening opened = open();
  KeptOpenings kept(clock_);
  const auto at = [](const char* path) { return KeptOpenings::Seen{path, {}}; };
  constexpr uint64_t kHalf = KeptOpenings::kMostBytes / 2;
  kept.keep(at("a"), kHalf, opened);
  kept.keep(at("b"), kHalf, opened);
  EXPECT_EQ(kept.find(at("a")), opened);
  kept.keep(at("c"), 1, opened);
  EXPECT_EQ(kept.find(at("b")), nullptr);
  EXPECT_EQ(kept.find(at("a")), opened);
  EXPECT_EQ(kept.find(at("c")), opened);
  kept.keep(at("d"), KeptOpenings::kMostBytes + 1, opened);
  EXPECT_EQ(kept.find(at("d")), nullptr);
  EXPECT_EQ(kept.find(at("a")), opened);
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
