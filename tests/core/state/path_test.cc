// SPDX-License-Identifier: Apache-2.0
//
// Nested paths: grammar, round trips, refusals.
#include "core/state/path.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "tests/support/random_source.h"

namespace shardwright {
namespace {

PathPart key(std::string text) {
  return {PathPartKind::kText, std::move(text)};
}
PathPart integer(std::string text) {
  return {PathPartKind::kInteger, std::move(text)};
}
PathPart position(std::string text) {
  return {PathPartKind::kPosition, std::move(text)};
}

std::vector<PathPart> parse_or_fail(std::string_view text) {
  const Result<std::vector<PathPart>> parts = parse_path(text);
  EXPECT_TRUE(parts.ok()) << parts.status().to_string();
  return parts.ok() ? *parts : std::vector<PathPart>();
}

TEST(Path, KeepsTheTypeOfEachKey) {
  const std::vector<PathPart> parts = parse_or_fail(R"(["optim",0,[1],"0"])");
  EXPECT_EQ(parts, (std::vector<PathPart>{key("optim"), integer("0"), position("1"), key("0")}));
  EXPECT_EQ(join_path(parts), "optim.0.1.0");
  EXPECT_EQ(format_path(parts), R"(["optim",0,[1],"0"])");
}

TEST(Path, TakesBlanksAndWritesNone) {
  EXPECT_EQ(format_path(parse_or_fail(" [ \"a\" ,\n-7\t, [ 2 ] ] ")), R"(["a",-7,[2]])");
}

TEST(Path, EmptyArrayIsTheRoot) {
  EXPECT_TRUE(parse_or_fail("[]").empty());
  EXPECT_EQ(format_path({}), "[]");
  EXPECT_EQ(join_path({}), "");
}

TEST(Path, IntegersMayHaveAnySize) {
  const std::string digits = "-" + std::string(400, '9');
  EXPECT_EQ(parse_or_fail("[" + digits + "]"), (std::vector<PathPart>{integer(digits)}));
}

TEST(Path, ReadsAllEscapesOfJson) {
  EXPECT_EQ(
      parse_or_fail(R"(["\"\\\/\b\f\n\r\t\u0041\u00e4\u20AC\ud83d\ude00\u0000"])").front().text,
      std::string("\"\\/\b\f\n\r\tA\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\0", 19));
}

TEST(Path, RefusesWhatIsNoPath) {
  const std::vector<std::string> wrong = {"",
                                          "[",
                                          "]",
                                          "a",
                                          "\"a\"",
                                          "[\"a\"",
                                          "[\"a\"]x",
                                          "[\"a\",]",
                                          "[,]",
                                          "[\"a\" \"b\"]",
                                          "[1.5]",
                                          "[01]",
                                          "[-]",
                                          "[-0]",
                                          "[00]",
                                          "[true]",
                                          "[null]",
                                          "[{}]",
                                          "[[]]",
                                          "[[-1]]",
                                          "[[01]]",
                                          "[[1,2]]",
                                          "[[\"a\"]]",
                                          "[[1]",
                                          "[\"a",
                                          "[\"\\x\"]",
                                          "[\"\\",
                                          "[\"\\u12\"]",
                                          "[\"\\u12g4\"]",
                                          "[\"\\ud800\"]",
                                          "[\"\\ud800x\"]",
                                          "[\"\\ud800\\u0041\"]",
                                          "[\"\\udc00\"]",
                                          "[\"\n\"]",
                                          "[\"\xFF\"]",
                                          "[+1]",
                                          "[1 2]"};
  for (const std::string& text : wrong) {
    EXPECT_EQ(parse_path(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(Path, RefusesTooLongAndTooDeep) {
  EXPECT_EQ(parse_path(std::string(kMaxPathTextBytes + 1, ' ')).status().code(),
            StatusCode::kInvalidArgument);
  std::vector<PathPart> deep(256, integer("1"));
  EXPECT_TRUE(parse_path(format_path(deep)).ok());
  deep.push_back(integer("1"));
  EXPECT_EQ(parse_path(format_path(deep)).status().code(), StatusCode::kInvalidArgument);
}

TEST(Path, RandomPathsSurviveARoundTrip) {
  test::RandomSource random;
  const std::vector<std::string> texts = {
      "", "a", "a.b", "\"", "\\", "\n", "\xC3\xA4", "\xF0\x9F\x98\x80", "[0]", "-1"};
  for (int round = 0; round < 300; ++round) {
    std::vector<PathPart> parts;
    for (int64_t i = random.between(0, 6); i > 0; --i) {
      const std::string number = std::to_string(random.between(0, 1000));
      switch (random.between(0, 3)) {
        case 0:
          parts.push_back(key(random.pick(texts)));
          break;
        case 1:
          parts.push_back(integer(number));
          break;
        case 2:
          parts.push_back(integer("-1" + number));
          break;
        default:
          parts.push_back(position(number));
          break;
      }
    }
    ASSERT_EQ(parse_or_fail(format_path(parts)), parts) << format_path(parts);
    const std::string text = format_path(parts);
    const std::string name = join_path(parts);
    const bool plain = !parts.empty() && text.find('\\') == std::string::npos;
    EXPECT_EQ(is_canonical_path_of(text, name), plain) << text;
    EXPECT_FALSE(is_canonical_path_of(text, name + "x")) << text;
  }
}

// The quick answer is never yes where the slow one is no.
TEST(Path, QuickCheckAgreesWithTheParserOnSpoiledPaths) {
  test::RandomSource random;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"(["a",0,[1],"b.c",-7])", "a.0.1.b.c.-7"}, {R"([""])", ""}, {R"(["a","","b"])", "a..b"}};
  const std::vector<char> bytes = {'[', ']', '"', ',', '0', '1', '-', 'a', '.', ' ', '\\', '\x7F'};
  size_t agreed = 0;
  for (int round = 0; round < 20000; ++round) {
    auto [text, name] = random.pick(cases);
    for (int64_t edits = random.between(0, 2); edits > 0; --edits) {
      std::string& target = random.between(0, 2) == 0 ? name : text;
      const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(target.size())));
      if (random.between(0, 1) == 0 || at == target.size()) {
        target.insert(at, 1, random.pick(bytes));
      } else {
        target[at] = random.pick(bytes);
      }
    }
    if (!is_canonical_path_of(text, name)) continue;
    ++agreed;
    const auto parts = parse_path(text);
    ASSERT_TRUE(parts.ok()) << text << ": " << parts.status().to_string();
    EXPECT_EQ(format_path(*parts), text);
    EXPECT_EQ(join_path(*parts), name) << text;
  }
  EXPECT_GT(agreed, 1000U);
}

}  // namespace
}  // namespace shardwright
