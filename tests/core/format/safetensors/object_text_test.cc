// SPDX-License-Identifier: Apache-2.0
//
// Byte objects as text of metadata, there and back.
#include "core/format/safetensors/object_text.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/expect_failure.h"

namespace shardwright::format::safetensors {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(ObjectText, IsADataUrl) {
  EXPECT_EQ(object_text("application/octet-stream", bytes_of("\xFF\xFE")),
            "data:application/octet-stream;base64,//4=");
  EXPECT_EQ(object_text("", {}), "data:;base64,");
}

TEST(ObjectText, ComesBackWhateverItsContentType) {
  for (const char* type : {"a/b", "", "text/plain; charset=x", "a;base64,b", "data:"}) {
    for (const std::string_view bytes : {std::string_view(), std::string_view("\0\xFFx", 3)}) {
      const auto object = read_object_text(object_text(type, bytes_of(bytes)), "o", "f");
      ASSERT_TRUE(object.ok()) << object.status().to_string();
      EXPECT_EQ(object->content_type, type);
      EXPECT_TRUE(std::ranges::equal(object->bytes, bytes_of(bytes)));
    }
  }
}

TEST(ObjectText, OtherTextIsDamageOfTheFile) {
  for (const char* text : {"", "data:", "data:a/b;base64", "data:a/b,eA==", "a/b;base64,eA==",
                           "data:a/b;base64,eA=", "data:a/b;base64,e===", ";base64,eA=="}) {
    const Status status = read_object_text(text, "state", "m.safetensors").status();
    EXPECT_FAILURE(status, StatusCode::kDataLoss, "'state'", "m.safetensors");
    EXPECT_EQ(status.detail("object"), "state");
    EXPECT_EQ(status.detail("file"), "m.safetensors");
  }
}

}  // namespace
}  // namespace shardwright::format::safetensors
