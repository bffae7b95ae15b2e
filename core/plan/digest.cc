// SPDX-License-Identifier: Apache-2.0
//
// XXH3-128 in canonical byte order.
#include "core/plan/digest.h"

#include <cstring>

#include <xxhash.h>

namespace shardwright::plan {

Digest128 content_digest(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Digest128 digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest));
  std::memcpy(digest.data(), canonical.digest, sizeof(digest));
  return digest;
}

Digest128 options_text_digest(std::string_view text) {
  return content_digest(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace shardwright::plan
