// SPDX-License-Identifier: Apache-2.0
//
// Who writes what several ranks hold. Looking at every holder of every box is linear in what was
// listed, so no heap is needed; sorts make it O(n log n). A tensor that is cut by a rule costs what
// its rule costs, once for all tensors of that rule.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
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
  OwnerChoice(const RankPlans& ranks, const MergedEntries& entries, const MergePolicy& policy,
              Merged* merged)
      : ranks_(ranks),
        entries_(entries),
        policy_(policy),
        merged_(*merged),
        holders_(ranks, entries, *merged),
        loads_(ranks.rank_count(), 0),
        lockstep_(&loads_) {}

  void run() {
    if (policy_.choice == Choice::kLowestRank) pass_empty_boxes();
    if (policy_.choice == Choice::kLowestRank || policy_.choice == Choice::kAll) return;
    weigh();
    switch (policy_.choice) {
      case Choice::kBalanced:
        // Objects fill up what the chunks have left uneven.
        give_single_columns();
        give_single_boxes();
        balance(shared_tensors());
        give_single_objects();
        balance(shared_objects());
        break;
      case Choice::kSinglesThenListed:
        give_single_boxes();
        give_single_objects();
        choose_listed(ListedChoice::kShared);
        break;
      case Choice::kListed:
        choose_listed(ListedChoice::kAll);
        break;
      case Choice::kGreedy:
        for (const uint32_t stored : greedy_order()) choose(stored);
        break;
      case Choice::kLowestRank:
      case Choice::kAll:
        break;
    }
  }

 private:
  void weigh() {
    const Catalog& catalog = merged_.catalog;
    reserve_large(&weights_, merged_.stored_count());
    weights_.resize(merged_.stored_count());
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      if (!merged_.tensors[t].is_ruled()) weigh_boxes(t);
    }
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      weights_[merged_.box_count() + i] =
          policy_.objects_weigh_one ? 1 : catalog.objects[i].size_bytes;
    }
  }

  void weigh_boxes(size_t t) {
    const Catalog& catalog = merged_.catalog;
    const TensorRecord& tensor = catalog.tensors[t];
    const SplitDims split = split_dims(catalog, t);
    const bool whole = policy_.weight == Weight::kTensorBytesOrOne;
    const uint64_t least = policy_.weight == Weight::kChunkBytes ? 0 : 1;
    const uint64_t tensor_bytes = whole ? catalog.tensor_bytes(t) : 0;
    for (uint64_t k = 0; k < tensor.chunk_count; ++k) {
      const int64_t elements = chunk_elements(catalog, tensor, split, tensor.chunk_begin + k);
      const uint64_t bytes = whole ? tensor_bytes : packed_bytes(merged_.bits(t), elements);
      weights_[tensor.box_begin + k] = std::max(bytes, least);
    }
  }

  // Columns with one holder. Tensors of one grid, map and width are counted together.
  void give_single_columns() {
    std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint64_t> counts;
    for (size_t t = 0; t < merged_.tensors.size(); ++t) {
      const TensorSource& tensor = merged_.tensors[t];
      if (tensor.is_ruled() && tensor.replicas == 1)
        ++counts[{tensor.map, tensor.grid, merged_.bits(t)}];
    }
    for (const auto& [kind, count] : counts) {
      const auto [map, grid, bits] = kind;
      for (const ColumnRun& run : runs_of(grid)) {
        const uint64_t bytes = packed_bytes(bits, run.elements) * count;
        for (uint32_t column = run.first; column < run.first + run.count; ++column)
          loads_[merged_.maps[map].of(column)[0]] += bytes;
      }
    }
  }

  void give_single_boxes() {
    for (uint32_t box = 0; box < merged_.box_count(); ++box) {
      const std::span<const ItemHolder> holders = merged_.holders_of(box);
      if (!is_shared(holders)) loads_[holders[0].rank] += weights_[box];
    }
  }

  void give_single_objects() {
    for (size_t i = 0; i < merged_.objects.size(); ++i) {
      const std::span<const uint32_t> holders = merged_.ranks_of_object(i);
      if (holders.size() == 1) loads_[holders[0]] += weights_[merged_.box_count() + i];
    }
  }

  std::span<const ColumnRun> runs_of(uint32_t grid) {
    if (runs_.empty()) runs_.resize(merged_.grids.size());
    if (!runs_[grid].has_value()) runs_[grid] = merged_.grids[grid].runs();
    return *runs_[grid];
  }

  // What is given together: a ruled tensor, boxes of a tensor, or an object.
  struct Item {
    enum class Kind : uint8_t { kRuled, kBoxes, kObject };
    uint64_t weight = 0;  // of the largest chunk
    Kind kind = Kind::kBoxes;
    uint32_t first = 0;  // tensor, first box or object
    uint32_t count = 1;  // of boxes
  };

  // What several ranks hold of tensors, in catalog order.
  std::vector<Item> shared_tensors() {
    std::vector<Item> items;
    for (uint32_t t = 0; t < merged_.tensors.size(); ++t) {
      const TensorSource& tensor = merged_.tensors[t];
      if (!tensor.is_ruled()) {
        add_shared_boxes(merged_.catalog.tensors[t], &items);
      } else if (tensor.replicas > 1 && !runs_of(tensor.grid).empty()) {
        const int64_t elements = merged_.grids[tensor.grid].sizes()[0];
        items.push_back({packed_bytes(merged_.bits(t), elements), Item::Kind::kRuled, t});
      }
    }
    return items;
  }

  void add_shared_boxes(const TensorRecord& tensor, std::vector<Item>* items) const {
    const auto first = static_cast<uint32_t>(tensor.box_begin);
    const auto count = static_cast<uint32_t>(tensor.chunk_count);
    if (goes_in_lockstep(first, count)) {
      const auto weights = std::span(weights_).subspan(first, count);
      items->push_back({*std::ranges::max_element(weights), Item::Kind::kBoxes, first, count});
      return;
    }
    for (uint32_t box = first; box < first + count; ++box) {
      if (is_shared(merged_.holders_of(box)))
        items->push_back({weights_[box], Item::Kind::kBoxes, box});
    }
  }

  // Whether all of the boxes have equally many holders, and several.
  bool goes_in_lockstep(uint32_t first, uint32_t count) const {
    if (count == 0) return false;
    const size_t replicas = merged_.holders_of(first).size();
    for (uint32_t box = first; box < first + count; ++box) {
      const std::span<const ItemHolder> holders = merged_.holders_of(box);
      if (holders.size() != replicas || !is_shared(holders)) return false;
    }
    return true;
  }

  std::vector<Item> shared_objects() const {
    std::vector<Item> items;
    for (uint32_t i = 0; i < merged_.objects.size(); ++i) {
      if (merged_.ranks_of_object(i).size() > 1)
        items.push_back({weights_[merged_.box_count() + i], Item::Kind::kObject, i});
    }
    return items;
  }

  // Largest first, each to the replica that bears least so far.
  void balance(std::vector<Item> items) {
    std::ranges::stable_sort(items, std::greater<>(), &Item::weight);
    std::map<uint64_t, ColumnRun> object_runs;  // by bytes; stay where they are
    for (const Item& item : items) {
      switch (item.kind) {
        case Item::Kind::kRuled: {
          TensorSource& tensor = merged_.tensors[item.first];
          tensor.replica = lockstep_.choose(
              {&merged_.maps[tensor.map], runs_of(tensor.grid), merged_.bits(item.first)},
              tensor.replicas);
          break;
        }
        case Item::Kind::kBoxes:
          balance_boxes(item);
          break;
        case Item::Kind::kObject: {
          // An object is one column of its bytes.
          constexpr uint64_t kBits = 8;
          const ColumnRun& run =
              object_runs
                  .try_emplace(item.weight, ColumnRun{0, 1, static_cast<int64_t>(item.weight)})
                  .first->second;
          ObjectSource& object = merged_.objects[item.first];
          const HolderMap& map = merged_.maps[object.map];
          object.replica = lockstep_.choose({&map, {&run, 1}, kBits}, map.most());
          break;
        }
      }
    }
    lockstep_.settle();
  }

  void balance_boxes(const Item& item) {
    lockstep_.settle();
    const uint32_t replica = lightest_replica(
        item.count, merged_.holders_of(item.first).size(), loads_,
        [&](size_t box, uint32_t k) { return merged_.holders_of(item.first + box)[k].rank; });
    for (uint32_t box = item.first; box < item.first + item.count; ++box) {
      merged_.chosen[box] = replica;
      loads_[merged_.holders_of(box)[replica].rank] += weights_[box];
    }
  }

  // True when no holder has the stored item as a main replica.
  bool is_secondary(uint32_t stored) const {
    if (stored >= merged_.box_count()) return false;
    return std::ranges::all_of(merged_.holders_of(stored), [this](const ItemHolder& holder) {
      const std::span<const uint8_t> marks = ranks_.part(holder.rank).listing.secondary;
      return holder.item < marks.size() && marks[holder.item] != 0;
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

  size_t holder_count(uint32_t stored) const {
    return stored < merged_.box_count()
               ? merged_.holders_of(stored).size()
               : merged_.ranks_of_object(stored - merged_.box_count()).size();
  }

  std::vector<uint32_t> greedy_order() const {
    struct Key {
      GreedyKey key;
      uint32_t name;
      uint32_t stored;
    };
    const Catalog& catalog = merged_.catalog;
    const std::vector<uint32_t> names = name_order();
    std::vector<Key> keys;
    keys.reserve(merged_.stored_count());
    for (uint32_t stored = 0; stored < merged_.stored_count(); ++stored) {
      const size_t entry = stored < merged_.box_count()
                               ? catalog.boxes[stored].tensor
                               : catalog.tensors.size() + stored - merged_.box_count();
      const GreedyKey key{is_secondary(stored), holder_count(stored), weights_[stored]};
      keys.push_back({key, names[entry], stored});
    }
    std::ranges::sort(keys, [](const Key& a, const Key& b) {
      if (a.key != b.key) return a.key < b.key;
      if (a.name != b.name) return a.name < b.name;
      return a.stored < b.stored;  // chunks of a tensor are row-major
    });
    std::vector<uint32_t> order;
    order.reserve(keys.size());
    for (const Key& key : keys) order.push_back(key.stored);
    return order;
  }

  void choose_listed(ListedChoice wanted) {
    const ListedItems listed = list_items(ranks_, entries_, merged_, weights_, wanted);
    for (size_t rank = 0; rank < ranks_.rank_count(); ++rank) {
      for (const ListedItems::Item& stored : listed.of_rank(rank)) {
        if (stored.shared) {
          choose(stored.stored);
        } else {
          loads_[rank] += stored.weight;
        }
      }
    }
  }

  // To the holder with the least so far.
  void choose(uint32_t stored) {
    const std::span<const ItemHolder> holders = holders_.of(stored);
    uint32_t chosen = 0;
    if (is_shared(holders)) {
      chosen = policy_.tie == MergePolicy::Tie::kLowestRank ? lightest(holders)
                                                            : lightest_of_set(holders);
      if (may_be_empty(stored)) chosen = pass_empty_box(holders, chosen);
    }
    loads_[holders[chosen].rank] += weights_[stored];
    if (stored < merged_.box_count()) {
      merged_.chosen[stored] = chosen;
    } else {
      merged_.objects[stored - merged_.box_count()].replica = chosen;
    }
  }

  // Whether holders of a chunk list it with other sizes, so that some may have nothing of it.
  bool may_be_empty(uint32_t stored) const {
    return stored < merged_.box_count() && merged_.uneven[merged_.catalog.boxes[stored].tensor];
  }

  void pass_empty_boxes() {
    for (uint32_t box = 0; box < merged_.box_count(); ++box) {
      if (may_be_empty(box))
        merged_.chosen[box] = pass_empty_box(merged_.holders_of(box), merged_.chosen[box]);
    }
  }

  // Where the chosen rank has no elements of a box and others do: to the lightest of those.
  uint32_t pass_empty_box(std::span<const ItemHolder> holders, uint32_t chosen) const {
    const uint32_t rank = holders[chosen].rank;
    std::optional<uint32_t> best;
    uint32_t first = 0;  // of the rank at hand, which may list the box twice
    for (uint32_t i = 0; i < holders.size(); ++i) {
      const ItemHolder& holder = holders[i];
      if (holder.rank != holders[first].rank) first = i;
      if (box_is_empty(ranks_.of(holder.rank).box_of(holder.item))) continue;
      if (holder.rank == rank) return chosen;
      if (!best || loads_[holder.rank] < loads_[holders[*best].rank]) best = first;
    }
    return best.value_or(chosen);
  }

  uint32_t lightest(std::span<const ItemHolder> holders) const {
    return static_cast<uint32_t>(
        lightest_of(holders, [this](const ItemHolder& holder) { return loads_[holder.rank]; }));
  }

  uint32_t lightest_of_set(std::span<const ItemHolder> holders) {
    set_.clear();
    for (const ItemHolder& holder : holders) {
      if (set_.empty() || set_.back() != holder.rank) set_.push_back(holder.rank);
    }
    if (set_ != set_of_) {
      set_of_ = set_;
      set_order_ = python_set_order(set_);
    }
    const uint32_t best =
        set_order_[lightest_of(set_order_, [this](uint32_t rank) { return loads_[rank]; })];
    return static_cast<uint32_t>(std::ranges::lower_bound(holders, best, {}, &ItemHolder::rank) -
                                 holders.begin());
  }

  const RankPlans& ranks_;
  const MergedEntries& entries_;
  const MergePolicy& policy_;
  Merged& merged_;
  StoredHolders holders_;
  std::vector<uint64_t> loads_;  // of each rank so far
  Lockstep lockstep_;
  std::vector<uint64_t> weights_;                            // of each stored item
  std::vector<std::optional<std::vector<ColumnRun>>> runs_;  // of each grid
  std::vector<uint32_t> set_;
  std::vector<uint32_t> set_of_;  // the ranks whose order set_order_ is
  std::vector<uint32_t> set_order_;
};

// Holders may disagree on size and type when nobody compared them; what is stored is the owner's.
class OwnersValues {
 public:
  OwnersValues(const RankPlans& ranks, const MergePolicy& policy, Catalog* catalog)
      : ranks_(ranks), policy_(policy), catalog_(catalog) {}

  // entry: the object of the rank.
  void take(uint32_t rank, uint32_t entry, ObjectRecord* record) {
    const RankView owner = ranks_.of(rank);
    const uint64_t bytes = owner.object_bytes(entry);
    if (bytes != 0 || !policy_.described) record->size_bytes = bytes;
    const Catalog& entries = owner.description.catalog;
    const std::string_view type = entries.texts.at(entries.objects[entry].content_type);
    if (catalog_->texts.at(record->content_type) == type) return;
    const auto [known, is_new] = types_.try_emplace(std::string(type), TextId{0});
    if (is_new) known->second = catalog_->texts.append(type);
    record->content_type = known->second;
  }

 private:
  const RankPlans& ranks_;
  const MergePolicy& policy_;
  Catalog* catalog_;
  std::map<std::string, TextId> types_;  // that were added
};

}  // namespace

std::span<const ItemHolder> StoredHolders::of(size_t stored) {
  if (stored < merged_.box_count()) return merged_.holders_of(stored);
  const size_t object = stored - merged_.box_count();
  made_.clear();
  for (const uint32_t rank : merged_.ranks_of_object(object)) {
    const uint32_t entry = entry_of(entries_.objects, ranks_, merged_.objects[object].entry, rank);
    made_.push_back({rank, ranks_.of(rank).object_item(entry)});
  }
  return made_;
}

void choose_owners(const RankPlans& ranks, const MergedEntries& entries, const MergePolicy& policy,
                   Merged* merged) {
  OwnerChoice(ranks, entries, policy, merged).run();
  Catalog& catalog = merged->catalog;
  for (size_t box = 0; box < merged->box_count(); ++box)
    catalog.boxes[box].place = merged->owner_of(box).rank;
  OwnersValues values(ranks, policy, &catalog);
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const uint32_t owner = merged->owner_of_object(i);
    catalog.objects[i].place = owner;
    values.take(owner, entry_of(entries.objects, ranks, merged->objects[i].entry, owner),
                &catalog.objects[i]);
  }
}

}  // namespace shardwright::plan::internal
