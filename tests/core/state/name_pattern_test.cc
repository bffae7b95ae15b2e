// SPDX-License-Identifier: Apache-2.0
#include "core/state/name_pattern.h"

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

// The captures joined by "|", "none" for no match.
std::string captured(std::string_view pattern, std::string_view name) {
  const auto parsed = NamePattern::parse(pattern);
  if (!parsed.ok()) return parsed.status().to_string();
  const auto captures = parsed->match(name);
  if (!captures.has_value()) return "none";
  std::string text;
  for (const std::string_view each : *captures) text += std::string(each) + "|";
  return text;
}

TEST(NamePattern, StarTakesTheShortestRunThatLetsTheRestMatch) {
  EXPECT_EQ(captured("*", ""), "|");
  EXPECT_EQ(captured("*", "a.b"), "a.b|");
  EXPECT_EQ(captured("*.weight", "fc1.weight.weight"), "fc1.weight|");
  EXPECT_EQ(captured("*.b.*", "a.b.b.c"), "a|b.c|");
  EXPECT_EQ(captured("a*", "b"), "none");
  EXPECT_EQ(captured("a", "ab"), "none");
  EXPECT_EQ(captured("*a", "ab"), "none");
  EXPECT_EQ(captured("x*y*z", "xyyz"), "|y|");
}

TEST(NamePattern, NumberIsAWholeRunOfDigits) {
  EXPECT_EQ(captured("layers.#.*", "layers.12.w"), "12|w|");
  EXPECT_EQ(captured("layers.#.*", "layers.x.w"), "none");
  EXPECT_EQ(captured("*#", "layer"),
            "INVALID_ARGUMENT: the pattern '*#' has two of '*' and '#' side "
            "by side");
  EXPECT_EQ(captured("weight#", "weight0"), "0|");
  EXPECT_EQ(captured("weight#", "weight01"), "none");  // another name than weight1
  EXPECT_EQ(captured("weight1#", "weight12"), "none");
  EXPECT_EQ(captured("#2", "12"), "none");
  EXPECT_EQ(captured("*.#.#", "a.1.2.3"), "a.1|2|3|");
  EXPECT_EQ(captured("*.experts.#.*", "l.experts.x.experts.7.fc"), "l.experts.x|7|fc|");
}

TEST(NamePattern, OtherSignsStandForThemselves) {
  EXPECT_EQ(captured("a[0]?", "a[0]?"), "");
  EXPECT_EQ(captured("a[0]?", "a0b"), "none");
  EXPECT_EQ(captured("\\*\\#\\\\", "*#\\"), "");
  EXPECT_FAILURE(NamePattern::parse("").status(), StatusCode::kInvalidArgument, "empty");
  EXPECT_FAILURE(NamePattern::parse("a\\b").status(), StatusCode::kInvalidArgument, "backslash");
  EXPECT_FAILURE(NamePattern::parse("a\\").status(), StatusCode::kInvalidArgument, "backslash");
  EXPECT_FAILURE(NamePattern::parse("\xFF").status(), StatusCode::kInvalidArgument, "UTF-8");
}

TEST(NamePattern, BeginningIsTheShortest) {
  const auto pattern = *NamePattern::parse("optimizer.state.*.");
  const auto begin = pattern.match_beginning("optimizer.state.exp_avg.decoder.w");
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(begin->size, std::string_view("optimizer.state.exp_avg.").size());
  EXPECT_EQ(begin->captures.at(0), "exp_avg");
  EXPECT_FALSE(pattern.match_beginning("optimizer.step").has_value());
}

TEST(NameForm, PutsCapturesInTheirPlaces) {
  const Captures captures{"3", "fc1.weight"};
  EXPECT_EQ(NameForm::parse("decoder.layers.{2}", 2, false)->fill(captures, 0),
            "decoder.layers.fc1.weight");
  EXPECT_EQ(NameForm::parse("{{{1}}}.{#}", 2, true)->fill(captures, 12), "{3}.12");
  EXPECT_FAILURE(NameForm::parse("{3}", 2, false).status(), StatusCode::kInvalidArgument, "'{3}'",
                 "2 parts");
  EXPECT_FAILURE(NameForm::parse("{0}", 2, false).status(), StatusCode::kInvalidArgument, "'{0}'");
  EXPECT_FAILURE(NameForm::parse("{}", 2, false).status(), StatusCode::kInvalidArgument, "'{}'");
  EXPECT_FAILURE(NameForm::parse("a}", 2, false).status(), StatusCode::kInvalidArgument, "brace");
  EXPECT_FAILURE(NameForm::parse("a{1", 2, false).status(), StatusCode::kInvalidArgument, "brace");
  EXPECT_FAILURE(NameForm::parse("a{#}", 2, false).status(), StatusCode::kInvalidArgument,
                 "nothing is counted");
  EXPECT_FAILURE(NameForm::parse("a", 2, true).status(), StatusCode::kInvalidArgument, "{#}");
}

TEST(NameForm, NumbersAreBounded) {
  EXPECT_EQ(*captured_number("9223372036854775807"), INT64_MAX);
  EXPECT_FAILURE(captured_number("9223372036854775808").status(), StatusCode::kInvalidArgument,
                 "63 bits");
}

}  // namespace
}  // namespace shardwright
