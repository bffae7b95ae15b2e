// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/zstd_frames.h"

#include <string>

#include <gtest/gtest.h>
#include <zstd.h>

#include "tests/core/format/archive/sample_archives.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::archive {
namespace {

using test::bytes_of_text;
using test::text_of;

std::string packed(std::string_view text) {
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 3));
  return frame;
}

std::string numbers(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += std::to_string(i * i) + ",";
  return text;
}

// A frame that does not say how much it holds.
std::string packed_without_size(std::string_view text) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  std::string frame(ZSTD_compressBound(text.size()) + 64, '\0');
  ZSTD_outBuffer out{frame.data(), frame.size(), 0};
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  frame.resize(out.pos);
  return frame;
}

TEST(ZstdFrames, GiveWhatWasPacked) {
  for (const std::string& text :
       {std::string(), std::string("x"), numbers(200000), std::string(size_t{5} << 20, 'z')}) {
    for (const std::string& frame : {packed(text), packed_without_size(text)}) {
      const auto whole = unpack_zstd(bytes_of_text(frame), text.size());
      ASSERT_TRUE(whole.ok()) << whole.status().to_string();
      EXPECT_EQ(text_of(*whole), text);
      const auto head = unpack_zstd(bytes_of_text(frame), text.size(), 100);
      ASSERT_TRUE(head.ok()) << head.status().to_string();
      EXPECT_EQ(text_of(*head), text.substr(0, 100));
    }
  }
}

TEST(ZstdFrames, AreReadOneAfterTheOther) {
  const std::string frames = packed("first ") + packed("") + packed("second");
  const auto whole = unpack_zstd(bytes_of_text(frames), 100);
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  EXPECT_EQ(text_of(*whole), "first second");
}

// A few kilobytes that would fill a disk.
TEST(ZstdFrames, HoldNoMoreThanWasExpected) {
  const std::string bomb = packed(std::string(size_t{64} << 20, '\0'));
  ASSERT_LT(bomb.size(), size_t{16} << 10);
  const auto refused = unpack_zstd(bytes_of_text(bomb), 1000);
  EXPECT_FAILURE(refused.status(), StatusCode::kDataLoss, "1000 bytes that can be expected");
  EXPECT_EQ(refused.status().detail("file"), "a.zip");
  const auto exact = unpack_zstd(bytes_of_text(packed(numbers(1000))), numbers(1000).size() - 1);
  EXPECT_FAILURE(exact.status(), StatusCode::kDataLoss, "can be expected");
}

TEST(ZstdFrames, AreNotBelievedWhenTheyClaimAHugeWindow) {
  // A frame header without the size of its content, whose window has 2 GiB.
  const std::string frame = std::string("\x28\xB5\x2F\xFD\x00\xA8", 6) + std::string(64, '\0');
  const auto refused = unpack_zstd(bytes_of_text(frame), 1000);
  EXPECT_FAILURE(refused.status(), StatusCode::kResourceExhausted, "larger window");
  EXPECT_EQ(refused.status().detail("offset"), "0");
}

TEST(ZstdFrames, ThatAreDamagedNameThePlace) {
  const std::string text = numbers(100000);
  const std::string frame = packed(text);
  for (size_t size = 0; size < frame.size(); size += 1 + frame.size() / 50) {
    const auto cut =
        unpack_zstd(bytes_of_text(std::string_view(frame).substr(0, size)), text.size());
    EXPECT_EQ(cut.status().code(), StatusCode::kDataLoss) << size;
    EXPECT_NE(cut.status().detail("offset"), "") << size;
  }
  EXPECT_FAILURE(unpack_zstd(bytes_of_text(frame + "\x28\xB5"), text.size()).status(),
                 StatusCode::kDataLoss, "cut short");
  EXPECT_FAILURE(unpack_zstd(bytes_of_text(frame + "PKPKPKPK"), text.size()).status(),
                 StatusCode::kDataLoss, "not sound");
  EXPECT_FAILURE(unpack_zstd(bytes_of_text("no frame at all"), text.size()).status(),
                 StatusCode::kDataLoss, "not sound");
}

}  // namespace
}  // namespace shardwright::format::archive
