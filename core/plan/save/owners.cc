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
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/huge_pages.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/greedy_rule_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

using Choice = MergePolicy::Choice;
using Weight = MergePolicy::Weight;

// The columns of a tensor that hold elements, and what is in them.
struct ColumnSizes {
  const HolderMap* map = nullptr;
  std::span<const ColumnRun> runs;  // borrowed while the map stays
  uint64_t bits = 0;                // of an element
};

bool has_all_columns(const ColumnSizes& tensor) {
  uint64_t columns = 0;
  for (const ColumnRun& run : tensor.runs) columns += run.count;
  return columns == tensor.map->column_count();
}

// The balanced rule for what several ranks hold. The shards of a tensor that all have equally many
// holders are given in lockstep: to the k-th holder of each, for the k whose ranks together bear
// least so far, of equal ones the lowest. So the ranks that write a grid follow a formula, whatever
// the sizes of its last shards, and a replica is written by one group of ranks. A tensor whose
// shards have different numbers of holders goes shard by shard (OwnerChoice::balance).
//
// Gives tensors and objects of one holder map after the other to replicas by the rule. What the
// ranks of each replica bear together is added up when a map comes and kept while it stays, and
// with it the columns, all or those of one grid: the ranks of different replicas are different
// ones. So the cost is O(ranks) per change and O(log replicas) per tensor. One thread.
class Lockstep {
 public:
  // loads: bytes that each rank writes so far.
  explicit Lockstep(std::vector<uint64_t>* loads) : loads_(*loads) {}
  // The replica that writes the tensor. All of its columns have equally many holders.
  uint32_t choose(const ColumnSizes& tensor) {
    const bool goes_on =
        tensor.map == last_.map && (tensor.runs.data() == last_.runs.data() ||
                                    (has_all_columns(tensor) && has_all_columns(last_)));
    if (!goes_on) begin(tensor);
    Bearing lightest = bearings_.top();
    bearings_.pop();
    for (const ColumnRun& run : tensor.runs)
      lightest.bytes += packed_bytes(tensor.bits, run.elements) * run.count;
    bearings_.push(lightest);
    ++chosen_[{tensor.runs.data(), tensor.runs.size(), tensor.bits, lightest.replica}];
    return lightest.replica;
  }

  // What was chosen is in the loads; before they are read or changed by others.
  void settle() {
    for (const auto& [chosen, count] : chosen_) {
      const auto [runs, run_count, bits, replica] = chosen;
      for (const ColumnRun& run : std::span(runs, run_count)) {
        const uint64_t bytes = packed_bytes(bits, run.elements) * count;
        for (uint32_t column = run.first; column < run.first + run.count; ++column)
          loads_[last_.map->of(column)[replica]] += bytes;
      }
    }
    chosen_.clear();
    last_.map = nullptr;
  }

 private:
  struct Bearing {
    uint64_t bytes = 0;
    uint32_t replica = 0;
    friend auto operator<=>(const Bearing&, const Bearing&) = default;
  };
  using Chosen = std::tuple<const ColumnRun*, size_t, uint64_t, uint32_t>;  // runs, bits, replica

  void begin(const ColumnSizes& tensor) {
    settle();
    const size_t replicas = tensor.map->of(tensor.runs[0].first).size();
    std::vector<Bearing> bearings(replicas);
    for (uint32_t k = 0; k < replicas; ++k) bearings[k].replica = k;
    for (const ColumnRun& run : tensor.runs) {
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        const std::span<const uint32_t> holders = tensor.map->of(column);
        for (uint32_t k = 0; k < replicas; ++k) bearings[k].bytes += loads_[holders[k]];
      }
    }
    bearings_ = std::priority_queue(std::greater<>(), std::move(bearings));
    last_ = tensor;
  }

  std::vector<uint64_t>& loads_;
  ColumnSizes last_;  // of what was chosen; no map when loads_ says all
  std::priority_queue<Bearing, std::vector<Bearing>, std::greater<>> bearings_;
  std::map<Chosen, uint64_t> chosen_;  // how often; not yet in loads_
};

class OwnerChoice {
 public:
  OwnerChoice(const RankPlans& ranks, const MergedEntries& entries, const MergePolicy& policy,
              Merged* merged)
      : ranks_(ranks),
        policy_(policy),
        merged_(*merged),
        holders_(ranks, entries, *merged),
        loads_(ranks.rank_count(), 0),
        lockstep_(&loads_) {}

  void run() {
    if (policy_.choice == Choice::kAll) return;
    if (policy_.choice == Choice::kLowestRank) return pass_empty_boxes();
    weigh();
    switch (policy_.choice) {
      case Choice::kBalanced:
        // Objects fill up what the chunks have left uneven.
        add_columns(merged_, Columns::kSingle, loads_, {});
        give_single_boxes();
        balance(shared_tensors());
        give_single_objects();
        balance(shared_objects());
        break;
      case Choice::kSinglesThenListed:
        give_single_boxes();
        give_single_objects();
        choose_listed(true);
        break;
      case Choice::kListed:
        choose_listed(false);
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
          policy_.weight == Weight::kChunkBytes ? catalog.objects[i].size_bytes : 1;
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

  // What is given together: a ruled tensor, boxes of a tensor, or an object.
  struct Item {
    uint64_t weight = 0;            // of the largest chunk
    ColumnSizes columns;            // of a tensor or an object; no map: boxes
    uint32_t* replica = nullptr;    // that is chosen for the columns
    uint32_t first = 0, count = 1;  // boxes
  };

  // What several ranks hold of tensors, in catalog order.
  std::vector<Item> shared_tensors() {
    std::vector<Item> items;
    for (uint32_t t = 0; t < merged_.tensors.size(); ++t) {
      TensorSource& tensor = merged_.tensors[t];
      if (!tensor.is_ruled()) {
        add_shared_boxes(merged_.catalog.tensors[t], &items);
        continue;
      }
      const std::span<const ColumnRun> runs = merged_.grids[tensor.grid].runs();
      if (tensor.replicas < 2 || runs.empty()) continue;
      const uint64_t bits = merged_.bits(t);
      items.push_back({packed_bytes(bits, runs[0].elements),
                       {&merged_.maps[tensor.map], runs, bits},
                       &tensor.replica});
    }
    return items;
  }

  void add_shared_boxes(const TensorRecord& tensor, std::vector<Item>* items) const {
    const auto first = static_cast<uint32_t>(tensor.box_begin);
    const auto count = static_cast<uint32_t>(tensor.chunk_count);
    if (goes_in_lockstep(first, count)) {
      const auto weights = std::span(weights_).subspan(first, count);
      items->push_back({*std::ranges::max_element(weights), {}, nullptr, first, count});
      return;
    }
    for (uint32_t box = first; box < first + count; ++box) {
      if (is_shared(merged_.holders_of(box))) items->push_back({weights_[box], {}, nullptr, box});
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

  // An object is one column of its bytes.
  std::vector<Item> shared_objects() {
    constexpr uint64_t kBits = 8;
    std::vector<Item> items;
    for (uint32_t i = 0; i < merged_.objects.size(); ++i) {
      if (merged_.ranks_of_object(i).size() < 2) continue;
      const size_t stored = merged_.box_count() + i;
      const ColumnRun run{0, 1, static_cast<int64_t>(weights_[stored])};
      const ColumnRun& known = object_runs_.try_emplace(run.elements, run).first->second;
      items.push_back({weights_[stored],
                       {&merged_.maps[merged_.objects[i].map], {&known, 1}, kBits},
                       &merged_.chosen[stored]});
    }
    return items;
  }

  // Largest first, each to the replica that bears least so far.
  void balance(std::vector<Item> items) {
    std::ranges::stable_sort(items, std::greater<>(), &Item::weight);
    for (const Item& item : items) {
      if (item.columns.map == nullptr) {
        balance_boxes(item);
      } else {
        *item.replica = lockstep_.choose(item.columns);
      }
    }
    lockstep_.settle();
  }

  void balance_boxes(const Item& item) {
    lockstep_.settle();
    std::vector<uint64_t> sums(merged_.holders_of(item.first).size(), 0);  // of each replica
    for (uint32_t box = item.first; box < item.first + item.count; ++box) {
      const std::span<const ItemHolder> holders = merged_.holders_of(box);
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += loads_[holders[k].rank];
    }
    const auto replica = static_cast<uint32_t>(lightest_of(sums, std::identity()));
    for (uint32_t box = item.first; box < item.first + item.count; ++box) {
      merged_.chosen[box] = replica;
      loads_[merged_.holders_of(box)[replica].rank] += weights_[box];
    }
  }

  // True when no holder has the stored item as a main replica.
  bool is_secondary(size_t stored) const {
    if (stored >= merged_.box_count()) return false;
    return std::ranges::all_of(merged_.holders_of(stored), [this](const ItemHolder& holder) {
      const std::span<const uint8_t> marks = ranks_.part(holder.rank).listing.secondary;
      return holder.item < marks.size() && marks[holder.item] != 0;
    });
  }

  // Ids of shards compare by name where their keys are equal; chunks of a tensor are row-major.
  std::vector<uint32_t> greedy_order() const {
    const Catalog& catalog = merged_.catalog;
    const size_t tensors = catalog.tensors.size();
    std::vector<size_t> entries(tensors + catalog.objects.size());
    std::iota(entries.begin(), entries.end(), size_t{0});
    std::ranges::stable_sort(entries, {}, [&](size_t entry) {
      return entry < tensors ? catalog.tensor_name(entry) : catalog.object_name(entry - tensors);
    });
    std::vector<GreedyKey> keys(merged_.stored_count());
    std::vector<uint32_t> order;
    order.reserve(keys.size());
    for (const size_t entry : entries) {
      for (const size_t stored : merged_.stored_of(entry)) {
        const size_t holders = entry >= tensors ? merged_.ranks_of_object(entry - tensors).size()
                                                : merged_.holders_of(stored).size();
        keys[stored] = greedy_key(is_secondary(stored), holders, weights_[stored]);
        order.push_back(static_cast<uint32_t>(stored));
      }
    }
    std::ranges::stable_sort(order, {}, [&](uint32_t stored) { return keys[stored]; });
    return order;
  }

  // An item with what is looked at next: those of a rank lie as far apart as there are ranks, so
  // one column of them is read from its beginning to its end.
  struct ListedItem {
    uint64_t weight = 0;
    uint32_t stored = 0;
    bool shared = false;
  };

  // Calls visit(stored, holders) for every item, or for those that several ranks hold.
  template <typename Visit>
  void for_each_stored(bool only_shared, const Visit& visit) {
    for (uint32_t stored = 0; stored < merged_.stored_count(); ++stored) {
      const std::span<const ItemHolder> holders = holders_.of(stored);
      if (!only_shared || is_shared(holders)) visit(stored, holders);
    }
  }

  // In the order in which hosts listed items first: by rank, then by the rank's own order, which
  // mostly is that of the merged catalog. Then nothing is left to sort within a rank.
  void choose_listed(bool only_shared) {
    const ListedPlaces places(ranks_);
    std::vector<size_t> begins(ranks_.rank_count() + 1, 0);
    for_each_stored(only_shared,
                    [&](uint32_t, const auto& holders) { ++begins[holders[0].rank + 1]; });
    std::inclusive_scan(begins.begin(), begins.end(), begins.begin());
    std::vector<ListedItem> items;
    reserve_large(&items, begins.back());
    items.resize(begins.back());
    std::vector<size_t> next(begins.begin(), begins.end() - 1);
    std::vector<uint32_t> last(next.size(), 0);  // place of the rank's last item
    std::vector<bool> sorted(next.size(), true);
    for_each_stored(only_shared, [&](uint32_t stored, const auto& holders) {
      const uint32_t rank = holders[0].rank;
      const uint32_t place = places.first_of(holders);
      if (place < last[rank]) sorted[rank] = false;
      last[rank] = place;
      items[next[rank]++] = {weights_[stored], stored, is_shared(holders)};
    });
    for (size_t rank = 0; rank < next.size(); ++rank) {
      const auto listed = std::span(items).subspan(begins[rank], begins[rank + 1] - begins[rank]);
      if (!sorted[rank]) {
        std::ranges::sort(listed, {}, [&](const ListedItem& item) {
          return places.first_of(holders_.of(item.stored));
        });
      }
      for (const ListedItem& item : listed) {
        if (item.shared) {
          choose(item.stored);
        } else {
          loads_[rank] += item.weight;
        }
      }
    }
  }

  // To the holder with the least so far.
  void choose(uint32_t stored) {
    const std::span<const ItemHolder> holders = holders_.of(stored);
    const auto load_of = [this](const ItemHolder& holder) { return loads_[holder.rank]; };
    uint32_t chosen = 0;
    if (is_shared(holders)) {
      chosen = policy_.tie_order != nullptr ? first_lightest(holders)
                                            : static_cast<uint32_t>(lightest_of(holders, load_of));
      if (may_be_empty(stored)) chosen = pass_empty_box(holders, chosen);
    }
    loads_[holders[chosen].rank] += weights_[stored];
    merged_.chosen[stored] = chosen;
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

  uint32_t first_lightest(std::span<const ItemHolder> holders) {
    tied_.clear();
    for (const ItemHolder& holder : holders) {
      if (tied_.empty() || tied_.back() != holder.rank) tied_.push_back(holder.rank);
    }
    if (tied_ != ordered_) {
      ordered_ = tied_;
      tie_order_ = policy_.tie_order(tied_);
    }
    const uint32_t best =
        tie_order_[lightest_of(tie_order_, [this](uint32_t rank) { return loads_[rank]; })];
    return static_cast<uint32_t>(std::ranges::lower_bound(holders, best, {}, &ItemHolder::rank) -
                                 holders.begin());
  }

  const RankPlans& ranks_;
  const MergePolicy& policy_;
  Merged& merged_;
  StoredHolders holders_;
  std::vector<uint64_t> loads_;  // of each rank so far
  Lockstep lockstep_;
  std::vector<uint64_t> weights_;             // of each stored item
  std::map<int64_t, ColumnRun> object_runs_;  // by bytes; stay where they are
  std::vector<uint32_t> tied_;
  std::vector<uint32_t> ordered_;  // the ranks whose order tie_order_ is
  std::vector<uint32_t> tie_order_;
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
  // Holders may disagree on size and type when nobody compared them; what is stored is the owner's.
  std::map<std::string, TextId> types;  // that were added
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    ObjectRecord& record = catalog.objects[i];
    record.place = merged->owner_of_object(i);
    const RankView owner = ranks.of(record.place);
    const uint32_t entry = entry_of(entries.objects, ranks, merged->objects[i].entry, record.place);
    const uint64_t bytes = owner.object_bytes(entry);
    if (bytes != 0 || !policy.described) record.size_bytes = bytes;
    const Catalog& listed = owner.description.catalog;
    const std::string_view type = listed.texts.at(listed.objects[entry].content_type);
    if (catalog.texts.at(record.content_type) == type) continue;
    const auto [known, is_new] = types.try_emplace(std::string(type), TextId{0});
    if (is_new) known->second = catalog.texts.append(type);
    record.content_type = known->second;
  }
}

}  // namespace shardwright::plan::internal
