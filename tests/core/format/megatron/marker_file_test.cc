// SPDX-License-Identifier: Apache-2.0
//
// metadata.json of Megatron: what it may say, and how the rest is refused.
#include "core/format/megatron/marker_file.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::format::megatron {
namespace {

Result<MarkerFile> decode(std::string_view text) {
  return decode_marker(std::as_bytes(std::span(text)));
}

const std::string kSharded = R"("sharded_backend":"torch_dist","sharded_backend_version":1)";

TEST(MarkerFile, SaysWhetherThereIsACommonFile) {
  const auto alone = decode("{" + kSharded + "}");
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  EXPECT_FALSE(alone->has_common_file);
  const auto both =
      decode("{" + kSharded + R"(,"common_backend":"torch","common_backend_version":1})");
  ASSERT_TRUE(both.ok()) << both.status().to_string();
  EXPECT_TRUE(both->has_common_file);
}

TEST(MarkerFile, PassesOverWhatItDoesNotKnow) {
  const auto found =
      decode(R"({"sharded_backend_x":{"sharded_backend":"zarr"},"y":[1,null],)" + kSharded + "}");
  EXPECT_TRUE(found.ok()) << found.status().to_string();
}

TEST(MarkerFile, RefusesDamage) {
  std::string deep = R"({"sharded_backend":)";
  deep += std::string(30000, '[');
  const std::pair<std::string, std::string_view> table[] = {
      {"", ""},
      {"[1]", ""},
      {"{" + kSharded, ""},
      {deep, ""},
      {"{}", "no sharded_backend"},
      {R"({"sharded_backend":1,"sharded_backend_version":1})", "not a text"},
      {R"({"sharded_backend":{},"sharded_backend_version":1})", "not a text"},
      {R"({"sharded_backend":"torch_dist"})", "not there"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":"1"})", "not a version"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":0})", "not a version"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":-1})", "not a version"},
      {"{" + kSharded + "," + kSharded + "}", "twice"},
      {"{" + kSharded + R"(,"common_backend":"torch"})", "not there"},
  };
  for (const auto& [text, says] : table) {
    const Status status = decode(text).status();
    EXPECT_FAILURE(status, StatusCode::kDataLoss, says);
    EXPECT_EQ(status.detail("file"), kMarkerName) << text.substr(0, 80);
    EXPECT_NE(status.detail("hint"), "") << text.substr(0, 80);
  }
}

TEST(MarkerFile, NamesWhatToDoWithOtherBackendsAndNewerVersions) {
  const std::pair<std::string, std::string_view> table[] = {
      {R"({"sharded_backend":"other","sharded_backend_version":1})", "other"},
      {R"({"sharded_backend":"zarr","sharded_backend_version":2})", "newer"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":2})", "newer"},
      {"{" + kSharded + R"(,"common_backend":"other","common_backend_version":1})", "other"},
      {"{" + kSharded + R"(,"common_backend":"torch","common_backend_version":2})", "newer"},
  };
  for (const auto& [text, says] : table) {
    const Status status = decode(text).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status.to_string();
    const std::string all = status.to_string() + std::string(status.detail("hint"));
    EXPECT_NE(all.find(says), std::string::npos) << all;
    EXPECT_EQ(status.detail("file"), kMarkerName) << text;
    EXPECT_NE(status.detail("hint"), "") << text;
  }
}

TEST(MarkerFile, SaysThatZarrIsConvertedAndNotOpened) {
  const auto marker = decode(R"({"sharded_backend":"zarr","sharded_backend_version":1})");
  ASSERT_TRUE(marker.ok()) << marker.status().to_string();
  EXPECT_EQ(marker->backend, Backend::kZarr);
  const Status refused = check_readable(*marker);
  EXPECT_FAILURE(refused, StatusCode::kUnimplemented, "'zarr'", "torch_dist");
  EXPECT_EQ(refused.detail("file"), kMarkerName);
  EXPECT_NE(refused.detail("hint").find("shardwright convert"), std::string::npos);
  EXPECT_TRUE(check_readable(*decode("{" + kSharded + "}")).ok());
}

}  // namespace
}  // namespace shardwright::format::megatron
