// SPDX-License-Identifier: Apache-2.0
//
// integrity.json: what it may say, and which files of a directory differ from it.
#include "core/format/megatron/listed_digests.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "core/storage/backends.h"

namespace shardwright::format::megatron {
namespace {

// Of "abc" and of no bytes.
const std::string kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

auto decode(std::string_view text) {
  return decode_integrity(std::as_bytes(std::span(text)));
}

std::string text_of(const std::string& files) {
  return R"({"algorithm": "sha256", "files": {)" + files + "}}";
}

TEST(ListedDigests, AreReadByName) {
  const auto files = decode(text_of(R"("a": ")" + kAbc + R"(", ".metadata": ")" + kNothing + '"'));
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_EQ(files->at("a"), kAbc);
  EXPECT_EQ(files->at(".metadata"), kNothing);
  EXPECT_TRUE(decode(text_of(""))->empty());
  EXPECT_TRUE(decode(R"({"more": {"files": 1}, "algorithm": "sha256", "files": {}})").ok());
}

TEST(ListedDigests, RefuseWhatSaysNone) {
  const std::string bad[] = {"",
                             "[1]",
                             "{}",
                             R"({"algorithm": "sha256"})",
                             R"({"files": {}})",
                             R"({"algorithm": "sha256", "files": []})",
                             text_of(R"("a": 1)"),
                             text_of(R"("a": null)"),
                             text_of(R"("a": {})"),
                             text_of(R"("a": "abc")"),
                             text_of(R"("a": ")" + std::string(64, 'G') + '"'),
                             text_of(R"("../a": ")" + kAbc + '"'),
                             text_of(R"("/etc/passwd": ")" + kAbc + '"'),
                             text_of(R"("": ")" + kAbc + '"'),
                             text_of(R"("a": ")" + kAbc + R"(", "a": ")" + kAbc + '"')};
  for (const std::string& text : bad) {
    const Status status = decode(text).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text << ": " << status.to_string();
    EXPECT_EQ(status.detail("file"), kIntegrityName) << text;
  }
  EXPECT_EQ(decode(R"({"algorithm": "md5", "files": {}})").status().code(),
            StatusCode::kUnimplemented);
}

class ListedFiles : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    const auto object = storage_->open("c/" + name, options);
    ASSERT_TRUE(object.ok() && (*object)->write_at(0, std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE((*object)->close().ok());
  }
  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
};

TEST_F(ListedFiles, AreComparedEachByItself) {
  EXPECT_TRUE(compare_listed({storage_, "c"})->empty());  // without the list
  put("same", "abc");
  put("other", "abd");
  put("unlisted", "x");
  put("integrity.json", text_of(R"("same": ")" + kAbc + R"(", "other": ")" + kAbc +
                                R"(", "gone": ")" + kNothing + '"'));
  const auto findings = compare_listed({storage_, "c"});
  ASSERT_TRUE(findings.ok()) << findings.status().to_string();
  ASSERT_EQ(findings->size(), 2U);
  EXPECT_EQ((*findings)[0].detail("file"), "gone");
  EXPECT_EQ((*findings)[1].detail("file"), "other");
  EXPECT_EQ((*findings)[1].detail("expected"), kAbc);
  EXPECT_NE((*findings)[0].message().find(kNothing.substr(0, 16)), std::string::npos);
  EXPECT_NE((*findings)[1].message().find(kAbc.substr(0, 16)), std::string::npos);
  EXPECT_EQ((*findings)[1].message().find(kAbc.substr(0, 17)), std::string::npos);
}

TEST_F(ListedFiles, AListThatIsNoneIsAFindingByItself) {
  put("integrity.json", "{}");
  const auto findings = compare_listed({storage_, "c"});
  ASSERT_TRUE(findings.ok() && findings->size() == 1);
  EXPECT_EQ(findings->front().detail("file"), kIntegrityName);
}

}  // namespace
}  // namespace shardwright::format::megatron
