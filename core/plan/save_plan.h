// SPDX-License-Identifier: Apache-2.0
//
// The plans of a save: what all ranks store (GlobalSavePlan) and what one of them writes
// (WriteList). What a rank describes is a LocalPlan. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/plan/catalog.h"
#include "core/plan/listing.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {

// One chunk or object that a rank writes.
struct WriteItem {
  uint32_t entry = 0;  // index of the tensor or object in the rank's State
  uint32_t piece = 0;  // piece of the tensor, kObjectPiece for an object
  uint64_t size_bytes = 0;
  friend bool operator==(const WriteItem&, const WriteItem&) = default;
};
inline constexpr uint32_t kObjectPiece = 0xFFFFFFFF;
inline uint64_t payload_bytes(std::span<const WriteItem> items) {
  uint64_t bytes = 0;
  for (const WriteItem& item : items) bytes += item.size_bytes;
  return bytes;
}

// What one rank writes, in the order of the catalog: chunks, then objects. Where it goes is the
// format's business. An empty object has an item of 0 bytes; a box without elements has none.
struct WriteList {
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string generation;   // 32 lower-case hex digits
  Digest128 plan_digest{};  // digest of the global catalog: execute and commit check it
  std::vector<WriteItem> items;

  uint64_t payload_bytes() const { return plan::payload_bytes(items); }
};

// Which items of what it described each rank writes: one bit per tensor (of those that are whole or
// have a layout), object and box. The items are the rank's own affair (save/write_items.h); where
// they go is the format's business. What is cut by a rule is written by the ranks at one place
// among the holders of their columns, so ranks of one description at equal places of equal maps
// share their bits; what follows no rule is said rank by rank.
struct KeptItems {
  static constexpr uint32_t kAsDescribed = 0xFFFFFFFF;

  // Of the ranks of one description.
  struct Placed {
    uint32_t map = 0;                             // into places
    std::vector<std::vector<uint64_t>> of_place;  // bits for each place; empty: none
  };
  std::vector<std::vector<Placed>> of_description;
  std::vector<uint32_t> description_of_rank;
  std::vector<std::vector<uint32_t>> places;  // by map and rank; empty: the map places nothing
  std::vector<uint64_t> bit_counts;           // of each rank
  std::vector<uint64_t> begins;               // per rank and one more, into more
  std::vector<uint32_t> more;                 // further bits of each rank
  std::vector<uint32_t> order_of_rank;        // number of the order, or kAsDescribed
  std::vector<std::vector<uint32_t>> orders;  // distinct ones

  // With zeros up to whole words.
  std::vector<uint64_t> bits(size_t rank) const;
  std::span<const uint32_t> order(size_t rank) const {
    const uint32_t number = order_of_rank[rank];
    return number == kAsDescribed ? std::span<const uint32_t>() : orders[number];
  }
};

// What all ranks write.
struct RankWrites {
  std::vector<uint64_t> bytes;        // of chunks and objects of each rank
  std::vector<uint32_t> item_counts;  // of each rank
  KeptItems kept;
};

struct GlobalSavePlan {
  std::string generation;  // set by who commits; empty: descriptions that were merged
  Digest128 plan_digest{};
  Catalog catalog;    // every stored chunk and object once; place = rank that writes it
  RankWrites writes;  // empty in a plan that was decoded, and of merged descriptions
  Listing listing;    // of merged descriptions; no order, nothing secondary

  size_t rank_count() const { return writes.bytes.size(); }
};

}  // namespace shardwright::plan
