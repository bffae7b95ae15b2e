// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/slice_parser.h"

namespace shardwright::cli {
namespace {

std::string parsed(std::string_view text, const std::vector<int64_t>& shape) {
  std::vector<DimensionSlice> slices;
  std::string problem;
  return parse_slice(text, shape, &slices, &problem) ? slice_text(slices) : "! " + problem;
}

TEST(SliceParser, ReadsWhatNumpyReads) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "[0:10, 0:4, 0:5]"},
      {"[2:5, :, -1]", "[2:5, 0:4, 4]"},
      {"[...]", "[0:10, 0:4, 0:5]"},
      {"[..., 0]", "[0:10, 0:4, 0]"},
      {"[0, ..., 1:3]", "[0, 0:4, 1:3]"},
      {"[1, 2, ..., 3]", "[1, 2, 3]"},
      {"[::3]", "[0:10:3, 0:4, 0:5]"},
      {"[1:9:4,]", "[1:6:4, 0:4, 0:5]"},
      {" [ +1 : -1 ] ", "[1:9, 0:4, 0:5]"},
      {"[-100:100]", "[0:10, 0:4, 0:5]"},
      {"[5:2]", "[5:5, 0:4, 0:5]"},
      {"[9223372036854775807:]", "[10:10, 0:4, 0:5]"},
      {"[-9223372036854775808:]", "[0:10, 0:4, 0:5]"},
      {"[::9223372036854775807]", "[0:1:9223372036854775807, 0:4, 0:5]"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parsed(text, {10, 4, 5}), expected) << text;
}

TEST(SliceParser, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "a slice stands between [ and ]"},
      {"2", "a slice stands between [ and ]"},
      {"[", "a slice stands between [ and ]"},
      {"[10]", "index 10 is outside a dimension of 10"},
      {"[-11]", "index -11 is outside a dimension of 10"},
      {"[1,2,3,4]", "the slice has 4 parts, the tensor 3 dimensions"},
      {"[a]", "'a' is neither an index nor a range"},
      {"[1,,2]", "'' is neither an index nor a range"},
      {"[1:b]", "'b' is no integer of 64 bits"},
      {"[1:2:3:4]", "'1:2:3:4' has more than two colons"},
      {"[::-1]", "the step -1 is not positive"},
      {"[::0]", "the step 0 is not positive"},
      {"[..., ...]", "a slice has at most one ..."},
      {"[99999999999999999999]", "'99999999999999999999' is neither an index nor a range"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(parsed(text, {10, 4, 5}), "! " + expected) << text;
}

TEST(SliceParser, KnowsScalarsAndEmptyDimensions) {
  EXPECT_EQ(parsed("[]", {}), "[]");
  EXPECT_EQ(parsed("[...]", {}), "[]");
  EXPECT_EQ(parsed("[0]", {}), "! the slice has 1 parts, the tensor 0 dimensions");
  EXPECT_EQ(parsed("[:]", {0}), "[0:0]");
  EXPECT_EQ(parsed("[0]", {0}), "! index 0 is outside a dimension of 0");
}

TEST(SliceParser, LeavesTheResultAloneWhenItFails) {
  std::vector<DimensionSlice> slices{{7, 1, 1, false}};
  std::string problem;
  EXPECT_FALSE(parse_slice("[x]", {3}, &slices, &problem));
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].start, 7);
}

}  // namespace
}  // namespace shardwright::cli
