// SPDX-License-Identifier: Apache-2.0
//
// Damage of every kind is found, nothing crashes, nothing whole is called damaged, and no damaged
// byte reaches a state.
#include <gtest/gtest.h>

#include "core/format/native/native_format.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using format::native::kFileHeaderBytes;
using shardwright::test::RandomSource;

// Two ranks, tensors larger and smaller than a block, two of equal size, objects; and an older save
// of the same names.
struct CorruptionTest : testing::Test {
  RandomSource random;
  CheckpointFixture fixture;
  std::vector<Dense> tensors;
  std::vector<std::string> data_keys;
  std::vector<std::vector<std::byte>> whole;  // bytes of data_keys
  std::vector<std::vector<std::byte>> older;  // the same ranks in the older save

  void make(int64_t large_bytes) {
    tensors.clear();
    for (const std::string name : {"twin.a", "twin.b"}) {
      tensors.push_back(random_dense(random, name, DType::kUint8, {2, large_bytes / 2}));
    }
    for (int i = 0; i < 4; ++i) {
      tensors.push_back(
          random_dense(random, "small." + std::to_string(i), DType::kFloat32, {7 + i}));
    }
    save("older");
    for (Dense& tensor : tensors)
      tensor = random_dense(random, tensor.name, tensor.dtype, tensor.shape);
    save("ckpt");
    data_keys = rank_keys("ckpt");
    for (const std::string& key : data_keys) whole.push_back(fixture.get(key));
    for (const std::string& key : rank_keys("older")) older.push_back(fixture.get(key));
    ASSERT_EQ(data_keys.size(), 2U);
  }

  void save(const std::string& prefix) {
    std::vector<Holding> holdings(2);
    for (const Dense& tensor : tensors) {
      for (int64_t rank = 0; rank < 2; ++rank) {
        Holding& holding = holdings[static_cast<size_t>(rank)];
        if (tensor.shape.size() == 2) {
          add_boxes(&holding, tensor, {{{rank, 0}, {1, tensor.shape[1]}}}, true);
        } else {
          add_whole(&holding, tensor, true);
        }
      }
    }
    for (Holding& holding : holdings) add_object(&holding, "config", "some text that is an object");
    fixture.save({holdings[0].state, holdings[1].state}, {}, prefix);
  }

  std::vector<std::string> rank_keys(const std::string& prefix) {
    std::vector<std::string> keys = fixture.keys(prefix + "/");
    std::erase_if(keys,
                  [](const std::string& key) { return key.find("/rank-") == std::string::npos; });
    return keys;
  }

  void restore() {
    for (size_t i = 0; i < data_keys.size(); ++i) fixture.put(data_keys[i], whole[i]);
  }

  // True when opening or verifying tells that something is wrong.
  bool is_found(bool deep) {
    const auto opened = Checkpoint::open(fixture.runtime(), fixture.location());
    if (!opened.ok()) {
      EXPECT_EQ(opened.status().code(), StatusCode::kDataLoss) << opened.status().to_string();
      return true;
    }
    const Result<Report> listed = (*opened)->find_damage(deep, CallContext());
    EXPECT_TRUE(listed.ok()) << listed.status().to_string();
    return listed.ok() && !listed->damage.empty();
  }

  // What find_damage lists, verify fails with.
  static bool finds_damage(const Checkpoint& checkpoint, bool deep) {
    const Result<Report> listed = checkpoint.find_damage(deep, CallContext());
    EXPECT_TRUE(listed.ok()) << listed.status().to_string();
    const bool found = listed.ok() && !listed->damage.empty();
    const Status verified = checkpoint.verify(deep, CallContext()).status();
    EXPECT_EQ(verified.code(), found ? StatusCode::kDataLoss : StatusCode::kOk);
    if (found) {
      EXPECT_EQ(verified.detail("file"), listed->damage[0].file);
    }
    return found;
  }

  // A load either fails or gives the truth.
  void expect_no_wrong_bytes() {
    Holding target;
    for (const Dense& tensor : tensors) add_whole(&target, tensor, false);
    const Result<Report> report = fixture.load_one(target);
    if (!report.ok()) {
      EXPECT_EQ(report.status().code(), StatusCode::kDataLoss) << report.status().to_string();
      return;
    }
    for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(holds(target, i, tensors[i]));
  }
};

TEST_F(CorruptionTest, EveryBitOfTheManifestCounts) {
  make(64);
  const std::vector<std::byte> manifest = fixture.get("ckpt/manifest.shw");
  std::vector<std::byte> changed = manifest;
  for (size_t bit = 0; bit < manifest.size() * 8; ++bit) {
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    fixture.put("ckpt/manifest.shw", changed);
    ASSERT_TRUE(is_found(false)) << "bit " << bit << " of " << manifest.size() * 8;
    changed[bit / 8] = manifest[bit / 8];
  }
  for (size_t size = 0; size < manifest.size(); ++size) {
    fixture.put("ckpt/manifest.shw", std::span(manifest).first(size));
    ASSERT_TRUE(is_found(false)) << "cut to " << size;
  }
}

TEST_F(CorruptionTest, EveryBitOfHeaderIndexAndTrailerCounts) {
  make(64);
  const auto checkpoint = fixture.open();
  for (size_t file = 0; file < data_keys.size(); ++file) {
    uint64_t data_end = 0;
    for (size_t chunk = 0; chunk < checkpoint->catalog().chunk_count(); ++chunk) {
      const format::Extent extent = *checkpoint->opened().chunk_extent(chunk);
      if (extent.file == file) data_end = std::max(data_end, extent.offset + extent.size_bytes);
    }
    std::vector<std::byte> changed = whole[file];
    for (size_t bit = 0; bit < changed.size() * 8; bit += shardwright::test::kEachBit) {
      const size_t byte = bit / 8;
      const bool payload = byte >= kFileHeaderBytes && byte < data_end;
      // The header's zeros are all alike: one bit in 64 of them is enough.
      if (payload || (byte >= 128 && byte < kFileHeaderBytes && bit % 61 != 0)) continue;
      changed[byte] ^= std::byte{1} << (bit % 8);
      fixture.put(data_keys[file], changed);
      // Bits of padding are the business of a deep verification.
      ASSERT_TRUE(is_found(true)) << "bit " << bit << " of " << data_keys[file];
      changed[byte] = whole[file][byte];
    }
    fixture.put(data_keys[file], whole[file]);
  }
  EXPECT_FALSE(is_found(true));
}

// A handle remembers manifest and indexes; verification reads them again.
TEST_F(CorruptionTest, EveryByteCountsAgainOnAHandleThatVerifiedBefore) {
  make(64);
  const auto checkpoint = fixture.open();
  ASSERT_FALSE(finds_damage(*checkpoint, true));
  std::vector<std::string> keys = data_keys;
  keys.emplace_back("ckpt/manifest.shw");
  for (const std::string& key : keys) {
    const std::vector<std::byte> good = fixture.get(key);
    std::vector<std::byte> changed = good;
    for (size_t byte = 0; byte < good.size(); byte += shardwright::test::kEachBit) {
      changed[byte] ^= std::byte{1} << (byte % 8);
      fixture.put(key, changed);
      ASSERT_TRUE(finds_damage(*checkpoint, true)) << "byte " << byte << " of " << key;
      changed[byte] = good[byte];
    }
    ASSERT_TRUE(fixture.store()->remove(key).ok());
    ASSERT_TRUE(finds_damage(*checkpoint, false)) << key << " is gone";
    fixture.put(key, good);
  }
  EXPECT_FALSE(finds_damage(*checkpoint, true));
}

TEST_F(CorruptionTest, AThousandFaultsOfThePayloadAreFound) {
  make(3 << 19);
  for (int64_t round = 0; round < shardwright::test::rounds(1000); ++round) {
    const auto file = static_cast<size_t>(random.between(0, 1));
    std::vector<std::byte> changed = whole[file];
    const auto at =
        static_cast<size_t>(random.between(0, static_cast<int64_t>(changed.size()) - 1));
    switch (round % 5) {
      case 0:  // one bit
        changed[at] ^= std::byte{1} << random.between(0, 7);
        break;
      case 1:  // a sector of zeros
        std::fill_n(changed.begin() + static_cast<int64_t>(at / 512 * 512),
                    std::min<size_t>(512, changed.size() - at / 512 * 512), std::byte{0});
        break;
      case 2:  // cut
        changed.resize(at);
        break;
      case 3:  // bytes behind the end
        changed.resize(changed.size() + static_cast<size_t>(random.between(1, 5000)));
        break;
      default:  // a sector of the older save at its place
        if (changed.size() != older[file].size()) continue;
        std::copy_n(older[file].begin() + static_cast<int64_t>(at / 512 * 512),
                    std::min<size_t>(512, changed.size() - at / 512 * 512),
                    changed.begin() + static_cast<int64_t>(at / 512 * 512));
    }
    const bool differs = changed != whole[file];
    fixture.put(data_keys[file], changed);
    ASSERT_EQ(is_found(true), differs)
        << "round " << round << ", byte " << at << " of " << data_keys[file];
    if (round % 10 == 0) expect_no_wrong_bytes();
    fixture.put(data_keys[file], whole[file]);
  }
}

TEST_F(CorruptionTest, SwappedExtentsOfEqualSizeAreFound) {
  make(3 << 19);
  const auto checkpoint = fixture.open();
  const plan::Catalog& catalog = checkpoint->catalog();
  const auto first_chunk = [&](std::string_view name) {
    return catalog.tensors[*checkpoint->find_tensor(name, -1)].chunk_begin;
  };
  // The twins have chunks of one size; which file they are in does not matter.
  const format::Extent a = *checkpoint->opened().chunk_extent(first_chunk("twin.a"));
  const format::Extent b = *checkpoint->opened().chunk_extent(first_chunk("twin.b"));
  ASSERT_EQ(a.size_bytes, b.size_bytes);
  std::vector<std::vector<std::byte>> changed = whole;
  std::swap_ranges(changed[a.file].begin() + static_cast<int64_t>(a.offset),
                   changed[a.file].begin() + static_cast<int64_t>(a.offset + a.size_bytes),
                   changed[b.file].begin() + static_cast<int64_t>(b.offset));
  for (size_t i = 0; i < 2; ++i) fixture.put(data_keys[i], changed[i]);
  EXPECT_TRUE(is_found(true));
  expect_no_wrong_bytes();
}

TEST_F(CorruptionTest, FilesOfOtherRanksAndSavesAreFoundWithoutReadingPayload) {
  make(4096);
  fixture.put(data_keys[0], whole[1]);
  EXPECT_TRUE(is_found(false));
  fixture.put(data_keys[1], whole[0]);
  EXPECT_TRUE(is_found(false)) << "swapped";
  restore();
  fixture.put(data_keys[0], older[0]);
  EXPECT_TRUE(is_found(false)) << "older";
  expect_no_wrong_bytes();
  restore();
  EXPECT_FALSE(is_found(true));
}

TEST_F(CorruptionTest, WholeCheckpointsAreNeverCalledDamaged) {
  make(64);
  for (int round = 0; round < 2000; ++round) ASSERT_FALSE(is_found(true));
}

}  // namespace
}  // namespace shardwright::exec::test
