// SPDX-License-Identifier: Apache-2.0
//
// The plans of a save: what a rank describes (LocalSavePlan), what all ranks store (GlobalSavePlan)
// and what one of them writes (WriteList). Values; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/digest.h"

namespace shardwright::plan {

// What a catalog cannot say about the entries that a host described: their order and its own bytes.
struct Listing {
  std::vector<uint32_t> object_begins;  // per object: tensors listed before it, ascending; empty =
                                        // objects come last
  // Boxes in the order in which the host lists them, numbered through all entries in their order,
  // where an object is one box; empty = as they stand.
  std::vector<uint32_t> order;
  std::vector<uint8_t> secondary;        // per chunk, 1 = only wanted by others; empty = 0
  std::vector<char> attributes;          // the host's own bytes of each tensor, then of each object
  std::vector<uint64_t> attribute_ends;  // where each ends, one per entry; empty = none
};

// What rank describes to the coordinator. Chunk.place is the piece number in the entry.
struct LocalSavePlan {
  int32_t rank = 0;
  int32_t world_size = 1;
  Digest128 options_digest{};  // equal on all ranks or the save is refused
  std::string options_text;    // "option=value" lines, to name the option that differs
  Catalog catalog;             // tensors and objects in state order; empty boxes are not listed
  std::vector<Digest128>
      tensor_digests;  // one per tensor or empty: content digests for verify_replicas;
  std::vector<Digest128> object_digests;  // all-zero = not compared
  Listing listing;
  bool kept = false;  // after a merge: what this rank writes, Chunk.position = number in the tensor
};

// Which of how many ranks.
struct RankPosition {
  int32_t rank = 0;
  int32_t world_size = 1;
};

// One chunk or object that a rank writes.
struct WriteItem {
  uint32_t entry = 0;     // index of the tensor or object in the rank's State
  uint32_t piece = 0;     // piece of the tensor, kObjectPiece for an object
  uint64_t position = 0;  // byte offset in the rank's file
  uint64_t size_bytes = 0;
};
inline constexpr uint32_t kObjectPiece = 0xFFFFFFFF;

// What one rank writes: items in ascending position, none before kExtentAlignmentBytes. The file of
// rank r is rank-%05d.shw. Chunks of kSlabChunkLimitBytes and more come first, each at a multiple
// of kExtentAlignmentBytes; then smaller ones, packed at multiples of kSlabAlignmentBytes; then
// objects. Each part is in catalog order, so a whole tensor is read in ascending positions. An
// empty object has an item of 0 bytes; a box without elements has none.
struct WriteList {
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string generation;   // 32 lower-case hex digits
  Digest128 plan_digest{};  // digest of the global catalog: execute and commit check it
  std::vector<WriteItem> items;
  uint64_t data_bytes = 0;  // end of the last item; 0 without items
};

struct GlobalSavePlan {
  std::string generation;  // empty: descriptions that were merged, place = rank that writes, no
                           // digest, no files, no positions
  Digest128 plan_digest{};
  Catalog catalog;  // every stored chunk and object once; place = file number
  std::vector<int32_t>
      file_ranks;  // rank of each file, ascending; ranks that write nothing have no file
  std::vector<WriteList> lists;  // one per rank
  Listing listing;               // of merged descriptions; no order, nothing secondary
};

}  // namespace shardwright::plan
