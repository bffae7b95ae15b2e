// SPDX-License-Identifier: Apache-2.0
#include "core/collective/status_bytes_internal.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/support/no_memory.h"

namespace shardwright::collective::internal {
namespace {

Status sample() {
  return data_loss("block 3 differs")
      .with_detail("file", "rank-00001.shw")
      .with_detail("offset", "4096")
      .annotated("reading tensor 'w'")
      .annotated("loading");
}

TEST(StatusBytes, KeepsCodeMessagesDetailsAndRetryability) {
  const Status status = decode_status(encode_status(sample().with_retryable(true)));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.to_string(), sample().to_string());
  EXPECT_EQ(status.detail("file"), "rank-00001.shw");
  EXPECT_EQ(status.detail("offset"), "4096");
  EXPECT_TRUE(status.retryable());
}

TEST(StatusBytes, ASuccessHasNoBytes) {
  EXPECT_TRUE(encode_status(Status()).empty());
}

TEST(StatusBytes, CutsWhatIsTooLong) {
  Status status = unavailable(std::string(100'000, 'x'));
  for (int i = 0; i < 200; ++i)
    status = std::move(status).with_detail("key" + std::to_string(i), std::string(5000, 'y'));
  for (int i = 0; i < 100; ++i) status = std::move(status).annotated(std::string(9000, 'z'));
  const std::vector<std::byte> bytes = encode_status(status);
  EXPECT_LE(bytes.size(), kMaxStatusBytes);
  const Status decoded = decode_status(bytes);
  EXPECT_EQ(decoded.code(), StatusCode::kUnavailable);
  EXPECT_EQ(decoded.detail("key0"), std::string(1024, 'y'));
  EXPECT_NE(decoded.to_string().find("xxx"), std::string::npos);
}

// Without memory: the outermost message and what fits of the details.
TEST(StatusBytes, AreThereInBriefWithoutMemory) {
  Status status = unavailable(std::string(10'000, 'x'))
                      .with_detail("file", std::string(1000, 'f'))
                      .with_detail("host_exception", "key")
                      .with_detail("commit", "unknown");
  std::array<std::byte, kBriefStatusBytes> room{};
  for (const bool is_long : {true, false}) {
    if (!is_long) status = out_of_memory();
    size_t size_bytes = 0;
    {
      const test::NoMemory none;
      size_bytes = encode_status_briefly(status, room);
    }
    ASSERT_LE(size_bytes, room.size());
    const Status decoded = decode_status(std::span(room).first(size_bytes));
    EXPECT_EQ(decoded.code(), status.code());
    EXPECT_EQ(decoded.message(), status.message().substr(0, 256));
    EXPECT_EQ(decoded.retryable(), status.retryable());
    EXPECT_EQ(decoded.detail("commit"), is_long ? "unknown" : "");
    EXPECT_EQ(decoded.detail("resource"), is_long ? "" : "memory");
    EXPECT_EQ(decoded.detail("file"), "");
    EXPECT_EQ(decoded.detail("host_exception"), "");
  }
}

TEST(StatusBytes, RefusesBytesThatNoRankWrites) {
  const std::vector<std::byte> good = encode_status(sample());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decode_status(std::span(good).first(size)).code(), StatusCode::kInternal) << size;
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_status(longer).code(), StatusCode::kInternal);
  std::vector<std::byte> unknown = good;
  unknown[0] = std::byte{200};
  EXPECT_EQ(decode_status(unknown).code(), StatusCode::kInternal);
  std::vector<std::byte> success = good;
  success[0] = std::byte{0};
  EXPECT_EQ(decode_status(success).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace shardwright::collective::internal
