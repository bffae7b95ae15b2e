// SPDX-License-Identifier: Apache-2.0
//
// Manifest (SHWM): the file whose rename is the commit. Names the generation, its files with size
// and index digest, and which of them has each chunk and object; where in it stands in its index.
// Encode and decode are pure; decode proves the catalog and the covers, so a manifest that decodes
// is sound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/integrity/digest.h"
#include "core/plan/catalog.h"

namespace shardwright::format::native {

struct ManifestFile {
  int32_t rank = 0;
  uint64_t size_bytes = 0;
  uint64_t index_position = 0;
  uint64_t index_bytes = 0;
  integrity::Digest128 index_digest{};
};

struct Manifest {
  std::string generation;
  std::vector<std::string>
      kept_generations;  // earlier ones that keep_generations still names, newest first
  int32_t world_size = 1;
  int64_t created_unix_ns = 0;
  std::string writer;  // "shardwright 0.1.0"
  bool digests = true;
  std::map<std::string, std::string> metadata;
  std::vector<ManifestFile> files;
  plan::Catalog catalog;  // place = rank whose file has it
};

// Bytes of manifest.shw, its digest included.
Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest);
// DATA_LOSS for damage (detail offset where known), UNIMPLEMENTED for a newer version (detail
// needed_version), INVALID_ARGUMENT when it is no manifest at all.
// Proof::kOfAnother: another rank of this call has decoded the same bytes with all proofs.
enum class Proof { kWhole, kOfAnother };
Result<Manifest> decode_manifest(std::span<const std::byte> bytes, Proof proof = Proof::kWhole);

// What the ends of a large file say before memory is taken for the rest: identifier, length prefix,
// and that a digest was written. Failures as decode_manifest.
inline constexpr uint64_t kManifestHeadBytes = 12;
inline constexpr uint64_t kManifestTailBytes = 16;
Status check_manifest_ends(std::span<const std::byte> head, std::span<const std::byte> tail,
                           uint64_t size_bytes);

}  // namespace shardwright::format::native
