// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as manifest.shw. They are decoded as they are, and again with prefix, identifier and
// digest repaired, so that mutations reach the verifier and the meaning behind it. What decodes
// must encode and decode to the same bytes.
#include <cstring>
#include <vector>

#include "core/format/native/manifest.h"
#include "core/integrity/digest.h"

namespace {

using shardwright::format::native::decode_manifest;
using shardwright::format::native::encode_manifest;

constexpr size_t kDigestBytes = 16;

void check_round_trip(std::span<const std::byte> bytes) {
  const auto manifest = decode_manifest(bytes);
  if (!manifest.ok()) return;
  const auto encoded = encode_manifest(*manifest);
  if (!encoded.ok()) __builtin_trap();
  const auto again = decode_manifest(*encoded);
  if (!again.ok()) __builtin_trap();
  const auto encoded_again = encode_manifest(*again);
  if (!encoded_again.ok() || *encoded_again != *encoded) __builtin_trap();
}

std::vector<std::byte> repaired(std::span<const std::byte> bytes) {
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  const auto length = static_cast<uint32_t>(result.size() - 4);
  std::memcpy(result.data(), &length, sizeof(length));
  std::memcpy(result.data() + 8, "SHWM", 4);
  const auto digest = shardwright::integrity::xxh3_128(result);
  result.insert(result.end(), digest.begin(), digest.end());
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check_round_trip(bytes);
  if (size >= 12 + kDigestBytes) check_round_trip(repaired(bytes.first(size - kDigestBytes)));
  return 0;
}
