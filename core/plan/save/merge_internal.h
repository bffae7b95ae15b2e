// SPDX-License-Identifier: Apache-2.0
//
// The stages of merging local plans, each a pure function over flat columns:
//   1 check_ranks       ranks, world sizes, options
//   2 merge_entries     entries of all ranks to groups by name; conflicts
//   3 check_replicas    content digests of replicated groups
//   4 deduplicate       distinct boxes of each group with their holders: the units
//   5 choose_owners     one holder per unit, in listed order by list_units
//   6 native saves: the cover proof, list_writes;
//     descriptions: number_chunks, the cover proof, kept plans
// A group is one entry of the merged catalog: a shared name, or one rank's own under a rank_local
// name. Units are the chunks of the merged catalog and then its objects.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/local_view.h"
#include "core/plan/save/merge_policy.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan::internal {

// One rank's record of a group.
struct Member {
  uint32_t rank = 0;
  uint32_t entry = 0;  // tensor or object in that rank's catalog
};

// Groups in order of first appearance (ranks ascending, then the rank's own order), members by
// ascending rank.
struct Groups {
  std::vector<uint64_t> begins;  // one more than groups, into members
  std::vector<Member> members;
  size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
  std::span<const Member> of(size_t group) const {
    return {members.data() + begins[group], begins[group + 1] - begins[group]};
  }
};

// The same for tensors, by tables instead of ranks: nothing here is proportional to ranks x
// tensors.
class TensorGroups {
 public:
  TensorGroups() = default;
  // by_table: Groups whose members have a table for a rank.
  TensorGroups(Groups by_table, std::span<const LocalView> views, uint32_t table_count);

  size_t size() const { return by_table_.size(); }
  // The member of the lowest rank.
  Member first(size_t group) const;
  // Members by ascending rank. Groups asked for one after the other mostly have the same ranks:
  // what the last call found is used again, and is valid until the next.
  std::span<const Member> of(size_t group);

 private:
  void gather(std::span<const Member> tables);

  Groups by_table_;
  std::vector<uint64_t> rank_begins_;  // per table and one more, into ranks_
  std::vector<uint32_t> ranks_;        // of each table, ascending
  std::vector<Member> members_;        // of the last call
  std::vector<uint32_t> slots_;        // which of its tables each member has
  std::vector<uint32_t> tables_;       // of the last call
};

struct MergedEntries {
  TensorGroups tensors;
  Groups objects;
};

// Where a unit comes from: a candidate for its owner.
struct UnitHolder {
  uint32_t rank = 0;
  uint32_t item = 0;  // chunk in the rank's catalog; objects follow the chunks
};

// The merged catalog before files are known, with the holders of every unit.
struct Deduplicated {
  Catalog catalog;                      // place and position not set
  std::vector<UnitHolder> holders;      // of each unit, ascending rank, then item
  std::vector<uint64_t> holder_begins;  // one more than units
  std::vector<bool> uneven;             // per tensor: holders of a unit list it with other sizes
  size_t unit_count() const { return holder_begins.size() - 1; }
  std::span<const UnitHolder> holders_of(size_t unit) const {
    return {holders.data() + holder_begins[unit], holder_begins[unit + 1] - holder_begins[unit]};
  }
};

Status check_ranks(std::span<const LocalView> locals);

// Entries of some views by name: the rank of a member is the number of its view in the list. One
// group per rank_local entry, all entries of another name in one. INVALID_ARGUMENT naming the ranks
// of two views that contradict each other.
struct NamedGroups {
  Groups tensors;
  Groups objects;
};
Result<NamedGroups> group_entries(std::vector<const LocalView*> with_tensors,
                                  std::vector<const LocalView*> with_objects);
Result<MergedEntries> merge_entries(const LocalViews& locals);
Status check_replicas(std::span<const LocalView> locals, MergedEntries* merged, VerifyReplicas rule,
                      const MergePolicy& policy);
// The replicas of a group's members that have a digest, sorted as check_contents wants them.
struct HeldContent;  // replica_contents_internal.h
void collect_tensor_contents(std::span<const LocalView> locals, std::span<const Member> members,
                             std::vector<HeldContent>* held);
void collect_object_contents(std::span<const LocalView> locals, std::span<const Member> members,
                             std::vector<HeldContent>* held);
// INVALID_ARGUMENT when a rank lists a box twice and the policy does not allow that, or when two
// boxes begin alike and differ in size.
Result<Deduplicated> deduplicate(std::span<const LocalView> locals, MergedEntries* merged,
                                 const MergePolicy& policy);

// The holder that writes, for each unit, as an index into its holders. Sets place of the catalog's
// records to its rank, and sizes (when it knows them) and types of objects to what it holds. Choice::kAll gives the first.
std::vector<uint32_t> choose_owners(std::span<const LocalView> locals, const MergePolicy& policy,
                                    Deduplicated* merged);

// Where each item stands among those that its rank lists. Views the locals until it is made.
class ListedPlaces {
 public:
  explicit ListedPlaces(std::span<const LocalView> locals);
  uint32_t of(const UnitHolder& holder) const {
    return places_.empty() ? holder.item : places_[begins_[holder.rank] + holder.item];
  }

 private:
  std::vector<uint64_t> begins_;
  std::vector<uint32_t> places_;  // empty: all ranks list their items by their numbers
};

// Units in the order in which the host listed them first: by rank, then by the rank's own order.
struct ListedUnits {
  struct Unit {
    uint64_t weight = 0;
    uint32_t unit = 0;
    bool shared = false;  // several ranks hold it
  };
  std::vector<Unit> units;
  std::vector<size_t> begins;  // per rank and one more
  std::span<const Unit> of_rank(size_t rank) const {
    return std::span(units).subspan(begins[rank], begins[rank + 1] - begins[rank]);
  }
};
enum class ListedChoice { kAll, kShared };
ListedUnits list_units(std::span<const LocalView> locals, const Deduplicated& merged,
                       std::span<const uint64_t> weights, ListedChoice choice);
// Whether several ranks hold a unit.
inline bool is_shared(std::span<const UnitHolder> holders) {
  return holders.back().rank != holders.front().rank;
}

// Entry and piece in the State of the rank that writes a chunk or object.
struct Holder {
  uint32_t rank = 0;
  uint32_t entry = 0;
  uint32_t piece = 0;  // kObjectPiece for an object
};

// The chosen holder of each chunk and object.
struct Owners {
  std::vector<Holder> chunks;
  std::vector<Holder> objects;
};
// With the number of the item for the entry: name_items puts entry and piece into the write lists,
// rank by rank, which reads the plans of the ranks in their order.
Owners owners_of(const Deduplicated& merged, std::span<const uint32_t> chosen);
void name_items(std::span<const LocalView> locals, std::vector<WriteList>* lists);

// Number of a chunk that a rank does not write.
inline constexpr uint32_t kNotKept = 0xFFFFFFFF;

// What is stored, and which item of which rank it is.
struct NumberedChunks {
  Catalog catalog;  // place = rank
  Listing listing;
  std::vector<uint64_t> item_begins;  // per rank and one more, into numbers
  std::vector<uint32_t> numbers;      // of each item: chunk in its tensor, 0 for objects, kNotKept
};
NumberedChunks number_chunks(std::span<const LocalView> locals, MergedEntries* groups,
                             Deduplicated merged, std::span<const uint32_t> owners,
                             const MergePolicy& policy);

// The rank's local plan without the items that are not kept. plan is overwritten and keeps its
// capacity.
void make_kept_plan(const LocalView& view, std::span<const uint32_t> numbers, LocalSavePlan* plan);

// Fills the lists, of which there is one per rank: items in the order of the catalog. Empty objects
// have items of no bytes.
void list_writes(const Owners& owners, GlobalSavePlan* plan);

}  // namespace shardwright::plan::internal
