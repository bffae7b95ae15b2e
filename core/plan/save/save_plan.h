// SPDX-License-Identifier: Apache-2.0
//
// Save planning as three pure steps:
//   1. make_local_plan: a rank's state as a catalog (with digests of what replicas must agree on);
//   2. make_global_plan: merge all local plans, find conflicts, drop replicas, choose owners, lay
//   out files, prove cover;
//   3. finish: each rank takes its own WriteList.
// No I/O, no threads, no transport. Equal inputs give equal bytes. O(n log n) in items.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/plan_options.h"
#include "core/state/state.h"

namespace shardwright::plan {

using Digest128 = std::array<std::byte, 16>;

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

// Content digests that replicas are compared by. Of a replicated tensor: its whole in row-major
// order, however it is cut here. Of a sharded one: its boxes in the order of their offsets, for
// other ranks may hold the same boxes.
struct ReplicaDigests {
  std::vector<Digest128> tensors;  // one per State tensor, all-zero = skip
  std::vector<Digest128> objects;
};

// Which State entries need a content digest under these rules (kAuto: objects, and tensors that are
// whole on this rank up to kReplicaDigestLimitBytes; kAll: every entry that is not rank_local).
struct DigestNeeds {
  struct Tensor {
    size_t index = 0;
    bool by_boxes = false;  // it is sharded
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };
  std::vector<Tensor> tensors;
  std::vector<size_t> objects;
};
DigestNeeds replica_digest_needs(const State& state, const SaveRules& rules);

struct RankPosition {
  int32_t rank = 0;
  int32_t world_size = 1;
};
Result<LocalSavePlan> make_local_plan(const State& state, const SaveRules& rules,
                                      RankPosition position, const ReplicaDigests& digests);

// Rules as "option=value" lines; make_local_plan puts them into options_text. A caller with further
// options that ranks must share appends lines and sets options_digest again.
std::string save_rules_text(const SaveRules& rules);
Digest128 options_text_digest(std::string_view text);

// Digest of what the plan describes: equal for equal entries in equal order on equal ranks, whatever
// their content digests are. RESOURCE_EXHAUSTED when the plan fits no buffer.
Result<Digest128> description_digest(const LocalSavePlan& plan);
// XXH3-128 in canonical byte order, the digest that replicas are compared by.
Digest128 content_digest(std::span<const std::byte> bytes);

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

// locals[i] is rank i's plan. Owners by balanced: chunks with one holder count first, the others
// go, largest first, to the holder with the fewest bytes so far, ties to the lowest rank; then
// objects likewise. Other rules and presets: merge_policy.h. Failures (INVALID_ARGUMENT naming ranks, boxes and values): missing or doubled
// ranks, options that differ, dtype, shape, kind or path that differ, replicas whose digests differ
// (with how to declare rank_local), overlapping chunks, holes.
Result<GlobalSavePlan> make_global_plan(std::span<const LocalSavePlan> locals,
                                        const SaveRules& rules, std::string generation);
// The same from plans that stay where they are (local_view.h, wire/open_locals.h).
struct LocalViews;
Result<GlobalSavePlan> make_global_plan(const LocalViews& locals, const SaveRules& rules,
                                        std::string generation);

// Whether the list can be written from this state: its own rank and world size, each item an entry
// and a piece of the state with exactly its bytes, every item once. FAILED_PRECONDITION naming what
// differs.
Status check_write_list(const WriteList& list, const State& state, RankPosition position);

}  // namespace shardwright::plan
