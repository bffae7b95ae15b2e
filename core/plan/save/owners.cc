// SPDX-License-Identifier: Apache-2.0
//
// Who writes what several ranks hold. Looking at every holder of every unit is linear in what was
// listed, so no heap is needed; sorts make it O(n log n).
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/huge_pages.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/greedy_rule_internal.h"
#include "core/plan/save/lockstep_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/set_order_internal.h"

namespace shardwright::plan::internal {
namespace {

using Choice = MergePolicy::Choice;
using Weight = MergePolicy::Weight;

class OwnerChoice {
 public:
  OwnerChoice(std::span<const LocalView> locals, const MergePolicy& policy,
              const Deduplicated& merged)
      : locals_(locals),
        policy_(policy),
        merged_(merged),
        chosen_(merged.unit_count(), 0),
        loads_(locals.size(), 0) {}

  std::vector<uint32_t> run() {
    if (policy_.choice == Choice::kLowestRank) pass_empty_boxes();
    if (policy_.choice == Choice::kLowestRank || policy_.choice == Choice::kAll)
      return std::move(chosen_);
    weigh();
    const auto chunks = static_cast<uint32_t>(merged_.catalog.boxes.size());
    const auto units = static_cast<uint32_t>(merged_.unit_count());
    switch (policy_.choice) {
      case Choice::kBalanced:
        // Objects fill up what the chunks have left uneven.
        give_singles(0, chunks);
        balance(shared_chunks());
        balance(shared_objects(give_singles(chunks, units)));
        break;
      case Choice::kSinglesThenListed:
        give_singles(0, units);
        choose_listed(ListedChoice::kShared);
        break;
      case Choice::kListed:
        choose_listed(ListedChoice::kAll);
        break;
      case Choice::kGreedy:
        choose(greedy_order());
        break;
      case Choice::kLowestRank:
      case Choice::kAll:
        break;
    }
    return std::move(chosen_);
  }

 private:
  void weigh() {
    const Catalog& catalog = merged_.catalog;
    reserve_large(&weights_, merged_.unit_count());
    weights_.resize(merged_.unit_count());
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      const SplitDims split = split_dims(catalog, t);
      const auto bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
      const bool whole = policy_.weight == Weight::kTensorBytesOrOne;
      const uint64_t least = policy_.weight == Weight::kChunkBytes ? 0 : 1;
      const uint64_t tensor_bytes = whole ? catalog.tensor_bytes(t) : 0;
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
        const uint64_t bytes =
            whole ? tensor_bytes : packed_bytes(bits, chunk_elements(catalog, tensor, split, c));
        weights_[c] = std::max(bytes, least);
      }
    }
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      weights_[catalog.boxes.size() + i] =
          policy_.objects_weigh_one ? 1 : catalog.objects[i].size_bytes;
    }
  }

  // Gives what one rank holds to it; the units that several hold.
  std::vector<uint32_t> give_singles(uint32_t begin, uint32_t end) {
    std::vector<uint32_t> open;
    for (uint32_t unit = begin; unit < end; ++unit) {
      const std::span<const UnitHolder> holders = merged_.holders_of(unit);
      if (is_shared(holders)) {
        open.push_back(unit);
      } else {
        loads_[holders[0].rank] += weights_[unit];
      }
    }
    return open;
  }

  // Units that are given together, and what the largest of them weighs.
  struct Lockstep {
    uint64_t weight = 0;
    uint32_t first = 0;
    uint32_t count = 1;
  };

  // In catalog order.
  std::vector<Lockstep> shared_chunks() const {
    std::vector<Lockstep> items;
    for (const TensorRecord& tensor : merged_.catalog.tensors) {
      const auto first = static_cast<uint32_t>(tensor.chunk_begin);
      const auto count = static_cast<uint32_t>(tensor.chunk_count);
      if (goes_in_lockstep(first, count)) {
        const auto weights = std::span(weights_).subspan(first, count);
        items.push_back({*std::ranges::max_element(weights), first, count});
        continue;
      }
      for (uint32_t unit = first; unit < first + count; ++unit) {
        if (is_shared(merged_.holders_of(unit))) items.push_back({weights_[unit], unit});
      }
    }
    return items;
  }

  std::vector<Lockstep> shared_objects(const std::vector<uint32_t>& units) const {
    std::vector<Lockstep> items;
    items.reserve(units.size());
    for (const uint32_t unit : units) items.push_back({weights_[unit], unit});
    return items;
  }

  // Whether all of the units have equally many holders, and several.
  bool goes_in_lockstep(uint32_t first, uint32_t count) const {
    if (count == 0) return false;
    const size_t replicas = merged_.holders_of(first).size();
    for (uint32_t unit = first; unit < first + count; ++unit) {
      const std::span<const UnitHolder> holders = merged_.holders_of(unit);
      if (holders.size() != replicas || !is_shared(holders)) return false;
    }
    return true;
  }

  // Largest first, each to the replica that bears least so far.
  void balance(std::vector<Lockstep> items) {
    std::ranges::stable_sort(items, std::greater<>(), &Lockstep::weight);
    for (const Lockstep& item : items) {
      const uint32_t replica = lightest_replica(
          item.count, merged_.holders_of(item.first).size(), loads_,
          [&](size_t shard, uint32_t k) { return merged_.holders_of(item.first + shard)[k].rank; });
      for (uint32_t unit = item.first; unit < item.first + item.count; ++unit) {
        chosen_[unit] = replica;
        loads_[merged_.holders_of(unit)[replica].rank] += weights_[unit];
      }
    }
  }

  // True when no holder has the unit as a main replica.
  bool is_secondary(uint32_t unit) const {
    if (unit >= merged_.catalog.boxes.size()) return false;
    return std::ranges::all_of(merged_.holders_of(unit), [this](const UnitHolder& holder) {
      const std::span<const uint8_t> marks = locals_[holder.rank].listing.secondary;
      return !marks.empty() && marks[holder.item] != 0;
    });
  }

  // Rank of each entry's name among all names: ids of shards compare by name first.
  std::vector<uint32_t> name_order() const {
    const Catalog& catalog = merged_.catalog;
    const size_t tensors = catalog.tensors.size();
    const auto name_of = [&](uint32_t entry) {
      return entry < tensors ? catalog.tensor_name(entry) : catalog.object_name(entry - tensors);
    };
    std::vector<uint32_t> sorted(tensors + catalog.objects.size());
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::ranges::stable_sort(sorted, {}, name_of);
    std::vector<uint32_t> places(sorted.size());
    for (uint32_t i = 0; i < sorted.size(); ++i) places[sorted[i]] = i;
    return places;
  }

  std::vector<uint32_t> greedy_order() const {
    struct Key {
      GreedyTurn turn;
      uint32_t name;
      uint32_t unit;
    };
    const Catalog& catalog = merged_.catalog;
    const std::vector<uint32_t> names = name_order();
    std::vector<Key> keys;
    keys.reserve(merged_.unit_count());
    for (uint32_t unit = 0; unit < merged_.unit_count(); ++unit) {
      const size_t entry = unit < catalog.boxes.size()
                               ? catalog.boxes[unit].tensor
                               : catalog.tensors.size() + unit - catalog.boxes.size();
      const GreedyTurn turn{is_secondary(unit), merged_.holders_of(unit).size(), weights_[unit]};
      keys.push_back({turn, names[entry], unit});
    }
    std::ranges::sort(keys, [](const Key& a, const Key& b) {
      if (a.turn != b.turn) return a.turn < b.turn;
      if (a.name != b.name) return a.name < b.name;
      return a.unit < b.unit;  // chunks of a tensor are row-major
    });
    std::vector<uint32_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) order.push_back(key.unit);
    return order;
  }

  // Each unit in turn to the holder with the least so far.
  void choose(const std::vector<uint32_t>& order) {
    for (const uint32_t unit : order) choose(unit);
  }

  void choose_listed(ListedChoice wanted) {
    const ListedUnits listed = list_units(locals_, merged_, weights_, wanted);
    for (size_t rank = 0; rank < locals_.size(); ++rank) {
      for (const ListedUnits::Unit& unit : listed.of_rank(rank)) {
        if (unit.shared) {
          choose(unit.unit);
        } else {
          loads_[rank] += unit.weight;
        }
      }
    }
  }

  void choose(uint32_t unit) {
    const std::span<const UnitHolder> holders = merged_.holders_of(unit);
    if (is_shared(holders)) {
      chosen_[unit] = policy_.tie == MergePolicy::Tie::kLowestRank ? lightest(holders)
                                                                   : lightest_of_set(holders);
      if (may_be_empty(unit)) pass_empty_box(unit);
    }
    loads_[holders[chosen_[unit]].rank] += weights_[unit];
  }

  // Whether holders of a chunk list it with other sizes, so that some may have nothing of it.
  bool may_be_empty(uint32_t unit) const {
    const Catalog& catalog = merged_.catalog;
    return unit < catalog.boxes.size() && merged_.uneven[catalog.boxes[unit].tensor];
  }

  void pass_empty_boxes() {
    for (uint32_t unit = 0; unit < merged_.catalog.boxes.size(); ++unit) {
      if (may_be_empty(unit)) pass_empty_box(unit);
    }
  }

  // Where the chosen rank has no elements of a box and others do: to the lightest of those.
  void pass_empty_box(uint32_t unit) {
    const std::span<const UnitHolder> holders = merged_.holders_of(unit);
    const uint32_t chosen = holders[chosen_[unit]].rank;
    std::optional<uint32_t> best;
    uint32_t first = 0;  // of the rank at hand, which may list the box twice
    for (uint32_t i = 0; i < holders.size(); ++i) {
      const UnitHolder& holder = holders[i];
      if (holder.rank != holders[first].rank) first = i;
      if (box_is_empty(chunk_box_of(locals_[holder.rank].catalog, holder.item))) continue;
      if (holder.rank == chosen) return;
      if (!best || loads_[holder.rank] < loads_[holders[*best].rank]) best = first;
    }
    chosen_[unit] = best.value_or(chosen_[unit]);
  }

  uint32_t lightest(std::span<const UnitHolder> holders) const {
    return static_cast<uint32_t>(
        lightest_of(holders, [this](const UnitHolder& holder) { return loads_[holder.rank]; }));
  }

  uint32_t lightest_of_set(std::span<const UnitHolder> holders) {
    ranks_.clear();
    for (const UnitHolder& holder : holders) {
      if (ranks_.empty() || ranks_.back() != holder.rank) ranks_.push_back(holder.rank);
    }
    if (ranks_ != set_of_) {
      set_of_ = ranks_;
      set_order_ = python_set_order(ranks_);
    }
    const uint32_t best =
        set_order_[lightest_of(set_order_, [this](uint32_t rank) { return loads_[rank]; })];
    return static_cast<uint32_t>(std::ranges::lower_bound(holders, best, {}, &UnitHolder::rank) -
                                 holders.begin());
  }

  std::span<const LocalView> locals_;
  const MergePolicy& policy_;
  const Deduplicated& merged_;
  std::vector<uint32_t> chosen_;
  std::vector<uint64_t> loads_;    // of each rank so far
  std::vector<uint64_t> weights_;  // of each unit
  std::vector<uint32_t> ranks_;
  std::vector<uint32_t> set_of_;  // the ranks whose order set_order_ is
  std::vector<uint32_t> set_order_;
};

// Holders may disagree on size and type when nobody compared them; what is stored is the owner's.
class OwnersValues {
 public:
  OwnersValues(const MergePolicy& policy, Catalog* catalog) : policy_(policy), catalog_(catalog) {}

  void take(const LocalView& local, const ObjectRecord& own, ObjectRecord* record) {
    if (own.size_bytes != 0 || !policy_.described) record->size_bytes = own.size_bytes;
    const std::string_view type = local.catalog.texts.at(own.content_type);
    if (catalog_->texts.at(record->content_type) == type) return;
    // Objects that share a type in a description share it here. Native saves have one per object, as
    // symbolic plans do.
    TextId& known = types_[{local.rank, own.content_type}];
    if (known == 0 || !policy_.described) known = catalog_->texts.append(type);
    record->content_type = known;
  }

 private:
  const MergePolicy& policy_;
  Catalog* catalog_;
  std::map<std::pair<int32_t, TextId>, TextId> types_;  // by rank and text there: text here
};

}  // namespace

std::vector<uint32_t> choose_owners(std::span<const LocalView> locals, const MergePolicy& policy,
                                    Deduplicated* merged) {
  std::vector<uint32_t> chosen = OwnerChoice(locals, policy, *merged).run();
  Catalog& catalog = merged->catalog;
  const size_t chunks = catalog.boxes.size();
  OwnersValues values(policy, &catalog);
  for (size_t c = 0; c < chunks; ++c)
    catalog.boxes[c].place = merged->holders_of(c)[chosen[c]].rank;
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const UnitHolder owner = merged->holders_of(chunks + i)[chosen[chunks + i]];
    const LocalView& local = locals[owner.rank];
    catalog.objects[i].place = owner.rank;
    values.take(local, local.catalog.objects[owner.item - local.catalog.boxes.size()],
                &catalog.objects[i]);
  }
  return chosen;
}

Owners owners_of(const Deduplicated& merged, std::span<const uint32_t> chosen) {
  Owners owners;
  const size_t chunks = merged.catalog.boxes.size();
  reserve_large(&owners.chunks, chunks);
  owners.objects.reserve(merged.catalog.objects.size());
  for (size_t unit = 0; unit < chosen.size(); ++unit) {
    const UnitHolder owner = merged.holders_of(unit)[chosen[unit]];
    (unit < chunks ? owners.chunks : owners.objects).push_back({owner.rank, owner.item, 0});
  }
  return owners;
}

void name_items(std::span<const LocalView> locals, std::vector<WriteList>* lists) {
  for (size_t rank = 0; rank < locals.size(); ++rank) {
    const std::span<const ChunkRecord> chunks = locals[rank].catalog.boxes;
    for (WriteItem& item : (*lists)[rank].items) {
      const uint32_t number = item.entry;
      if (number < chunks.size()) {
        item.entry = chunks[number].tensor;
        item.piece = chunks[number].place;
      } else {
        item.entry = static_cast<uint32_t>(number - chunks.size());
        item.piece = kObjectPiece;
      }
    }
  }
}

}  // namespace shardwright::plan::internal
