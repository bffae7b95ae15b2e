// SPDX-License-Identifier: Apache-2.0
//
// Values of every kind, the memo, and the limits.
#include "core/format/archive/pickle_reader.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/archive/torch_tensor.h"
#include "tests/core/format/archive/pickle_description.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::archive {
namespace {

using std::string_literals::operator""s;

// What the pickle holds, or its failure.
std::string value_of(std::string_view bytes, const PickleLimits& limits = {}) {
  PickleOptions options;
  options.file = "f.pkl";
  options.limits = limits;
  const auto data = read_pickle(test::pickle_of(bytes), options);
  return data.ok() ? test::describe(*data) : data.status().to_string();
}

Status failure_of(std::string_view bytes, const PickleLimits& limits = {}) {
  PickleOptions options;
  options.file = "f.pkl";
  options.limits = limits;
  return read_pickle(test::pickle_of(bytes), options).status();
}

struct Row {
  std::string pickle;
  const char* value;
};

TEST(PickleReader, ReadsScalars) {
  const Row rows[] = {
      {"N.", "None"},
      {"\x88.", "True"},
      {"I01\n.", "True"},
      {"I00\n.", "False"},
      {"I1\n.", "1"},
      {"I-17\n.", "-17"},
      {"L17L\n.", "17"},
      {"L-9223372036854775808L\n.", "-9223372036854775808"},
      {"L9223372036854775808L\n.", "long:000000000000008000"},
      {"K\xFF.", "255"},
      {"J\xFF\xFF\xFF\xFF.", "-1"},
      {"J\xFF\xFF\xFF\x7F.", "2147483647"},
      {"J\0\0\0\x80."s, "-2147483648"},
      {"\x8A\0."s, "0"},
      {"\x8A\x01\xFF.", "-1"},
      {"\x8A\x08\0\0\0\0\0\0\0\x80."s, "-9223372036854775808"},
      {"\x8A\x09\0\0\0\0\0\0\0\x80\0."s, "long:000000000000008000"},
      {"\x8A\x0A\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF.", "-2"},
      {"\x8B\x02\0\0\0\x01\x01."s, "257"},
      {"F1.5\n.", "real:3ff8000000000000"},
      {"F-inf\n.", "real:fff0000000000000"},
      {"G\x3F\xF8\0\0\0\0\0\0."s, "real:3ff8000000000000"},
      {"X\x02\0\0\0\xC3\xA9."s, "\"\\xc3\\xa9\""},
      {"\x8C\x03\xED\xA0\x80.", "\"\\xed\\xa0\\x80\""},
      {"V\xE9\\u20ac\\U0001F600x\n.", "\"\\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80x\""},
      {"S'a\\n\\x41\\101\\''\n.", "\"a\\x0aAA'\""},
      {"S\"\\\\\"\n.", "\"\\x5c\""},
      {"U\x02hi.", "\"hi\""},
      {"U\x01\xFF.", "bytes:ff"},
      {"C\x02\0\xFF."s, "bytes:00ff"},
      {"\x96\x01\0\0\0\0\0\0\0z."s, "bytearray:7a"},
  };
  for (const Row& row : rows) EXPECT_EQ(value_of(row.pickle), row.value);
}

TEST(PickleReader, ReadsContainers) {
  const Row rows[] = {
      {").", "()"},
      {"K\x01\x85.", "(1)"},
      {"K\x01NK\x02\x87.", "(1, None, 2)"},
      {"(K\x01K\x02K\x03K\x04t.", "(1, 2, 3, 4)"},
      {"(t.", "()"},
      {"].", "[]"},
      {"]K\x01"
       "aK\x02"
       "a.",
       "[1, 2]"},
      {"](K\x01K\x02"
       "e(K\x03"
       "e.",
       "[1, 2, 3]"},
      {"](e.", "[]"},
      {"(K\x01K\x02l.", "[1, 2]"},
      {"}K\x01Ns.", "{1: None}"},
      {"}(K\x01NK\x02NuK\x03Ns.", "{1: None, 2: None, 3: None}"},
      {"(K\x01Nd.", "{1: None}"},
      {"\x8F(K\x01K\x02\x90.", "set{1, 2}"},
      {"(K\x01K\x02\x91.", "frozenset{1, 2}"},
      {"K\x01K\x02"
       "0.",
       "1"},
      {"K\x01(K\x02K\x03"
       "1.",
       "1"},
      {"K\x01(0.", "1"},
      {"K\x01"
       "2\x86.",
       "(1, 1)"},
  };
  for (const Row& row : rows) EXPECT_EQ(value_of(row.pickle), row.value);
}

TEST(PickleReader, KnowsWhatTheMemoHolds) {
  const Row rows[] = {
      {"]\x94h\0\x86."s, "([], [])"},
      {"]q\x05h\x05\x86.", "([], [])"},
      {"]r\xFF\xFF\xFF\x7Fj\xFF\xFF\xFF\x7F\x86.", "([], [])"},
      {"]p7\ng7\n\x86.", "([], [])"},
      {"K\x07q\0K\x08q\0h\0\x87."s, "(7, 8, 8)"},
      {"K\x07q\0K\x08\x94h\x01\x87."s, "(7, 8, 8)"},
  };
  for (const Row& row : rows) EXPECT_EQ(value_of(row.pickle), row.value);
  EXPECT_FAILURE(failure_of("h\x03."), StatusCode::kDataLoss, "BINGET at offset 0",
                 "memo entry 3, which is not set");
  EXPECT_FAILURE(failure_of("Np-1\n."), StatusCode::kDataLoss, "PUT");
}

TEST(PickleReader, KeepsValuesThatContainThemselves) {
  EXPECT_NE(value_of("]\x94h\0a."s).find("..."), std::string::npos);
  EXPECT_NE(value_of("}\x94NN\x86h\0s."s).find("..."), std::string::npos);
}

TEST(PickleReader, RefusesWhatNoPicklerWrites) {
  const char* const rows[] = {
      ".",                 // nothing to return
      "0.",                // POP of nothing
      "t.",                // no mark
      "Nt.",               //
      "(.",                // a mark is no value
      "K\x01(\x85.",       // the mark fences off what is below
      "NNa.",              // APPEND to None
      "}Na.",              // APPEND to a dict
      "]NNs.",             // SETITEM of a list
      "}(Nu.",             // a key without a value
      "(Nd.",              //
      "2.",                // DUP of nothing
      "NNb.",              // BUILD of None
      "]}b.",              // BUILD of a list
      "NNR.",              // REDUCE without a tuple
      "N]\x81.",           // NEWOBJ without a tuple
      "NN\x93.",           // STACK_GLOBAL of no texts
      "\x82\0.",           // EXT1 0, cut
      "X\x01\0\0\0\xFF.",  // cut
      "Fxyz\n.",           //
      "I1x\n.",            //
      "L\n.",              //
      "Snone\n.",          //
      "V\\ud8\n.",         //
      "V\\UFFFFFFFF\n.",   //
      "\x8C\x01\xFF.",     // no UTF-8
      "\x97.",             //
  };
  for (const char* const row : rows) {
    const Status status = failure_of(row);
    EXPECT_FALSE(status.ok()) << row;
    EXPECT_TRUE(shardwright::test::mentions(status, "f.pkl")) << status.to_string();
  }
}

TEST(PickleReader, SaysWhereThePickleEnds) {
  uint64_t end = 0;
  PickleOptions options;
  const std::string two = "K\x01.K\x02.";
  ASSERT_TRUE(read_pickle(test::pickle_of(two), options, &end).ok());
  EXPECT_EQ(end, 3U);
}

// A list that holds the one before it twice, 64 times over: 2^64 values when it is written out.
TEST(PickleReader, HoldsABombOfMemoEntriesInLittleMemory) {
  std::string bytes = "]\x94"s;
  for (int i = 0; i < 64; ++i)
    bytes += "](h"s + static_cast<char>(i) + "h"s + static_cast<char>(i) + "e\x94"s;
  bytes += ".";
  PickleOptions options;
  options.file = "f.pkl";
  const auto data = read_pickle(test::pickle_of(bytes), options);
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  EXPECT_LT(data->arena_bytes(), uint64_t{1} << 20);
}

TEST(PickleReader, BoundsDepth) {
  std::string tuples = "N";
  std::string lists;
  for (int i = 0; i < 300; ++i) tuples += "\x85", lists += "]";
  tuples += ".";
  for (int i = 0; i < 299; ++i) lists += "a";
  lists += ".";
  EXPECT_FAILURE(failure_of(tuples), StatusCode::kDataLoss, "TUPLE1", "nests more than 256");
  EXPECT_FAILURE(failure_of(lists), StatusCode::kDataLoss, "APPEND", "nests more than 256");
  EXPECT_EQ(value_of(std::string(200, '(') + std::string(200, 't') + ".").substr(0, 5), "(((((");
}

TEST(PickleReader, BoundsSizes) {
  PickleLimits limits;
  limits.nodes = 2;
  EXPECT_FAILURE(failure_of("]]]].", limits), StatusCode::kDataLoss, "more than 2 values");
  limits = {};
  limits.text_bytes = 2;
  limits.object_bytes = 2;
  EXPECT_FAILURE(failure_of("\x8C\x03"
                            "abc.",
                            limits),
                 StatusCode::kDataLoss, "3 bytes");
  EXPECT_FAILURE(failure_of("C\x03"
                            "abc.",
                            limits),
                 StatusCode::kDataLoss, "3 bytes");
  limits = {};
  limits.input_bytes = 3;
  EXPECT_FAILURE(failure_of("NN0.", limits), StatusCode::kDataLoss, "4 bytes, more than 3");
  const std::string wide = "\x8B\x01\x01\0\0"s + std::string(257, 'x') + ".";
  EXPECT_FAILURE(failure_of(wide), StatusCode::kDataLoss, "integer of 257 bytes");
  EXPECT_FAILURE(failure_of("L" + std::string(2000, '9') + "L\n."), StatusCode::kDataLoss, "LONG");
}

// As protocol 2 says bytes: a text with two bytes for each of them from 0x80 on.
TEST(PickleReader, TakesTextsOfLargeBytes) {
  static_assert(PickleLimits().text_bytes >= 2 * PickleLimits().object_bytes);
  const std::vector<std::byte> bytes(size_t{3} << 20, std::byte{0xE9});
  PickleWriter writer(PickleProtocol::k2);
  writer.bytes(bytes);
  const std::string pickle = std::move(writer).finish();
  PickleOptions options;
  options.vocabulary = torch_vocabulary();
  const auto data = read_pickle(test::pickle_of(pickle), options);
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  const auto found = encoded_bytes(*data, data->root());
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(*found)), bytes));
  EXPECT_LT(data->arena_bytes(), uint64_t{1} << 20);  // the text stays in the input
}

// What a length claims takes no memory.
TEST(PickleReader, RefusesTextsThatTheInputDoesNotHold) {
  EXPECT_FAILURE(failure_of("X\xFF\xFF\xFF\x07"
                            "abc."),
                 StatusCode::kDataLoss, "BINUNICODE");
}

TEST(PickleReader, BoundsMarksAndMemory) {
  PickleLimits limits;
  limits.marks = 2;
  EXPECT_EQ(value_of("((ll.", limits), "[[]]");
  EXPECT_FAILURE(failure_of("(((lll.", limits), StatusCode::kDataLoss, "MARK", "2 marks");
  limits = {};
  limits.arena_bytes = uint64_t{1} << 20;
  std::string appends = "]";
  std::string lists = "(";
  for (int i = 0; i < 100000; ++i) appends += "Na";
  for (int i = 0; i < 100000; ++i) lists += "]";
  EXPECT_FAILURE(failure_of(appends + ".", limits), StatusCode::kDataLoss, "APPEND",
                 "1048576 bytes of memory");
  EXPECT_FAILURE(failure_of(lists + "l.", limits), StatusCode::kDataLoss, "EMPTY_LIST",
                 "1048576 bytes of memory");
}

TEST(PickleReader, RefusesNumbersWithLeadingZeros) {
  for (const char* const row : {"I010\n.", "I-010\n.", "I000\n.", "L010L\n.", "L+08L\n."})
    EXPECT_FAILURE(failure_of(row), StatusCode::kDataLoss, "leading zeros");
  EXPECT_EQ(value_of("I0\n."), "0");
  EXPECT_EQ(value_of("L-0L\n."), "0");
}

TEST(PickleReader, KeepsManyFarMemoEntriesApart) {
  std::string pickle;
  for (int64_t i = 0; i < 1000; ++i)
    pickle += "I" + std::to_string(i) + "\np" + std::to_string((i + 1) * 1000003) + "\n0";
  EXPECT_EQ(value_of(pickle + "g500001500\n."), "499");
}

// Memory follows the input, not what it claims.
TEST(PickleReader, TakesNoMemoryForFarMemoEntries) {
  PickleOptions options;
  const auto data = read_pickle(test::pickle_of("Nr\xFF\xFF\xFF\xFF."), options);
  ASSERT_TRUE(data.ok());
  EXPECT_LT(data->arena_bytes(), uint64_t{1} << 20);
}

}  // namespace
}  // namespace shardwright::format::archive
