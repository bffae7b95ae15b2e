// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/reshard_map.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

TEST(Map, SaysWhatLiesInBuckets) {
  const auto map = read_map(
      R"({"buckets": [{"bucket": "b", "begin": 64,
          "parts": [{"tensor": "w", "offsets": [0, 2], "sizes": [4, 2]}]}]})");
  ASSERT_TRUE(map.ok()) << map.status().to_string();
  ASSERT_EQ(map->places.size(), 1U);
  EXPECT_EQ(map->places[0].bucket, "b");
  EXPECT_EQ(map->places[0].begin, 64);
  EXPECT_EQ(map->places[0].parts[0].second, (Box{{0, 2}, {4, 2}}));
  EXPECT_TRUE(map->mapping.empty());
}

TEST(Map, SaysNothingWhereItIsEmpty) {
  const auto map = read_map("{}");
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(map->places.empty());
  EXPECT_FALSE(map->bucket_size.has_value());
  EXPECT_FALSE(map->has_grouped_experts.has_value());
}

TEST(Map, SaysHowBucketsAreMade) {
  EXPECT_EQ(read_map(R"({"bucket_size": 4096, "grouped_experts": true})")->bucket_size, 4096);
  EXPECT_EQ(read_map(R"({"bucket_size": null})")->bucket_size, kOneBucket);
  EXPECT_EQ(read_map(R"({"grouped_experts": false})")->has_grouped_experts, false);
}

TEST(Map, HasTheRulesOfAMapping) {
  const auto map = read_map(
      R"({"mapping": {"schema": 1, "rules": [{"match": "a.#", "steps": [{"rename": "b{1}"}]}]}})");
  ASSERT_TRUE(map.ok()) << map.status().to_string();
  EXPECT_EQ(map->mapping.rules().size(), 1U);
}

TEST(Map, SaysWhereARuleIsWrong) {
  EXPECT_FAILURE(read_map("{\"mapping\": {\"schema\": 1, \"rules\": [\n"
                          "{\"match\": \"a\", \"steps\": [{\"pad\": {\"axis\": 0}}]}]}}")
                     .status(),
                 StatusCode::kInvalidArgument, "line 2", "rule 1", "pad.size");
  EXPECT_FAILURE(read_map(R"({"mapping": {"schema": 2, "rules": []}})").status(),
                 StatusCode::kUnimplemented, "schema 2");
}

TEST(Map, SaysWhereItIsWrong) {
  for (const char* text :
       {"1", R"({"other": []})", R"({"buckets": 1})", R"({"buckets": [1]})",
        R"({"buckets": [{"bucket": "b", "begin": -1, "parts": [1]}]})",
        R"({"buckets": [{"bucket": 1, "begin": 0, "parts": [1]}]})",
        R"({"buckets": [{"bucket": "b", "begin": 0, "parts": []}]})",
        R"({"buckets": [{"bucket": "b", "begin": 0, "parts": [{"tensor": "w"}]}]})",
        R"({"buckets": [{"bucket": "b", "begin": 0, "parts": [{"tensor": "w", "offsets": [-1],
            "sizes": [1]}]}]})",
        R"({"bucket_size": 0})", R"({"bucket_size": "all"})", R"({"grouped_experts": 1})",
        R"({"mapping": []})"})
    EXPECT_FAILURE(read_map(text).status(), StatusCode::kInvalidArgument, "line ");
  EXPECT_FAILURE(read_map(R"({"bukcets": []})").status(), StatusCode::kInvalidArgument,
                 "'bukcets' is no key of a map; did you mean 'buckets'?");
}

}  // namespace
}  // namespace shardwright::reshard::test
