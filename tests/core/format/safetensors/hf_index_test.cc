// SPDX-License-Identifier: Apache-2.0
//
// Index and sharding texts one by one.
#include "core/format/safetensors/hf_index.h"

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright::format::safetensors {
namespace {

Result<HfIndex> decode(std::string_view text) {
  return decode_index(text, "m.index.json");
}

TEST(SafetensorsIndex, GivesFilesAscendingAndTheirTensors) {
  const auto index = decode(R"({"metadata":{"total_size":12,"a":"b","n":3,"deep":{"x":[1]}},
      "weight_map":{"w":"sub/2.safetensors","b":"1.safetensors","c":"sub/2.safetensors"},
      "other":[{}]})");
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->files, (std::vector<std::string>{"1.safetensors", "sub/2.safetensors"}));
  EXPECT_EQ(index->file_of.at("w"), 1U);
  EXPECT_EQ(index->file_of.at("b"), 0U);
  EXPECT_EQ(index->total_size, 12U);
  EXPECT_EQ(index->metadata, (std::map<std::string, std::string>{{"a", "b"}, {"n", "3"}}));
  EXPECT_TRUE(decode(R"({"weight_map":{}})").ok());
  EXPECT_TRUE(decode(R"({"weight_map":{},"metadata":[1,"x"]})").ok());
  EXPECT_TRUE(decode(R"({"weight_map":{},"metadata":{"total_size":1.5}})").ok());
}

TEST(SafetensorsIndex, RefusesWhatIsNoIndex) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "begin with '{'"},
      {"{}", "no weight_map"},
      {R"({"weight_map":1})", "is a number"},
      {R"({"weight_map":[]})", "is a list"},
      {R"({"weight_map":{"w":1}})", "a number as the file of tensor 'w'"},
      {R"({"weight_map":{"w":["f"]}})", "a list as the file of tensor 'w'"},
      {R"({"weight_map":{"w":null}})", "null as the file"},
      {R"({"weight_map":{"w":"f","w":"f"}})", "'w' twice"},
      {R"({"weight_map":{"w":"f","\u0077":"g"}})", "'w' twice"},
      {R"({"weight_map":{},"weight_map":{}})", "weight_map twice"},
      {R"({"weight_map":{"w":"f")", "no JSON"},
      {R"({"weight_map":{"w":"f"}} x)", "no JSON"},
      {std::string(40, '{') + "}", "no JSON"},
      {"{\"x\":" + std::string(40, '[') + "}", "deeper than 32"}};
  for (const auto& [text, says] : rows) {
    const Status status = decode(text).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text;
    EXPECT_NE(std::string(status.message()).find(says), std::string::npos) << status.to_string();
    EXPECT_EQ(status.detail("file"), "m.index.json");
  }
}

TEST(SafetensorsIndex, RefusesFilesOutsideOfTheDirectory) {
  for (const char* file : {"../f", "a/../../f", "/etc/passwd", "./f", "a//f", "f/", "", "a\\\\f",
                           "..\\\\f", "f\\u0000"}) {
    const Status status = decode(R"({"weight_map":{"w":")" + std::string(file) + R"("}})").status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << file;
    EXPECT_EQ(status.detail("tensor"), "w") << file;
    EXPECT_FALSE(status.detail("unsafe").empty()) << file;
  }
}

TEST(SafetensorsSharding, GivesTheBeginningOfEachPart) {
  const auto sharding = decode_sharding(
      R"({"w":{"saved_offsets":[0,4]},"s":{"saved_offsets":[],"later":{"x":1}}})", "f");
  ASSERT_TRUE(sharding.ok()) << sharding.status().to_string();
  EXPECT_EQ(sharding->at("w"), (Dims{0, 4}));
  EXPECT_TRUE(sharding->at("s").empty());
}

TEST(SafetensorsSharding, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]", R"({"w":1})", R"({"w":[]})", R"({"w":{}})", R"({"w":{"saved_offsets":1}})",
        R"({"w":{"saved_offsets":{}}})", R"({"w":{"saved_offsets":[[0]]}})",
        R"({"w":{"saved_offsets":[-1]}})", R"({"w":{"saved_offsets":[1.5]}})",
        R"({"w":{"saved_offsets":["0"]}})", R"({"w":{"saved_offsets":[9223372036854775808]}})",
        R"({"w":{"saved_offsets":[0],"saved_offsets":[0]}})",
        R"({"w":{"saved_offsets":[0]},"w":{"saved_offsets":[0]}})"}) {
    const Status status = decode_sharding(text, "f").status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text;
    EXPECT_EQ(status.detail("file"), "f") << text;
  }
}

TEST(SafetensorsIndex, MutationsAreRefusedOrNameFilesInside) {
  shardwright::test::RandomSource random;
  const std::string sound =
      R"({"metadata":{"total_size":9},"weight_map":{"a":"x/1.st","b":"2.st","c":"x/1.st"}})";
  const std::string alphabet = R"({}[]":,./\0129u)";
  for (int round = 0; round < 20000; ++round) {
    std::string text = sound;
    for (int64_t changes = random.between(1, 4); changes > 0; --changes) {
      const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
      if (random.chance(50)) {
        text[at] = alphabet[static_cast<size_t>(random.next() % alphabet.size())];
      } else {
        text.insert(at, text.substr(static_cast<size_t>(random.next() % text.size()), 9));
      }
    }
    const auto index = decode(text);
    static_cast<void>(decode_sharding(text, "f"));
    if (!index.ok()) continue;
    for (const std::string& file : index->files) {
      ASSERT_NE(file.front(), '/') << text;
      ASSERT_EQ(("/" + file + "/").find("/../"), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace shardwright::format::safetensors
