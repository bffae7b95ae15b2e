// SPDX-License-Identifier: Apache-2.0
//
// Text for people: sizes, escapes, numbers and arrays as numpy 2 prints them, folded trees.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cli/array_text.h"
#include "cli/element_text.h"
#include "cli/name_tree.h"
#include "cli/text.h"
#include "shardwright/shardwright.h"

namespace shardwright::cli {
namespace {

template <typename T>
std::string array_of(ElementType type, const std::vector<T>& values, std::vector<int64_t> shape) {
  const auto bytes = std::as_bytes(std::span(values));
  const std::vector<Element> elements = decode_elements(type, bytes, 0, values.size());
  return array_text(shape, std::vector<bool>(shape.size()),
                    element_words(type, elements, shape.empty()));
}

constexpr ElementType kFloat32{SHW_FLOAT32, 32};
constexpr ElementType kFloat64{SHW_FLOAT64, 64};
constexpr ElementType kInt32{SHW_INT32, 32};

TEST(Text, WritesSizesAndCounts) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(uint64_t{2} << 30), "2.00 GiB");
  EXPECT_EQ(size_text(UINT64_MAX), "16.00 EiB");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(123), "123");
  EXPECT_EQ(plural(1, "chunk"), "1 chunk");
  EXPECT_EQ(plural(2000, "chunk"), "2,000 chunks");
}

TEST(Text, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");           // C1 control
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
}

TEST(Text, QuotesWordsForAShell) {
  EXPECT_EQ(shell_word("/runs/a-1"), "/runs/a-1");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ArrayText, PrintsNumbersAsNumpyDoes) {
  EXPECT_EQ(array_of<float>(kFloat32, {1.0F, 2.5F, -3.25F}, {3}), "[ 1.    2.5  -3.25]");
  EXPECT_EQ(array_of<float>(kFloat32, {0.1F, 100000.0F}, {2}), "[1.e-01 1.e+05]");
  EXPECT_EQ(array_of<double>(kFloat64, {1.0 / 3, 2.0}, {2}), "[0.33333333 2.        ]");
  EXPECT_EQ(array_of<double>(kFloat64, {1e-5, 1.5}, {2}), "[1.0e-05 1.5e+00]");
  EXPECT_EQ(array_of<double>(kFloat64, {NAN, -INFINITY, 1}, {3}), "[ nan -inf   1.]");
  EXPECT_EQ(array_of<int32_t>(kInt32, {1, -20, 300, 4}, {2, 2}), "[[  1 -20]\n [300   4]]");
  EXPECT_EQ(array_of<float>(kFloat32, {0.1F}, {}), "0.1");
  EXPECT_EQ(array_of<float>(kFloat32, {2.0F}, {}), "2.0");
  EXPECT_EQ(array_of<uint8_t>({SHW_BOOL, 8}, {1, 0}, {2}), "[ True False]");
}

TEST(ArrayText, WrapsLongRowsAndSeparatesBlocks) {
  std::vector<int32_t> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1000 + static_cast<int32_t>(i);
  EXPECT_EQ(array_of<int32_t>(kInt32, values, {24}),
            "[1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013\n"
            " 1014 1015 1016 1017 1018 1019 1020 1021 1022 1023]");
  EXPECT_EQ(array_of<int32_t>(kInt32, {1, 2, 3, 4}, {2, 1, 2}), "[[[1 2]]\n\n [[3 4]]]");
}

TEST(ArrayText, MarksWhatWasLeftOut) {
  const std::vector<std::string> words{"1", "2", "3", "7", "8", "9"};
  EXPECT_EQ(array_text({6}, {true}, words), "[1 2 3 ... 7 8 9]");
  EXPECT_EQ(array_text({6, 1}, {true, false}, words), "[[1]\n [2]\n [3]\n ...\n [7]\n [8]\n [9]]");
  EXPECT_EQ(array_text({0, 3}, {false, false}, {}), "[]");
}

TEST(ElementText, DecodesSmallFloats) {
  const auto value = [](ElementType type, uint16_t bits) {
    return decode_elements(type, std::as_bytes(std::span(&bits, 1)), 0, 1).front().real;
  };
  EXPECT_EQ(value({SHW_BFLOAT16, 16}, 0x3FC0), 1.5);
  EXPECT_EQ(value({SHW_FLOAT16, 16}, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(value({SHW_FLOAT16, 16}, 0xFC00), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(value({SHW_FLOAT8_E4M3FN, 8}, 0x7E), 448);
  EXPECT_TRUE(std::isnan(value({SHW_FLOAT8_E4M3FN, 8}, 0x7F)));
  EXPECT_EQ(value({SHW_FLOAT8_E5M2, 8}, 0x7B), 57344);
  EXPECT_EQ(value({SHW_FLOAT8_E4M3FNUZ, 8}, 0x7F), 240);
  EXPECT_TRUE(std::isnan(value({SHW_FLOAT8_E4M3FNUZ, 8}, 0x80)));
  EXPECT_EQ(value({SHW_FLOAT8_E8M0FNU, 8}, 0x80), 2);
  EXPECT_EQ(value({SHW_FLOAT4_E2M1FN, 4}, 0x7), 6);
  EXPECT_EQ(value({SHW_FLOAT6_E2M3FN, 6}, 0x1F), 7.5);
}

TEST(ElementText, ReadsPackedElementsAcrossBytes) {
  const std::vector<uint8_t> nibbles{0x21, 0xF3};
  const std::vector<Element> elements =
      decode_elements({SHW_INT4, 4}, std::as_bytes(std::span(nibbles)), 0, 4);
  ASSERT_EQ(elements.size(), 4U);
  EXPECT_EQ(elements[0].integer, 1);
  EXPECT_EQ(elements[1].integer, 2);
  EXPECT_EQ(elements[3].integer, -1);
  EXPECT_TRUE(decode_elements({SHW_INT4, 4}, std::as_bytes(std::span(nibbles)), 2, 3).empty());
}

TEST(NameTree, FoldsEqualNumberedLayers) {
  std::vector<TreeEntry> entries;
  for (int layer = 0; layer < 12; ++layer) {
    entries.push_back({"layers." + std::to_string(layer) + ".w", "float32 [2]", 8});
  }
  entries.push_back({"head", "float32 [4]", 16});
  TreeNode root = make_tree(entries);
  EXPECT_EQ(root.entries, 13U);
  EXPECT_EQ(root.bytes, 112U);
  fold_numbered(&root);
  ASSERT_EQ(root.children.size(), 2U);
  ASSERT_EQ(root.children[1].children.size(), 1U);
  EXPECT_EQ(root.children[1].children[0].part, "{0..11}");
  EXPECT_EQ(root.children[1].children[0].entries, 12U);
}

TEST(NameTree, KeepsLayersThatDiffer) {
  TreeNode root = make_tree(
      {{"l.0.w", "float32 [2]", 8}, {"l.1.w", "float32 [3]", 12}, {"l.2.w", "float32 [3]", 12}});
  fold_numbered(&root);
  ASSERT_EQ(root.children[0].children.size(), 2U);
  EXPECT_EQ(root.children[0].children[0].part, "0");
  EXPECT_EQ(root.children[0].children[1].part, "{1..2}");
}

TEST(NameTree, AcceptsNamesOfDotsAndPrefixesOfOthers) {
  const TreeNode root = make_tree({{"a", "x", 1}, {"a.b", "y", 2}, {"..", "z", 4}, {"", "w", 8}});
  EXPECT_EQ(root.entries, 4U);
  EXPECT_EQ(root.bytes, 15U);
}

TEST(Text, FindsTheWordThatWasMeant) {
  const std::vector<std::string> words{"info", "ls", "tree", "show", "verify", "digest", "gc"};
  EXPECT_EQ(nearest_word("verfy", words), "verify");
  EXPECT_EQ(nearest_word("VERIFY", words), "verify");
  EXPECT_EQ(nearest_word("dig", words), "digest") << "a beginning";
  EXPECT_EQ(nearest_word("hsow", words), "show") << "swapped letters";
  EXPECT_EQ(nearest_word("sl", words), "ls");
  EXPECT_EQ(nearest_word("xyz", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word("frobnicate", words), "");
}

}  // namespace
}  // namespace shardwright::cli
