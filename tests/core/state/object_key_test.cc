// SPDX-License-Identifier: Apache-2.0
#include "core/state/object_key.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

TEST(ObjectKey, IsWhatMegatronCoreCallsThem) {
  EXPECT_EQ(*format_object_key("ObjB", Dims{0, 3}, Dims{1, 8}), "ObjB/shard_0.3_1.8");
  EXPECT_EQ(*format_object_key("", Dims{2}, Dims{3}), "/shard_2_3");
}

TEST(ObjectKey, AnyKeyComesBack) {
  for (const std::string key : {"ObjB", "", "a/b", "a/shard_0_1", "x_y/shard_", "\n"}) {
    const auto name = format_object_key(key, Dims{0, 3}, Dims{1, 8});
    const auto parsed = parse_object_key(*name);
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    EXPECT_EQ(parsed->key, key);
    EXPECT_EQ(parsed->offsets, (Dims{0, 3}));
    EXPECT_EQ(parsed->shape, (Dims{1, 8}));
  }
}

TEST(ObjectKey, OlderNamesLackTheLastExtent) {
  const auto parsed = parse_object_key("x/shard_0.3_1");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->offsets, (Dims{0, 3}));
  EXPECT_EQ(parsed->shape, (Dims{1, -1}));
}

TEST(ObjectKey, IsTakenApartWhereverItsCellLies) {
  const auto outside = split_object_key("x/shard_3_2");
  ASSERT_TRUE(outside.ok()) << outside.status().to_string();
  EXPECT_EQ(outside->key, "x");
  EXPECT_FAILURE(check_object_cell(*outside), StatusCode::kInvalidArgument, "[3]", "grid [2]");
  EXPECT_FAILURE(split_object_key("x/shard_3").status(), StatusCode::kInvalidArgument);
}

TEST(ObjectKey, OtherTextsAreRefused) {
  for (const std::string_view name :
       {"", "x", "x/shard_", "x/shard_0", "x/shard_0_", "x/shard__1", "x/shard_a_1", "x/shard_0_1x",
        "x/shard_-1_2", "x/shard_01_2", "x/shard_0.0.0_1", "x/shard_0_1.2", "x/shard_1_1",
        "x/shard_0._1.1", "x/shard_99999999999999999999_1", "x/shard_0_1/",
        "x/shard_0.9223372036854775807_1"}) {
    EXPECT_FAILURE(parse_object_key(name).status(), StatusCode::kInvalidArgument, "/shard_0.3_1.8");
  }
  EXPECT_FAILURE(format_object_key("x", Dims{1}, Dims{1}).status(), StatusCode::kInvalidArgument,
                 "outside the grid [1]");
  EXPECT_FAILURE(format_object_key("x", Dims{-1}, Dims{1}).status(), StatusCode::kInvalidArgument);
  EXPECT_FAILURE(format_object_key("x", Dims{0}, Dims{1, 1}).status(), StatusCode::kInvalidArgument,
                 "1 offsets", "2 axes");
  EXPECT_FAILURE(format_object_key("x", {}, {}).status(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright
