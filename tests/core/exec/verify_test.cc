// SPDX-License-Identifier: Apache-2.0
//
// Verification finds damage of every kind, names it, and goes on after the first.
#include <gtest/gtest.h>

#include "tests/core/exec/checkpoint_fixture.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

// Two ranks: a tensor of 3 MiB split in rows, small tensors in a slab, an object.
struct VerifyTest : testing::Test {
  RandomSource random;
  CheckpointFixture fixture;
  Dense rows = random_dense(random, "rows", DType::kUint8, {6, 512 << 10});
  std::vector<Dense> small;

  void SetUp() override {
    std::vector<Holding> holdings(2);
    add_boxes(&holdings[0], rows, {{{0, 0}, {3, 512 << 10}}}, true);
    add_boxes(&holdings[1], rows, {{{3, 0}, {3, 512 << 10}}}, true);
    for (int i = 0; i < 5; ++i) {
      small.push_back(random_dense(random, "small." + std::to_string(i), DType::kUint8, {100 + i}));
      for (Holding& holding : holdings) add_whole(&holding, small.back(), true);
    }
    for (Holding& holding : holdings) add_object(&holding, "config", "text");
    fixture.save({holdings[0].state, holdings[1].state});
  }

  std::string data_key(int rank) {
    for (const std::string& key : fixture.keys("ckpt/")) {
      if (key.ends_with("rank-0000" + std::to_string(rank) + ".shw")) return key;
    }
    return "";
  }

  void flip(const std::string& key, uint64_t offset) {
    std::vector<std::byte> bytes = fixture.get(key);
    ASSERT_LT(offset, bytes.size());
    bytes[offset] ^= std::byte{0x10};
    fixture.put(key, bytes);
  }

  Report find_damage(bool deep) {
    const auto checkpoint = fixture.open();
    Result<Report> report = checkpoint->find_damage(deep, CallContext());
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? *report : Report();
  }
};

TEST_F(VerifyTest, FindsNothingWrongWithAWholeCheckpoint) {
  const Report structure = find_damage(false);
  EXPECT_TRUE(structure.damage.empty());
  EXPECT_EQ(structure.verify, "structure");
  EXPECT_EQ(structure.bytes_read, 0U);
  ASSERT_EQ(structure.notes.size(), 1U);
  EXPECT_NE(structure.notes[0].find("payload not read"), std::string::npos);
  const Report deep = find_damage(true);
  EXPECT_TRUE(deep.damage.empty());
  EXPECT_EQ(deep.verify, "deep");
  EXPECT_GE(deep.bytes_read, rows.bytes.size());
}

TEST_F(VerifyTest, NamesTensorBoxFileAndBytesOfADamagedBlock) {
  const auto checkpoint = fixture.open();
  const size_t tensor = *checkpoint->find_tensor("rows", -1);
  const plan::Catalog& catalog = checkpoint->catalog();
  const size_t chunk = catalog.tensors[tensor].chunk_begin + 1;
  const format::Extent extent = *checkpoint->opened().chunk_extent(chunk);
  const std::string file = checkpoint->opened().files()[extent.file].key;
  flip("ckpt/" + file, extent.offset + (1 << 20) + 77);
  EXPECT_TRUE(find_damage(false).damage.empty());
  const Report deep = find_damage(true);
  ASSERT_EQ(deep.damage.size(), 1U);
  const DamageReport& damage = deep.damage[0];
  EXPECT_EQ(damage.tensor, "rows");
  EXPECT_EQ(damage.box, box_text(catalog.chunk_box(chunk)));
  EXPECT_EQ(damage.file, file);
  EXPECT_EQ(damage.offset, extent.offset + (1 << 20));
  EXPECT_EQ(damage.length, extent.size_bytes - (1 << 20));
}

TEST_F(VerifyTest, GoesOnAfterTheFirstFinding) {
  const auto checkpoint = fixture.open();
  const plan::Catalog& catalog = checkpoint->catalog();
  for (size_t chunk = 0; chunk < catalog.chunk_count(); ++chunk) {
    const format::Extent extent = *checkpoint->opened().chunk_extent(chunk);
    flip("ckpt/" + checkpoint->opened().files()[extent.file].key, extent.offset);
  }
  EXPECT_EQ(find_damage(true).damage.size(), catalog.chunk_count());
}

TEST_F(VerifyTest, FindsPaddingThatIsNotZero) {
  const auto checkpoint = fixture.open();
  uint64_t checked = 0;
  for (uint32_t file = 0; file < checkpoint->opened().files().size(); ++file) {
    const std::vector<format::Extent> gaps = *checkpoint->opened().padding(file);
    for (const format::Extent& gap : gaps) {
      const std::string key = "ckpt/" + checkpoint->opened().files()[file].key;
      flip(key, gap.offset + gap.size_bytes / 2);
      const Report report = find_damage(true);
      ASSERT_EQ(report.damage.size(), 1U);
      EXPECT_EQ(report.damage[0].offset, gap.offset + gap.size_bytes / 2);
      flip(key, gap.offset + gap.size_bytes / 2);
      ++checked;
    }
  }
  EXPECT_GT(checked, 0U);
}

TEST_F(VerifyTest, ReportsACutFileAndChecksTheOthers) {
  const std::string key = data_key(0);
  std::vector<std::byte> bytes = fixture.get(key);
  bytes.pop_back();
  fixture.put(key, bytes);
  const Report report = find_damage(true);
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ("ckpt/" + report.damage[0].file, key);
  const std::string reason = "the file has " + std::to_string(bytes.size()) +
                             " bytes, the manifest names " + std::to_string(bytes.size() + 1);
  EXPECT_NE(report.damage[0].message.find(reason), std::string::npos) << report.damage[0].message;
  EXPECT_GT(report.bytes_read, 0U) << "the other file is still read";
}

TEST_F(VerifyTest, ReportsAMissingFile) {
  const std::string key = data_key(1);
  ASSERT_TRUE(fixture.store()->remove(key).ok());
  const Report report = find_damage(false);
  ASSERT_EQ(report.damage.size(), 1U);
  EXPECT_EQ("ckpt/" + report.damage[0].file, key);
}

TEST_F(VerifyTest, FailsWithThePlaceOfTheFirstFinding) {
  const auto checkpoint = fixture.open();
  for (const size_t chunk : {size_t{0}, size_t{1}}) {
    const format::Extent extent = *checkpoint->opened().chunk_extent(chunk);
    flip("ckpt/" + checkpoint->opened().files()[extent.file].key, extent.offset);
  }
  EXPECT_TRUE(checkpoint->verify(false, CallContext()).ok());
  const Status failed = checkpoint->verify(true, CallContext()).status();
  const Report listed = find_damage(true);
  ASSERT_EQ(listed.damage.size(), 2U);
  EXPECT_EQ(failed.code(), StatusCode::kDataLoss);
  EXPECT_TRUE(failed.message().starts_with(listed.damage[0].message)) << failed.message();
  EXPECT_NE(failed.message().find("find_damage lists this and 1 more"), std::string::npos);
  EXPECT_EQ(failed.detail("tensor"), listed.damage[0].tensor);
  EXPECT_EQ(failed.detail("file"), listed.damage[0].file);
  EXPECT_EQ(failed.detail("offset"), std::to_string(listed.damage[0].offset));
}

// Another save on the path: its files are whole, but they are not the ones that were opened.
TEST_F(VerifyTest, SaysThatTheCheckpointWasReplaced) {
  const auto checkpoint = fixture.open();
  ASSERT_TRUE(checkpoint->verify(true, CallContext()).ok());
  Holding other;
  add_whole(&other, small[0], true);
  SaveOptions keep;
  keep.keep_generations = 2;
  fixture.save_one(other, keep);
  EXPECT_TRUE(checkpoint->verify(true, CallContext()).ok()) << "kept, so still there and whole";
  fixture.save_one(other, {});
  EXPECT_EQ(checkpoint->find_damage(true, CallContext()).status().code(), StatusCode::kAborted);
}

TEST_F(VerifyTest, NamesReadErrorsBlockByBlock) {
  const auto checkpoint = fixture.open();
  const size_t chunk =
      checkpoint->catalog().tensors[*checkpoint->find_tensor("rows", -1)].chunk_begin;
  const format::Extent extent = *checkpoint->opened().chunk_extent(chunk);
  const std::string key = "ckpt/" + checkpoint->opened().files()[extent.file].key;
  // A bad sector: every read that touches it fails.
  const uint64_t sector = extent.offset + 4096;
  const std::shared_ptr<storage::Storage> faulty = storage::make_fault_storage(
      *fixture.store(), [&](const storage::StorageEvent& event, uint64_t*) {
        const bool hit = event.operation == storage::StorageEvent::Operation::kRead &&
                         event.key == key && event.offset <= sector &&
                         sector < event.offset + event.size_bytes;
        return hit ? data_loss("input/output error") : Status();
      });
  CheckpointFixture reader(faulty);
  const auto opened = reader.open();
  const Result<Report> report = opened->find_damage(true, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  ASSERT_EQ(report->damage.size(), 1U);
  EXPECT_EQ(report->damage[0].tensor, "rows");
  EXPECT_EQ(report->damage[0].offset, extent.offset);
  EXPECT_EQ(report->damage[0].length, uint64_t{1} << 20);
}

}  // namespace
}  // namespace shardwright::exec::test
