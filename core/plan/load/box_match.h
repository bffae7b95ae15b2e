// SPDX-License-Identifier: Apache-2.0
//
// Intersects boxes that somebody wants with the stored chunks of one tensor and says, for each pair
// with a common part, where that part lies in both. The rules of two originals are values here:
// the order of the pairs and what counts as a common part. Nothing is proved: whoever loads data
// checks what is filled (make_load_plan, check_load_plan). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/load/catalog_index.h"

namespace shardwright::plan {

enum class MatchOrder : int32_t {
  // Wanted boxes as listed, for each the chunks in their order (HyperParallel,
  // create_read_items_for_chunk_list; torch before 2.15).
  kWantedOuter = 0,
  // torch 2.15, create_read_items_for_chunk_list: the sweep dimension is the one with the largest
  // end over wanted and stored boxes, the first of equals; wanted boxes ascending by their begin in
  // it (stable); for each the chunks ascending by (end in it, chunk).
  kSweep = 1
};

// What is a match when a box has no elements. Boxes of no dimensions always match.
enum class EmptyMatch : int32_t {
  kNone = 0,  // only common parts with elements (HyperParallel)
  // Begins lie before the other's ends in every dimension, so that an empty box strictly inside
  // another gives a match of length 0 and one at its edge gives none (torch).
  kStrictlyInside = 1
};

// Equal boxes among the stored chunks.
enum class CopyMatch : int32_t {
  kAll = 0,   // each gives a match
  kFirst = 1  // only the one with the lowest number
};

struct BoxMatchRules {
  MatchOrder order = MatchOrder::kWantedOuter;
  EmptyMatch empty = EmptyMatch::kNone;
  CopyMatch copies = CopyMatch::kAll;
};

// One row per match; the last three columns hold as many values per match as the tensor has
// dimensions.
struct BoxMatches {
  std::vector<uint64_t> wanted;         // number of the wanted box
  std::vector<uint64_t> chunks;         // number of the chunk within its tensor
  std::vector<int64_t> wanted_offsets;  // of the common part, from the begin of the wanted box
  std::vector<int64_t> stored_offsets;  // of the common part, from the begin of the chunk
  std::vector<int64_t> lengths;
  // Of the last call: matches of its wanted box i are rows begins[i] to ends[i], one run in either
  // order.
  std::vector<uint64_t> begins;
  std::vector<uint64_t> ends;
};

// Wanted boxes have as many dimensions as the tensor and were checked to lie inside it. O(n log n +
// matches) for n chunks and wanted boxes in all. Rows are added to those of earlier calls;
// first_number: of the first wanted box in them.
void match_boxes(const CatalogIndex& stored, size_t tensor, std::span<const Box> wanted,
                 const BoxMatchRules& rules, BoxMatches* out, uint64_t first_number = 0);

}  // namespace shardwright::plan
