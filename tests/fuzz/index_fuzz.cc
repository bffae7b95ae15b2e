// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the index, the trailer and the header of a rank file. The index has no digest of its
// own, so mutations reach its verifier; prefix and identifier are repaired for a second look. What
// decodes must encode to the same again.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"
#include "core/integrity/digest.h"

namespace {

using namespace shardwright::format::native;  // NOLINT: a fuzz target is one file

void check_index(std::span<const std::byte> bytes) {
  const auto index = decode_index(bytes);
  if (!index.ok()) return;
  const auto encoded = encode_index(*index);
  if (!encoded.ok()) __builtin_trap();
  const auto again = decode_index(*encoded);
  if (!again.ok() || again->block_digests != index->block_digests) __builtin_trap();
}

// The trailer with a magic number, a version and a digest that hold.
void check_trailer(std::span<const std::byte> bytes) {
  std::vector<std::byte> trailer(kTrailerBytes);
  std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), kTrailerBytes), trailer.begin());
  std::memcpy(trailer.data(), "SHWT\r\n\x1a\n", 8);
  std::memcpy(trailer.data() + 8, &kFormatMajor, 4);
  std::memcpy(trailer.data() + 12, &kFormatMinor, 4);
  const auto digest =
      shardwright::integrity::xxh3_128(std::span(trailer).first(kTrailerBytes - 16));
  std::copy(digest.begin(), digest.end(), trailer.end() - 16);
  const auto decoded = decode_trailer(trailer);
  if (decoded.ok() && encode_trailer(*decoded) != trailer) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check_index(bytes);
  if (size >= 12) {
    std::vector<std::byte> repaired(bytes.begin(), bytes.end());
    const auto length = static_cast<uint32_t>(size - 4);
    std::memcpy(repaired.data(), &length, sizeof(length));
    std::memcpy(repaired.data() + 8, "SHWI", 4);
    check_index(repaired);
  }
  static_cast<void>(decode_trailer(bytes));
  static_cast<void>(check_file_header(bytes, "00112233445566778899aabbccddeeff", 0));
  check_trailer(bytes);
  return 0;
}
