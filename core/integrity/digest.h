// SPDX-License-Identifier: Apache-2.0
//
// Digests of stored bytes and of tensors.
//  - payload digest: XXH3-128 of bytes, canonical big-endian form (never the native integer).
//  - block digest: what files store per 1 MiB block of a chunk: XXH3-128 over {payload digest,
//  chunk key, block number,
//    block length}; the chunk key is XXH3-128 over {generation, name, dtype, shape, box}. A block
//    that is misplaced, stale or of another tensor fails although its bytes are whole.
//  - tensor digest: of the row-major little-endian bytes of a whole tensor, whatever layout or
//  format holds it.
// Pure functions and one streaming class, thread-compatible. XXH3 finds accidents, not attackers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright::integrity {

using shardwright::Digest128;

Digest128 xxh3_128(std::span<const std::byte> bytes);
// Copies source to target and returns the digest of the bytes, in cache-sized steps. Same length.
Digest128 copy_and_digest(std::span<const std::byte> source, std::span<std::byte> target);

struct ChunkIdentity {
  std::string_view generation;  // 32 hex digits
  std::string_view name;        // tensor or object name
  std::string_view content;     // dtype name for tensors, content type for objects
  std::span<const int64_t> shape;
  const Box* box = nullptr;  // null for objects
  int32_t rank = -1;         // owner of a rank_local entry
};
Digest128 chunk_key(const ChunkIdentity& identity);
Digest128 block_digest(const Digest128& payload, const Digest128& key, uint64_t block_number,
                       uint64_t block_bytes);

uint64_t block_count(uint64_t chunk_bytes);  // ceil(chunk_bytes / kDigestBlockBytes), 0 for 0

enum class TensorDigestAlgorithm : int32_t { kXxh3 = 0, kSha256 = 1 };
std::string_view algorithm_name(TensorDigestAlgorithm algorithm);  // "xxh3", "sha256"

// Feeds bytes in order; finish gives 16 or 32 bytes.
class TensorDigester {
 public:
  explicit TensorDigester(TensorDigestAlgorithm algorithm);
  ~TensorDigester();
  void update(std::span<const std::byte> bytes);
  std::vector<std::byte> finish();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace shardwright::integrity
