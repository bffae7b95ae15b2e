// SPDX-License-Identifier: Apache-2.0
//
// The parts of a rank file around the extents: header, index (SHWI) and trailer. The index makes
// each file self-describing: it repeats the names, shapes and boxes of what the file holds, with
// one digest per 1 MiB block. Pure functions; damage is DATA_LOSS naming what differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/integrity/digest.h"
#include "core/plan/catalog.h"

namespace shardwright::format::native {

struct RankIndex {
  std::string generation;
  int32_t rank = 0;
  int32_t world_size = 1;
  bool digests = true;
  plan::Catalog catalog;            // only this file's chunks and objects, see index_catalog
  std::vector<uint64_t> positions;  // of chunks in catalog order, then of objects
  std::vector<integrity::Digest128> block_digests;  // in the same order
};

// Bytes of a chunk or object, and where they begin in the file. Items are numbered chunks first.
struct StoredItem {
  uint32_t item = 0;
  uint64_t position = 0;
  uint64_t size_bytes = 0;
};
// What the index names, by position; of equal positions those without bytes first.
std::vector<StoredItem> items_by_position(const RankIndex& index);

struct Trailer {
  std::string generation;
  int32_t rank = 0;
  int32_t world_size = 1;
  uint64_t index_position = 0;
  uint64_t index_bytes = 0;
  integrity::Digest128 index_digest{};
  uint64_t file_bytes = 0;
};

std::vector<std::byte> encode_file_header(std::string_view generation, int32_t rank,
                                          int32_t world_size);  // 4096 bytes
Status check_file_header(std::span<const std::byte> bytes, std::string_view generation,
                         int32_t rank);

Result<std::vector<std::byte>> encode_index(const RankIndex& index);
Result<RankIndex> decode_index(std::span<const std::byte> bytes);

std::vector<std::byte> encode_trailer(const Trailer& trailer);  // kTrailerBytes
Result<Trailer> decode_trailer(std::span<const std::byte> bytes);

// The catalog of a file's index: tensors, their chunks and objects as they come, which is the order
// of the merged catalog; place is 0. So a rank that builds it alone from its State and WriteList
// and the coordinator that cuts it out of the merged catalog get the same bytes.
struct StoredChunk {
  plan::CatalogBuilder::Tensor
      tensor;  // equal for all chunks of one (name, rank), which come together
  Box box;
};
struct StoredObject {
  plan::ObjectRecord record;  // kind, rank, size_bytes; texts as below
  std::string_view name;
  std::string_view path;
  std::string_view content_type;
};
// INVALID_ARGUMENT as CatalogBuilder. Views are read during the call only.
Result<plan::Catalog> index_catalog(std::span<const StoredChunk> chunks,
                                    std::span<const StoredObject> objects);

// The part of a merged catalog that lies in the file of a rank, as its index has it.
Result<plan::Catalog> file_catalog(const plan::Catalog& merged, uint32_t rank);

}  // namespace shardwright::format::native
