// SPDX-License-Identifier: Apache-2.0
//
// Checksums of whole items: a flipped bit of payload is found by whoever reads all of the record
// that it lies in, however many blocks, calls and ranks that takes.
#include "core/exec/item_checksums.h"

#include <gtest/gtest.h>

#include "core/exec/convert.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/core/format/torch_dcp/sample_checkpoint.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using format::archive::ZipFraming;
using format::archive::test::archive_of;
using format::torch_dcp::test::SampleDirectory;
using format::torch_dcp::test::tensor_item;
using shardwright::test::RandomSource;

constexpr int64_t kRows = 900;
constexpr int64_t kColumns = 1000;  // of w: 3.6 MB, in chunks of two blocks
constexpr int64_t kHalf = 500;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// w in two chunks of columns and small ones in one file; the same in one file of torch.save.
class Checksums : public testing::Test {
 protected:
  Checksums() : fixture_(storage::make_posix_storage(directory_.path())) {
    RandomSource random(31);
    w_ = random_dense(random, "w", DType::kFloat32, {kRows, kColumns});
    small_ = random_dense(random, "small", DType::kFloat32, {1000});
    SampleDirectory sample;
    sample.tensors.push_back({"w", {kRows, kColumns}, {}});
    for (const int64_t begin : {int64_t{0}, kHalf}) {
      const std::string bytes = text_of(w_.box_bytes({{0, begin}, {kRows, kHalf}}));
      sample.tensors[0].chunks.push_back(
          {{0, begin}, {kRows, kHalf}, {tensor_item({kRows, kHalf}, bytes)}});
    }
    sample.tensors.push_back(
        {"small", {1000}, {{{0}, {1000}, {tensor_item({1000}, text_of(small_.bytes))}}}});
    format::torch_dcp::test::place_and_store(fixture_.store().get(), "dcp", sample);
    format::archive::PickleWriter pickle(format::archive::PickleProtocol::k2);
    pickle.empty_dict().text("w");
    format::torch_save::test::add_tensor(
        {"0", kRows * kColumns, 0, {kRows, kColumns}, {kColumns, 1}}, &pickle);
    pickle.set_item().text("small");
    format::torch_save::test::add_tensor({"1", 1000, 0, {1000}, {1}}, &pickle);
    pickle.set_item();
    const std::string file = format::torch_save::test::file_of(
        std::move(pickle).finish(), {text_of(w_.bytes), text_of(small_.bytes)});
    fixture_.put("value.pt", std::as_bytes(std::span(file)));
  }
  // In a byte of w's element (500, 700), which lies in its second chunk.
  void flip(const std::string& key) {
    const std::string row = text_of(w_.box_bytes({{500, 700}, {1, 100}}));
    flip(key, row);
  }
  void flip(const std::string& key, const std::string& payload) {
    std::vector<std::byte> bytes = fixture_.get(key);
    const size_t at = text_of(bytes).find(payload);
    ASSERT_NE(at, std::string::npos);
    bytes[at] ^= std::byte{4};
    fixture_.put(key, bytes);
  }
  Result<Report> load(const std::string& prefix, const std::vector<Box>& boxes,
                      LoadOptions options = {}) {
    Holding holding;
    add_boxes(&holding, w_, boxes, false);
    Result<Report> report = fixture_.load({holding.state}, options, prefix)[0];
    if (report.ok()) is_right_ = static_cast<bool>(holds(holding, 0, w_));
    return report;
  }
  static void expect_found(const Status& status, std::string_view file) {
    EXPECT_FAILURE(status, StatusCode::kDataLoss, "CRC-32", "'w'");
    EXPECT_EQ(status.detail("file"), file);
    EXPECT_NE(status.detail("offset"), "");
    EXPECT_EQ(status.detail("tensor"), "w");
  }

  shardwright::test::TemporaryDirectory directory_;
  CheckpointFixture fixture_;
  Dense w_;
  Dense small_;
  bool is_right_ = false;
};

const Box kWhole{{0, 0}, {kRows, kColumns}};

TEST_F(Checksums, AreComparedByWholeLoads) {
  for (const auto& [prefix, file] :
       {std::pair<std::string, std::string>{"dcp", "__0_0.distcp"}, {"value.pt", "value.pt"}}) {
    const auto sound = load(prefix, {kWhole});
    ASSERT_TRUE(sound.ok()) << sound.status().to_string();
    EXPECT_TRUE(is_right_);
    EXPECT_TRUE(sound->checksums);
    EXPECT_EQ(sound->bytes_unverified, 0U);
    flip(prefix == "dcp" ? "dcp/__0_0.distcp" : prefix);
    expect_found(load(prefix, {kWhole}).status(), file);
    LoadOptions trusting;
    trusting.verify = VerifyRule::kOff;
    const auto unchecked = load(prefix, {kWhole}, trusting);
    ASSERT_TRUE(unchecked.ok()) << unchecked.status().to_string();
    EXPECT_FALSE(is_right_);
    EXPECT_FALSE(unchecked->checksums);
    EXPECT_EQ(unchecked->bytes_unverified, w_.bytes.size());
  }
}

TEST_F(Checksums, OfAChunkThatIsWholeIsComparedBesideOnesThatAreNot) {
  flip("dcp/__0_0.distcp");
  expect_found(load("dcp", {{{0, kHalf - 10}, {kRows, kHalf + 10}}}).status(), "__0_0.distcp");
}

// A range of a record cannot be compared; the report says how much that was.
TEST_F(Checksums, AreNotComparedByRangesAndTheReportSaysSo) {
  flip("dcp/__0_0.distcp");
  const auto report = load("dcp", {{{0, 0}, {kRows, kHalf + 10}}});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(is_right_);
  EXPECT_EQ(report->bytes_unverified, static_cast<uint64_t>(kRows) * 10 * 4);
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes[0].find("were not checked"), std::string::npos) << report->notes[0];
  EXPECT_NE(report->to_json().find("\"bytes_unverified\":36000"), std::string::npos);
}

TEST_F(Checksums, AreComparedByRanksThatShareTheirReads) {
  flip("dcp/__0_0.distcp");
  std::vector<std::shared_ptr<State>> states;
  std::vector<Holding> holdings(3);
  for (Holding& holding : holdings) {
    add_boxes(&holding, w_, {kWhole}, false);
    states.push_back(holding.state);
  }
  for (const auto& report : fixture_.load(states, {}, "dcp"))
    expect_found(report.status(), "__0_0.distcp");
}

// The digest of a tensor comes in rows of all of its chunks.
TEST_F(Checksums, AreComparedByDigests) {
  const auto digest = [&](const std::string& prefix) {
    const auto checkpoint = fixture_.open(prefix);
    return checkpoint->tensor_digest(*checkpoint->find_tensor("w", -1),
                                     integrity::TensorDigestAlgorithm::kSha256, CallContext());
  };
  EXPECT_EQ(*digest("dcp"), *digest("value.pt"));
  flip("dcp/__0_0.distcp");
  flip("value.pt");
  expect_found(digest("dcp").status(), "__0_0.distcp");
  expect_found(digest("value.pt").status(), "value.pt");
}

TEST_F(Checksums, AreComparedByConversions) {
  flip("dcp/__0_0.distcp");
  const auto report = convert(fixture_.runtime(), fixture_.runtime(), fixture_.location("dcp"),
                              fixture_.location("native"), ConvertOptions(), CallContext());
  expect_found(report.status(), "__0_0.distcp");
}

TEST_F(Checksums, AreComparedByDeepVerificationsRecordByRecord) {
  const auto damage = [&](const std::string& prefix) {
    return fixture_.open(prefix)->find_damage(true, CallContext())->damage;
  };
  EXPECT_TRUE(damage("dcp").empty());
  flip("dcp/__0_0.distcp");
  flip("dcp/__0_0.distcp", text_of(small_.bytes).substr(40, 40));
  const std::vector<DamageReport> found = damage("dcp");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].tensor, "w");
  EXPECT_EQ(found[0].box, "[0:900, 500:1000]");
  EXPECT_EQ(found[0].length, static_cast<uint64_t>(kRows) * kHalf * 4);
  EXPECT_EQ(found[1].tensor, "small");
  EXPECT_EQ(found[1].file, "__0_0.distcp");
}

// Records that are no chunks, and that nobody reads otherwise.
TEST_F(Checksums, OfOtherRecordsAreComparedByDeepVerifications) {
  flip("dcp/__0_0.distcp", "little");
  const std::vector<DamageReport> found =
      fixture_.open("dcp")->find_damage(true, CallContext())->damage;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].message.find("byteorder"), std::string::npos) << found[0].message;
  EXPECT_EQ(found[0].file, "__0_0.distcp");
}

TEST_F(Checksums, OfZeroAreNone) {
  format::archive::PickleWriter pickle(format::archive::PickleProtocol::k2);
  format::torch_save::test::add_tensor({"0", 4, 0, {4}, {1}}, &pickle);
  auto entries =
      format::torch_save::test::entries_of(std::move(pickle).finish(), {std::string(16, 'x')});
  for (const ZipFraming framing : {ZipFraming::kTorch, ZipFraming::kPlain}) {
    for (const bool has_crc : {true, false}) {
      format::archive::test::Checksummed checksummed = format::archive::test::Checksummed::kYes;
      if (!has_crc) checksummed = format::archive::test::Checksummed::kNo;
      SampleDirectory sample;
      std::string item = archive_of(entries, framing, 0, checksummed);
      item.replace(item.find("xxxx"), 1, "y");
      sample.tensors.push_back({"t", {4}, {{{0}, {4}, {item}}}});
      format::torch_dcp::test::place_and_store(fixture_.store().get(), "zero", sample);
      const auto checkpoint = fixture_.open("zero");
      const auto digest =
          checkpoint->tensor_digest(0, integrity::TensorDigestAlgorithm::kXxh3, CallContext());
      EXPECT_EQ(digest.ok(), !has_crc) << digest.status().to_string();
    }
  }
}

}  // namespace
}  // namespace shardwright::exec::test
