// SPDX-License-Identifier: Apache-2.0
//
// Byte objects in the metadata of a file, which has room for nothing but text:
//
//   "shardwright.object:" NAME : "data:" CONTENT_TYPE ";base64," BASE64      (RFC 2397 and 4648)
//
// Any program that opens the file has the bytes by undoing the base64. The key tells such a value
// from data URLs of others (pictures of a model). Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright::format::safetensors {

inline constexpr std::string_view kObjectPrefix = "shardwright.object:";

// The value of an object, which makes three bytes four.
std::string object_text(std::string_view content_type, std::span<const std::byte> bytes);

struct ObjectOfText {
  std::string content_type;
  std::vector<std::byte> bytes;
};
// What object_text made. DATA_LOSS naming file and object for any other text.
Result<ObjectOfText> read_object_text(std::string_view text, std::string_view name,
                                      std::string_view file);

}  // namespace shardwright::format::safetensors
