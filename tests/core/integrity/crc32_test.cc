// SPDX-License-Identifier: Apache-2.0
#include "core/integrity/crc32.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace shardwright::integrity {
namespace {

uint32_t crc_of(std::string_view text) {
  return crc32(0, std::as_bytes(std::span(text)));
}

TEST(Crc32, IsThatOfArchives) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xCBF43926U);
  // Records of torch.save archives.
  EXPECT_EQ(crc_of("1"), 0x83DCEFB7U);
  EXPECT_EQ(crc_of("64"), 0xE971773FU);
  EXPECT_EQ(crc_of("little"), 0x19E33D85U);
  EXPECT_EQ(crc_of("3\n"), 0x55679ED1U);
}

TEST(Crc32, GoesOnWhereItStopped) {
  const std::string_view text = "123456789";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = crc_of(text.substr(0, cut));
    EXPECT_EQ(crc32(first, std::as_bytes(std::span(text.substr(cut)))), crc_of(text));
  }
}

TEST(Crc32, OfTwoRunsIsThatOfBothTogether) {
  const std::string zeros(100'000, '\0');
  const std::string ones(4097, '\x01');
  for (const std::string& first : {std::string(), std::string("abc"), zeros, ones}) {
    for (const std::string& second : {std::string(), std::string("x"), zeros, ones}) {
      EXPECT_EQ(crc32_of_both(crc_of(first), crc_of(second), second.size()),
                crc_of(first + second));
    }
  }
}

}  // namespace
}  // namespace shardwright::integrity
