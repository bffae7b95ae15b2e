// SPDX-License-Identifier: Apache-2.0
//
// Opcodes one by one: arguments, lengths that lie, frames.
#include "core/format/archive/pickle_tokens.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/core/format/archive/pickle_description.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::archive {
namespace {

using std::string_literals::operator""s;

struct Listing {
  std::vector<PickleToken> tokens;
  Status status;
  uint64_t position = 0;
};

Listing list(std::string_view bytes) {
  PickleTokens tokens(test::pickle_of(bytes), "f.pkl");
  Listing listing;
  PickleToken token;
  while (tokens.next(&token)) listing.tokens.push_back(token);
  listing.status = tokens.status();
  listing.position = tokens.position();
  return listing;
}

TEST(PickleTokens, ReadArgumentsOfEveryKind) {
  const std::string bytes =
      "\x80\x04K\xFFM\xFF\xFFJ\xFF\xFF\xFF\xFF"
      "j\xFF\xFF\xFF\xFFG\x3F\xF0\0\0\0\0\0\0\x8C\x02hiX\x01\0\0\0xB\x02\0\0\0yz"
      "cmodule\nname\nI42\n."s;
  const Listing listing = list(bytes);
  ASSERT_TRUE(listing.status.ok()) << listing.status.to_string();
  ASSERT_EQ(listing.tokens.size(), 12U);
  EXPECT_EQ(listing.tokens[0].number, 4);
  EXPECT_EQ(listing.tokens[1].number, 255);
  EXPECT_EQ(listing.tokens[2].number, 65535);
  EXPECT_EQ(listing.tokens[3].number, -1);
  EXPECT_EQ(listing.tokens[4].number, 0xFFFFFFFF);
  EXPECT_EQ(listing.tokens[5].number, 0x3FF0000000000000);
  EXPECT_EQ(listing.tokens[6].data, "hi");
  EXPECT_EQ(listing.tokens[7].data, "x");
  EXPECT_EQ(listing.tokens[8].data, "yz");
  EXPECT_EQ(listing.tokens[9].data, "module");
  EXPECT_EQ(listing.tokens[9].second, "name");
  EXPECT_EQ(listing.tokens[10].data, "42");
  EXPECT_EQ(listing.position, bytes.size());
}

TEST(PickleTokens, EndBehindStopWhateverFollows) {
  const Listing listing = list("N.garbage");
  EXPECT_TRUE(listing.status.ok());
  EXPECT_EQ(listing.position, 2U);
}

TEST(PickleTokens, RefuseLengthsThatLie) {
  const std::string rows[] = {"X\xFF\xFF\xFF\xFFx."s,
                              "\x8C\x05x."s,
                              "\x8E\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx."s,
                              "\x8E\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFx."s,
                              "T\xFF\xFF\xFF\xFFx."s,
                              "\x8B\xFF\xFF\xFF\xFFx."s,
                              "\x8D\x03\0\0\0\0\0\0\0x."s};
  for (const std::string& row : rows) {
    const Listing listing = list(row);
    EXPECT_FAILURE(listing.status, StatusCode::kDataLoss, "f.pkl", "offset 0");
    EXPECT_TRUE(listing.tokens.empty());
  }
}

TEST(PickleTokens, RefuseEveryTruncation) {
  const std::string bytes =
      "\x80\x04\x95\x18\0\0\0\0\0\0\0J\xFF\xFF\xFF\xFF\x8C\x02hi\x8A\x02\x01\x02"
      "cmod\nname\n."s;
  ASSERT_TRUE(list(bytes).status.ok()) << list(bytes).status.to_string();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FAILURE(list(bytes.substr(0, size)).status, StatusCode::kDataLoss, "f.pkl");
}

TEST(PickleTokens, NameTheByteThatIsNoOpcode) {
  EXPECT_FAILURE(list("N\xFF").status, StatusCode::kDataLoss, "byte 0xff at offset 1",
                 "is no opcode");
}

TEST(PickleTokens, RefuseNewerProtocols) {
  EXPECT_FAILURE(list("\x80\x06N.").status, StatusCode::kUnimplemented, "protocol 6");
}

TEST(PickleTokens, HoldFramesToWhatTheyCount) {
  const auto framed = [](char count, std::string_view body) {
    return "\x80\x04\x95"s + count + "\0\0\0\0\0\0\0"s + std::string(body);
  };
  EXPECT_TRUE(list(framed(2, "N.")).status.ok());
  EXPECT_TRUE(list(framed(1, "N.")).status.ok());
  EXPECT_TRUE(list(framed(0, "N.")).status.ok());
  EXPECT_FAILURE(list(framed(3, "N.")).status, StatusCode::kDataLoss, "FRAME",
                 "counts 3 bytes where 2 are left");
  EXPECT_FAILURE(list(framed(4, "N.  ")).status, StatusCode::kDataLoss, "STOP",
                 "before the end of its frame");
  EXPECT_FAILURE(list(framed(2, "K\x01.") + "  ").status, StatusCode::kOk);
  EXPECT_FAILURE(list(framed(1, "K\x01.")).status, StatusCode::kDataLoss, "BININT1",
                 "leaves the frame");
  EXPECT_FAILURE(list(framed(11, "N\x95\x01\0\0\0\0\0\0\0N."s)).status, StatusCode::kDataLoss,
                 "FRAME", "inside another frame");
  EXPECT_FAILURE(list("\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFN."s).status, StatusCode::kDataLoss,
                 "FRAME");
}

}  // namespace
}  // namespace shardwright::format::archive
