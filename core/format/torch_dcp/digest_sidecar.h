// SPDX-License-Identifier: Apache-2.0
//
// The digest sidecar: one file beside .metadata that other readers take no notice of,
// .shardwright.GENERATION.digests. It is of exactly one index, whose size and digest it says, so
// one that is stale or of another directory is not taken for an index that it was not made for. It
// has where payloads begin in their items, so that these need not be looked at, and a digest of
// each block of 1 MiB.
//
//   sidecar = header, body
//   header  = "SHWDGST1", size of body, digest of body, size of index, digest of index,
//             generation (32 hex digits), digest of the header up to here, 8 bytes of zero
//   body    = created (ns of Unix time), count of chunks, of objects, of digests,
//             chunks: {first digest, payload offset}..., objects: {first digest, 0}...,
//             digests (16 bytes each)
//
// Numbers have 8 bytes, little-endian; chunks and objects stand in the order of the index, tensor
// by tensor. A first digest of all ones: the item has none. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"

namespace shardwright::format::torch_dcp {

inline constexpr uint64_t kSidecarHeaderBytes = 112;
inline constexpr uint64_t kMaxSidecarBytes = uint64_t{8} << 30;

struct SidecarItem {
  static constexpr uint64_t kNoDigest = UINT64_MAX;
  uint64_t first_digest = kNoDigest;  // number of its first block's
  uint64_t payload_offset = 0;        // in the item; 0 = not known
};

struct DigestSidecar {
  std::string generation;
  int64_t created_unix_ns = 0;
  std::vector<SidecarItem> chunks;   // in the order of DcpIndex::places
  std::vector<SidecarItem> objects;  // in the order of DcpIndex::objects
  std::vector<Digest128> digests;
};

std::vector<std::byte> encode_sidecar(const DigestSidecar& sidecar,
                                      std::span<const std::byte> index);

struct SidecarHeader {
  std::string generation;
  uint64_t body_bytes = 0;
  Digest128 body_digest{};
  uint64_t index_bytes = 0;
  Digest128 index_digest{};
};
// nullopt for bytes that are no header, or damaged.
std::optional<SidecarHeader> decode_sidecar_header(std::span<const std::byte> header);
// DATA_LOSS for a body that is not the header's.
Result<DigestSidecar> decode_sidecar(const SidecarHeader& header, std::span<const std::byte> body);

}  // namespace shardwright::format::torch_dcp
