// SPDX-License-Identifier: Apache-2.0
//
// The stages of merging what all ranks hold, each a pure function over flat columns:
//   1 merge_entries     entries of all descriptions to groups by name; conflicts
//   2 check_replicas    content digests of replicated groups
//   3 deduplicate       each entry of the merged catalog: a tensor that is cut by a rule is a grid
//                       whose columns have holders, any other is its distinct boxes with theirs
//   4 choose_owners     who writes what several hold
//   5 native saves: list_writes, finish_grids; hosts: number_chunks; then the proof
// A group is one entry of the merged catalog that is not rank_local. Items are the boxes of the
// merged catalog and then its objects.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "core/plan/rank_plans.h"
#include "core/plan/save/holder_map_internal.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/save/merge_policy.h"
#include "core/plan/save/shard_grid_internal.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan::internal {

// ---- groups ----

// A description's record of a group.
struct Member {
  uint32_t description = 0;
  uint32_t entry = 0;  // tensor or object of the description
};

inline constexpr uint32_t kOwnEntry = 0xFFFFFFFF;  // of a rank_local entry, which has no group

// Groups in the order in which descriptions list them first, members by ascending description.
struct EntryGroups {
  std::vector<uint64_t> begins;  // one more than groups, into members
  std::vector<Member> members;
  std::vector<std::vector<uint32_t>> group_of;  // description, entry: its group or kOwnEntry
  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
  std::span<const Member> of(size_t group) const {
    return {members.data() + begins[group], begins[group + 1] - begins[group]};
  }
};
struct MergedEntries {
  EntryGroups tensors;
  EntryGroups objects;
};
// INVALID_ARGUMENT naming the first ranks of two descriptions that contradict each other.
Result<MergedEntries> merge_entries(const RankPlans& ranks);

// An entry of the merged catalog: a group, or one rank's own.
struct CatalogEntry {
  uint32_t group = kOwnEntry;
  uint32_t rank = 0;   // that lists it first
  uint32_t entry = 0;  // of that rank
};
// By the first rank that lists the entry, then that rank's order.
std::vector<CatalogEntry> catalog_order(const RankPlans& ranks, const EntryGroups& groups);

// One rank's record of a group.
struct RankMember {
  uint32_t rank = 0;
  uint32_t description = 0;
  uint32_t entry = 0;
};

// The ranks of groups. Groups asked for one after the other mostly have the same descriptions: what
// the last call found is used again.
class RankMembers {
 public:
  explicit RankMembers(const RankPlans& ranks);
  // By ascending ranks; valid until the next call.
  std::span<const RankMember> of(std::span<const Member> members);
  // Ranks of a description, ascending.
  std::span<const uint32_t> ranks_of(uint32_t description) const {
    return {ranks_.data() + begins_[description], begins_[description + 1] - begins_[description]};
  }

 private:
  void gather(std::span<const Member> members);

  std::vector<uint64_t> begins_;  // per description and one more, into ranks_
  std::vector<uint32_t> ranks_;
  std::vector<RankMember> found_;       // of the last call
  std::vector<uint32_t> slots_;         // which of its members each has
  std::vector<uint32_t> descriptions_;  // of the last call
};

// ---- replicas ----

Status check_replicas(const RankPlans& ranks, const MergedEntries& merged, VerifyReplicas rule,
                      const MergePolicy& policy);

// ---- tensors and their holders ----

// Where a box comes from: a candidate for its owner.
struct ItemHolder {
  uint32_t rank = 0;
  uint32_t item = 0;  // of the rank, see rank_plans.h
};

inline constexpr uint32_t kByBoxes = 0xFFFFFFFF;

// A tensor of the merged catalog.
struct TensorSource {
  CatalogEntry entry;
  uint32_t grid = kByBoxes;  // of a tensor that is cut by a rule: into Merged::grids
  uint32_t map = 0;          // into Merged::maps
  uint32_t replicas = 0;     // holders of each column that holds elements
  uint32_t replica = 0;      // which of them writes
  bool is_ruled() const { return grid != kByBoxes; }
};

struct ObjectSource {
  CatalogEntry entry;
  uint32_t map = kByBoxes;  // of one column; none for a rank's own
};

struct Merged {
  // Tensors that are ruled have no splits and ranks yet, boxes and objects no place.
  Catalog catalog;
  std::vector<TensorSource> tensors;
  std::vector<ObjectSource> objects;
  std::vector<ItemHolder> holders;      // of each box, ascending rank, then item
  std::vector<uint64_t> holder_begins;  // one more than boxes
  std::vector<uint32_t> chosen;         // of each box and object: which of its holders writes
  std::vector<bool> uneven;             // per tensor: holders of a box list it with other sizes
  std::vector<ShardGrid> grids;
  std::vector<HolderMap> maps;

  size_t box_count() const { return catalog.boxes.size(); }
  size_t stored_count() const { return box_count() + objects.size(); }
  std::span<const ItemHolder> holders_of(size_t box) const {
    return {holders.data() + holder_begins[box], holder_begins[box + 1] - holder_begins[box]};
  }
  const ItemHolder& owner_of(size_t box) const { return holders[holder_begins[box] + chosen[box]]; }
  // Stored items of an entry, which is a tensor that follows no rule or, behind all tensors, an
  // object.
  auto stored_of(size_t entry) const {
    const bool is_object = entry >= tensors.size();
    const size_t first =
        is_object ? box_count() + entry - tensors.size() : catalog.tensors[entry].box_begin;
    return std::views::iota(first, first + (is_object ? 1 : catalog.tensors[entry].chunk_count));
  }
  // Ranks that hold an object, ascending.
  std::span<const uint32_t> ranks_of_object(size_t object) const {
    const ObjectSource& source = objects[object];
    return source.map == kByBoxes ? std::span(&source.entry.rank, 1) : maps[source.map].of(0);
  }
  uint32_t owner_of_object(size_t object) const {
    return ranks_of_object(object)[chosen[box_count() + object]];
  }
  // Of a column of a ruled tensor that holds elements.
  uint32_t owner_of_column(const TensorSource& tensor, uint32_t column) const {
    return maps[tensor.map].of(column)[tensor.replica];
  }
  uint64_t bits(size_t tensor) const {
    return static_cast<uint64_t>(dtype_bits(catalog.tensors[tensor].dtype));
  }
};

// INVALID_ARGUMENT when a rank lists a box twice and the policy does not allow that, or when two
// boxes begin alike and differ in size.
Result<Merged> deduplicate(const RankPlans& ranks, const MergedEntries& entries,
                           const MergePolicy& policy);

// What number the entry has with a rank that has it.
uint32_t entry_of(const EntryGroups& groups, const RankPlans& ranks, const CatalogEntry& entry,
                  uint32_t rank);

// ---- owners ----

// Sets chosen and replicas, places of boxes and objects, and of objects size (where it is known)
// and type to what the owner holds. Choice::kAll gives the first.
void choose_owners(const RankPlans& ranks, const MergedEntries& entries, const MergePolicy& policy,
                   Merged* merged);

// Adds the columns of ruled tensors, or of those of which nobody has a replica, to what the ranks
// that write them bear: bytes and, where it is asked for, items.
enum class Columns { kAll, kSingle };
void add_columns(const Merged& merged, Columns which, std::span<uint64_t> bytes,
                 std::span<uint32_t> items);

// Where the items of each rank begin when those of all stand behind one another; and their count.
std::vector<uint64_t> item_begins(const RankPlans& ranks);

// Where each item stands among those that its rank lists. Views the plans until it is made.
class ListedPlaces {
 public:
  explicit ListedPlaces(const RankPlans& ranks);
  uint32_t of(const ItemHolder& holder) const {
    return places_.empty() ? holder.item : places_[begins_[holder.rank] + holder.item];
  }
  // Of the first that the lowest rank among the holders lists.
  uint32_t first_of(std::span<const ItemHolder> holders) const;

 private:
  std::vector<uint64_t> begins_;
  std::vector<uint32_t> places_;  // empty: all ranks list their items by their numbers
};

// The holders of a stored item as items of their ranks: those of an object are made.
class StoredHolders {
 public:
  StoredHolders(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged)
      : ranks_(ranks), entries_(entries), merged_(merged) {}
  // Valid until the next call.
  std::span<const ItemHolder> of(size_t stored);

 private:
  const RankPlans& ranks_;
  const MergedEntries& entries_;
  const Merged& merged_;
  std::vector<ItemHolder> made_;
};

// Whether several ranks hold a stored item.
inline bool is_shared(std::span<const ItemHolder> holders) {
  return holders.back().rank != holders.front().rank;
}

// ---- results ----

// Gives ruled tensors their splits and ranks; then finds grids among boxes.
void finish_grids(Merged* merged);

// What each rank writes, after choose_owners.
RankWrites list_writes(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged);

// What is stored, and which item of which rank it is.
struct NumberedChunks {
  Catalog catalog;  // place = rank
  Listing listing;
  std::vector<uint64_t> item_begins;  // per rank and one more, into numbers
  std::vector<uint32_t> numbers;      // of each item: chunk in its tensor, 0 for objects, kNotKept
};
NumberedChunks number_chunks(const RankPlans& ranks, const MergedEntries& entries, Merged merged,
                             const MergePolicy& policy);

}  // namespace shardwright::plan::internal
