// SPDX-License-Identifier: Apache-2.0
//
// What the interface of a format promises beyond those that the library has: places that are found
// late, elements that are missing, objects that are larger than memory need be.
#include <gtest/gtest.h>

#include "core/exec/convert.h"
#include "tests/core/exec/archive_format.h"
#include "tests/support/expect_failure.h"

namespace shardwright::exec::test {
namespace {

using format::StoredItem;

Box rows(const Dense& tensor, int64_t begin, int64_t end) {
  Box box = whole_box(tensor.shape);
  box.offsets[0] = begin;
  box.sizes[0] = end - begin;
  return box;
}

class ArchiveTest : public testing::Test {
 protected:
  ArchiveTest() {
    shardwright::test::RandomSource random;
    whole_ = random_dense(random, "whole", DType::kFloat32, {600, 50});
    holed_ = random_dense(random, "holed", DType::kUint8, {10, 4});
    large_.resize((size_t{66} << 20) + 17);
    for (size_t i = 0; i < large_.size(); i += 4093) large_[i] = std::byte(i / 4093);
  }

  void put() { archive_->put(fixture_, "ckpt"); }
  void add_whole_tensor() {
    std::vector<Box> boxes;
    for (int64_t row = 0; row < 600; ++row) boxes.push_back(rows(whole_, row, row + 1));
    archive_->add(whole_, boxes);
  }
  // Rows 4 to 5 are stored nowhere.
  void add_holed_tensor() {
    archive_->is_partial = true;
    archive_->add(holed_, {rows(holed_, 0, 4), rows(holed_, 6, 10)});
  }
  Result<Report> convert_to(const char* format, const std::string& target) {
    ConvertOptions options;
    options.format = format;
    return convert(fixture_.runtime(), fixture_.runtime(), fixture_.location("ckpt"),
                   fixture_.location(target), options, CallContext());
  }

  std::shared_ptr<Archive> archive_ = std::make_shared<Archive>();
  CheckpointFixture fixture_{storage::make_memory_storage(), {make_archive_format(archive_)}};
  Dense whole_;
  Dense holed_;
  std::vector<std::byte> large_;
};

TEST_F(ArchiveTest, PlacesAreFoundOnceAndManyAtATime) {
  add_whole_tensor();
  put();
  const auto checkpoint = fixture_.open();
  EXPECT_EQ(archive_->headers_read, 0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    Holding target;
    add_boxes(&target, whole_, {rows(whole_, 100, 400)}, false);
    const auto plan = plan_load(*checkpoint, *target.state, {}, 0);
    ASSERT_TRUE(plan.ok()) << plan.status().to_string();
    const auto loaded =
        execute_load(fixture_.runtime(), *checkpoint, *plan, *target.state, {}, CallContext());
    ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
    EXPECT_TRUE(holds(target, 0, whole_));
    EXPECT_EQ(archive_->headers_read, 300);
  }
  const auto report = checkpoint->verify(true, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(archive_->headers_read, 600);
}

TEST_F(ArchiveTest, APlaceThatCannotBeFoundIsDamageOfThatItem) {
  add_whole_tensor();
  put();
  const std::string key = "ckpt/" + std::string(kArchiveFile);
  std::vector<std::byte> bytes = fixture_.get(key);
  const uint64_t at = archive_->header_of({StoredItem::Kind::kChunk, 7});
  bytes[at] ^= std::byte{1};
  fixture_.put(key, bytes);
  const auto checkpoint = fixture_.open();
  const auto report = checkpoint->find_damage(true, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  ASSERT_EQ(report->damage.size(), 1U);
  EXPECT_EQ(report->damage[0].file, kArchiveFile);
  EXPECT_EQ(report->damage[0].offset, at);
  EXPECT_GT(report->bytes_read, 599U * 200U);
  Holding target;
  add_whole(&target, whole_, false);
  EXPECT_FAILURE(fixture_.load_one(target).status(), StatusCode::kDataLoss, "no header",
                 kArchiveFile);
}

TEST_F(ArchiveTest, ElementsThatAreMissingAreNamedAndOthersLoad) {
  add_whole_tensor();
  add_holed_tensor();
  put();
  Holding there;
  add_boxes(&there, holed_, {rows(holed_, 1, 4), rows(holed_, 7, 10)}, false);
  const auto loaded = fixture_.load_one(there);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_TRUE(holds(there, 0, holed_));

  Holding gone;
  add_boxes(&gone, holed_, {rows(holed_, 3, 5)}, false);
  const Status status = fixture_.load_one(gone).status();
  EXPECT_FAILURE(status, StatusCode::kDataLoss, "'holed'", "[3:5, 0:4]",
                 "no file holds box [4:6, 0:4]");
  EXPECT_EQ(status.detail("tensor"), "holed");
  for (const std::byte byte : *gone.memory[0]) EXPECT_EQ(byte, std::byte{0xEE});
}

TEST_F(ArchiveTest, AReadOfABoxThatIsNotAllThereFails) {
  add_holed_tensor();
  put();
  const auto checkpoint = fixture_.open();
  std::vector<std::byte> memory(8);
  TensorView view;
  view.data = memory.data();
  view.dtype = DType::kUint8;
  view.shape = {2, 4};
  BoxRead read{0, rows(holed_, 2, 4), view};
  ASSERT_TRUE(checkpoint->read_boxes({&read, 1}, VerifyRule::kOnRead, CallContext()).ok());
  EXPECT_EQ(memory, holed_.box_bytes(read.box));
  read.box = rows(holed_, 3, 5);
  EXPECT_FAILURE(checkpoint->read_boxes({&read, 1}, VerifyRule::kOnRead, CallContext()).status(),
                 StatusCode::kDataLoss, "'holed'", "[3:5, 0:4]");
  EXPECT_EQ(checkpoint->tensor_digest(0, integrity::TensorDigestAlgorithm::kXxh3, CallContext())
                .status()
                .code(),
            StatusCode::kDataLoss);
}

TEST_F(ArchiveTest, InfoListsWhatLacksElementsAndConversionsRefuseIt) {
  add_whole_tensor();
  add_holed_tensor();
  put();
  EXPECT_NE(fixture_.open()->info_json(false).find(R"("incomplete":["holed"])"), std::string::npos);
  for (const char* format : {"native", "safetensors"}) {
    EXPECT_FAILURE(convert_to(format, "target").status(), StatusCode::kDataLoss, "'holed'");
    EXPECT_TRUE(fixture_.keys("target").empty()) << format;
  }
}

TEST_F(ArchiveTest, ALargeObjectIsReadInParts) {
  archive_->add_object("blob", "application/octet-stream", large_);
  put();
  const auto checkpoint = fixture_.open();
  std::vector<std::byte> part(1'000'003);
  for (const size_t begin :
       {size_t{0}, size_t{777}, size_t{65} << 20, large_.size() - part.size()}) {
    ASSERT_TRUE(
        checkpoint->read_object_part(0, begin, part, VerifyRule::kOnRead, CallContext()).ok());
    EXPECT_TRUE(std::ranges::equal(part, std::span(large_).subspan(begin, part.size()))) << begin;
  }
  EXPECT_FAILURE(
      checkpoint->read_object_part(0, large_.size() - 1, part, VerifyRule::kOnRead, CallContext()),
      StatusCode::kOutOfRange, "'blob'", "1000003 from");
  // A conversion says at once that it does not fit.
  for (const char* format : {"native", "safetensors"}) {
    EXPECT_FAILURE(convert_to(format, "target").status(), StatusCode::kResourceExhausted, "'blob'",
                   "limit");
    EXPECT_TRUE(fixture_.keys("target").empty()) << format;
  }
}

TEST_F(ArchiveTest, ObjectsOfAConversionComeFromTheSource) {
  add_whole_tensor();
  const std::span<const std::byte> bytes = std::span(large_).first(3'000'001);
  archive_->add_object("blob", "application/octet-stream", bytes);
  archive_->add_object("empty", "application/octet-stream", {});
  put();
  const auto report = convert_to("native", "target");
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto made = fixture_.open("target");
  const auto blob = made->read_object(*made->find_object("blob", -1), VerifyRule::kOnRead);
  ASSERT_TRUE(blob.ok());
  EXPECT_TRUE(std::ranges::equal(*blob, bytes));
  EXPECT_TRUE(made->read_object(*made->find_object("empty", -1), VerifyRule::kOnRead)->empty());
  Holding target;
  add_whole(&target, whole_, false);
  ASSERT_TRUE(fixture_.load({target.state}, {}, "target").front().ok());
  EXPECT_TRUE(holds(target, 0, whole_));
}

}  // namespace
}  // namespace shardwright::exec::test
