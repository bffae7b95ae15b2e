// SPDX-License-Identifier: Apache-2.0
//
// UTF-8, escaping, hex, base64, nearest names and globs.
#include "core/base/text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, AcceptsWellFormedText) {
  for (const std::string_view text :
       {""sv, "plain"sv, "\0nul"sv, "\x7f"sv, "\xC3\xA4"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv,
        "\xED\x9F\xBF"sv, "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv,
        "\xF0\x9F\x98\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    EXPECT_TRUE(is_valid_utf8(text)) << escape_text(text);
  }
}

TEST(Utf8, RefusesIllFormedText) {
  for (const std::string_view text :
       {"\x80"sv, "\xBF"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC3"sv, "\xC3("sv, "\xE0\x9F\xBF"sv,
        "\xE2\x82"sv, "\xED\xA0\x80"sv, "\xED\xBF\xBF"sv, "\xF0\x8F\xBF\xBF"sv, "\xF0\x9F\x98"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv, "ok\xFEok"sv}) {
    EXPECT_FALSE(is_valid_utf8(text)) << escape_text(text);
  }
}

TEST(EscapeText, LeavesTextAndEscapesControlsAndBadBytes) {
  EXPECT_EQ(escape_text("layers.0.w \xC3\xA4"), "layers.0.w \xC3\xA4");
  EXPECT_EQ(escape_text("a\n\x1b\x7f"sv), "a\\x0a\\x1b\\x7f");
  EXPECT_EQ(escape_text("\0"sv), "\\x00");
  EXPECT_EQ(escape_text("\xC2\x9B"sv), "\\xc2\\x9b");
  EXPECT_EQ(escape_text("a\xFF"
                        "b\xE2\x82"sv),
            "a\\xffb\\xe2\\x82");
}

TEST(EscapeText, CutsAtWholeCharacters) {
  EXPECT_EQ(escape_text("abcdef", 6), "abcdef");
  EXPECT_EQ(escape_text("abcdef", 5), "abcde...");
  EXPECT_EQ(escape_text("ab\xC3\xA4", 3), "ab...");
  EXPECT_EQ(escape_text("ab\n", 5), "ab...");
}

TEST(Hex, GoesBothWays) {
  test::RandomSource random;
  const std::vector<std::byte> bytes = random.bytes(33);
  const std::string text = to_hex(bytes);
  EXPECT_EQ(text.size(), 66U);
  EXPECT_EQ(from_hex(text), bytes);
  EXPECT_EQ(to_hex({}), "");
  EXPECT_EQ(from_hex("0aFf"), (std::vector<std::byte>{std::byte{0x0A}, std::byte{0xFF}}));
}

TEST(Hex, RefusesOddLengthAndOtherDigits) {
  EXPECT_EQ(from_hex("abc"), std::nullopt);
  EXPECT_EQ(from_hex("0g"), std::nullopt);
  EXPECT_EQ(from_hex("g0"), std::nullopt);
  EXPECT_EQ(from_hex("0x"), std::nullopt);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The examples of RFC 4648, section 10.
TEST(Base64, IsThatOfItsStandard) {
  const std::pair<std::string_view, std::string_view> table[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xFB\xFF", "+/8="}};
  for (const auto& [bytes, text] : table) {
    EXPECT_EQ(to_base64(bytes_of(bytes)), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back.has_value()) << text;
    EXPECT_TRUE(std::ranges::equal(*back, bytes_of(bytes))) << text;
  }
}

TEST(Base64, TakesAnyBytes) {
  std::vector<std::byte> bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes.push_back(static_cast<std::byte>(i * 7));
  }
}

TEST(Base64, RefusesWhatNoBytesBecome) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "=m9v", "Z===", "====",
                                      "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm9-", "Zm9\xFF"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

TEST(NearestNames, OrdersByEditDistanceThenSuffix) {
  const std::vector<std::string_view> names = {"layers.1.weight", "layers.0.bias",
                                               "layers.0.weight", "embedding"};
  const std::vector<std::string> best = nearest_names("layer.0.weight", names, 3);
  EXPECT_EQ(best,
            (std::vector<std::string>{"layers.0.weight", "layers.1.weight", "layers.0.bias"}));
}

TEST(NearestNames, PrefersTheSharedSuffixOnTies) {
  const std::vector<std::string_view> names = {"abx", "xbc"};
  EXPECT_EQ(nearest_names("abc", names, 1), (std::vector<std::string>{"xbc"}));
}

// As where many ranks have an entry of that name.
TEST(NearestNames, GivesEachNameOnce) {
  const std::vector<std::string_view> names = {"own", "own", "w", "own", "own", "old"};
  EXPECT_EQ(nearest_names("onw", names, 3), (std::vector<std::string>{"w", "own", "old"}));
}

TEST(NearestNames, GivesAtMostWhatThereIs) {
  EXPECT_TRUE(nearest_names("a", {}, 3).empty());
  const std::vector<std::string_view> names = {"b"};
  EXPECT_EQ(nearest_names("a", names, 3).size(), 1U);
  EXPECT_TRUE(nearest_names("a", names, 0).empty());
}

// Names of a model with many experts, and one name that is asked for.
struct ManyNames {
  explicit ManyNames(int count) {
    for (int i = 0; i < count; ++i)
      texts.push_back(fmt::format("layers.{}.experts.{}.up_proj.weight", i / 256, i % 256));
    names.assign(texts.begin(), texts.end());
  }
  std::vector<std::string> texts;
  std::vector<std::string_view> names;
};

TEST(NearestNames, FindsTheNearestOfMany) {
  const ManyNames many(100000);
  for (const std::string_view wanted :
       {"layers.311.experts.77.up_prj.weight", "layers.311.experts.77.up_proj.weigth",
        "layer.311.experts.77.up_proj.weight", "layers.311.experts.77.up_proj",
        "optimizer.layers.311.experts.77.up_proj.weight.exp_avg"}) {
    EXPECT_EQ(nearest_names(wanted, many.names, 1).front(), "layers.311.experts.77.up_proj.weight")
        << wanted;
  }
}

TEST(NearestNames, ComparesFewOfManyInFull) {
  const ManyNames many(100000);
  for (const std::string_view wanted : {"layers.311.experts.77.up_prj.weight", "x", ""})
    EXPECT_LE(nearest_candidates(wanted, many.names).size(), 256U) << wanted;
  // Many ranks have an entry of one name: it takes one place.
  std::vector<std::string_view> names(100000, "own");
  names.emplace_back("old");
  EXPECT_EQ(nearest_candidates("onw", names).size(), 2U);
  EXPECT_EQ(nearest_names("onw", names, 3), (std::vector<std::string>{"own", "old"}));
}

struct GlobCase {
  std::string_view pattern;
  std::string_view name;
  bool matches;
};

class Glob : public testing::TestWithParam<GlobCase> {};

TEST_P(Glob, Matches) {
  EXPECT_EQ(glob_matches(GetParam().pattern, GetParam().name), GetParam().matches)
      << GetParam().pattern << " against " << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Glob,
    testing::Values(
        GlobCase{"", "", true}, GlobCase{"", "a", false}, GlobCase{"*", "", true},
        GlobCase{"*", "a.b.c", true}, GlobCase{"a*c", "a.b.c", true},
        GlobCase{"a*c", "a.b.d", false}, GlobCase{"*.bias", "layers.0.bias", true},
        GlobCase{"*.bias", "bias", false}, GlobCase{"a?c", "abc", true},
        GlobCase{"a?c", "ac", false}, GlobCase{"?", "", false}, GlobCase{"[a-c]x", "bx", true},
        GlobCase{"[a-c]x", "dx", false}, GlobCase{"[!a]", "b", true}, GlobCase{"[!a]", "a", false},
        GlobCase{"[^a]", "b", true}, GlobCase{"[]]", "]", true}, GlobCase{"[!]]", "]", false},
        GlobCase{"[!]]", "a", true}, GlobCase{"[abc", "[abc", true}, GlobCase{"[", "[", true},
        GlobCase{"[a-]", "-", true}, GlobCase{"\\*", "*", true}, GlobCase{"\\*", "a", false},
        GlobCase{"a\\", "a\\", true}, GlobCase{"**a", "bba", true},
        GlobCase{"a*a*a", "aabaa", true}, GlobCase{"a*b*c", "acb", false}));

TEST(GlobCost, StaysPolynomialForManyStars) {
  const std::string name(2000, 'a');
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "a*";
  EXPECT_FALSE(glob_matches(pattern + "b", name));
  EXPECT_TRUE(glob_matches(pattern, name));
}

}  // namespace
}  // namespace shardwright
