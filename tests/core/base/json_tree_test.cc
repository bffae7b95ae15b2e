// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_tree.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

std::string place(JsonValueView value) {
  const Status status = value.wrong("x");
  return std::string(status.detail("line")) + ":" + std::string(status.detail("column"));
}

TEST(JsonTree, KnowsWhereEveryValueStands) {
  const std::string text =
      "\xEF\xBB\xBF{\n  \"a\": [1, -2.5e3 ,true,\n null],\n\t\"\xC3\xA9\\\"b\" : \"x\\\\\", "
      "\"c\":{}\n}";
  const Result<JsonTree> tree = JsonTree::parse(text);
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  const JsonValueView root = tree->root();
  ASSERT_EQ(root.size(), 3U);
  JsonValueView at = root.member("a").first();
  EXPECT_EQ(at.integer(), 1);
  EXPECT_EQ(place(at), "2:9");
  at = at.next();
  EXPECT_EQ(at.type(), JsonType::kReal);
  EXPECT_EQ(at.real(), -2500.0);
  EXPECT_EQ(place(at), "2:12");
  at = at.next();
  EXPECT_EQ(at.type(), JsonType::kBoolean);
  EXPECT_EQ(place(at), "2:20");
  at = at.next();
  EXPECT_EQ(at.type(), JsonType::kNull);
  EXPECT_EQ(place(at), "3:2");
  EXPECT_FALSE(at.next().exists());
  const JsonValueView text_value = root.member("\xC3\xA9\"b");
  EXPECT_EQ(text_value.text(), "x\\");
  EXPECT_EQ(place(text_value), "4:11") << "columns count characters";
  EXPECT_EQ(text_value.wrong_key("x").detail("column"), "2");
  EXPECT_EQ(place(root.member("c")), "4:22");
  EXPECT_FALSE(root.member("d").exists());
}

TEST(JsonTree, NamesThePlaceOfWhatIsWrong) {
  const struct {
    std::string text;
    std::string place;
    std::string what;
  } cases[] = {
      {"", "line 1, column 1", "syntax error"},
      {"{\n\"a\": 1,\n}", "line 3, column 1", "syntax error"},
      {"[1, 2", "line 1, column 6", "unexpected end"},
      {"[1] x", "line 1, column 5", "syntax error"},
      {"{\"a\":1,\n \"b\":2, \"a\":3}", "line 2, column 9", "given in line 1, column 2"},
      {"[\"\xFF\"]", "line 1, column", "ill-formed UTF-8"},
      {"[1e999]", "line 1, column", "number overflow"},
      {std::string("[1,\0]", 5), "line 1, column 4", "syntax error"},
  };
  for (const auto& each : cases) {
    EXPECT_FAILURE(JsonTree::parse(each.text).status(), StatusCode::kInvalidArgument, each.place,
                   each.what);
  }
}

TEST(JsonTree, KnowsTheKeysOfAnObject) {
  constexpr std::string_view kKnown[] = {"axes", "ranks"};
  const auto checked = [&](std::string_view text) {
    return JsonTree::parse(text)->root().check_keys("a mesh", kKnown);
  };
  EXPECT_TRUE(checked("{}").ok());
  EXPECT_TRUE(checked(R"({"ranks": 1, "axes": 2})").ok());
  const Status unknown = checked("{\"axes\": 1,\n \"rank\": 2}");
  EXPECT_FAILURE(unknown, StatusCode::kInvalidArgument,
                 "line 2, column 2: 'rank' is no key of a mesh; did you mean 'ranks'? "
                 "(all keys: axes, ranks)");
  EXPECT_EQ(unknown.detail("parameter"), "rank");
  EXPECT_FAILURE(checked(R"({"\u0007": 1})"), StatusCode::kInvalidArgument, "is no key of a mesh");
  const auto none = JsonTree::parse(R"({"a": 1})")->root().check_keys("a void", {});
  EXPECT_FAILURE(none, StatusCode::kInvalidArgument, "'a' is no key of a void (all keys: )");
}

TEST(JsonTree, IsBounded) {
  JsonLimits limits;
  limits.depth = 3;
  EXPECT_TRUE(JsonTree::parse("[[[1]]]", limits).ok());
  EXPECT_FAILURE(JsonTree::parse("[[[[1]]]]", limits).status(), StatusCode::kInvalidArgument,
                 "line 1, column 4", "deeper than 3");
  limits.values = 3;
  EXPECT_TRUE(JsonTree::parse("[1,2]", limits).ok());
  EXPECT_FAILURE(JsonTree::parse("[1,2,3]", limits).status(), StatusCode::kResourceExhausted,
                 "more than 3 values");
  limits.text_bytes = 4;
  EXPECT_FAILURE(JsonTree::parse("[1,2]", limits).status(), StatusCode::kResourceExhausted,
                 "5 bytes");
  EXPECT_FAILURE(JsonTree::parse(std::string(100000, '[')).status(), StatusCode::kInvalidArgument,
                 "deeper");
}

}  // namespace
}  // namespace shardwright
