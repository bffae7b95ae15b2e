// SPDX-License-Identifier: Apache-2.0
//
// Owners as save/owners.cc chooses them: first all chunks with one holder, whose order does not
// matter, then the others by size, largest first, ties in catalog order. Chunks of one size of one
// tensor are held by different ranks, so they are one item; items in a row over the same columns are
// one batch. Then objects likewise. Megatron's rule goes by fewer holders first, then by size and name,
// objects among tensors; there the columns of an item have equally many holders, too. The rules are
// those of save/greedy_rule_internal.h; what differs is that items of many columns are chosen at once.
// SymbolicPlan.RandomJobsEqualTheExplicitPlan holds both choices equal.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/greedy_rule_internal.h"
#include "core/plan/symbolic/column_balancer_internal.h"
#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {
namespace {

class Writers {
 public:
  explicit Writers(SymbolicBody* body) : body_(*body) {
    body_.loads.assign(body_.ranks.description_of_rank.size(), 0);
    body_.writes_nothing.assign(body_.loads.size(), true);
  }

  void run() {
    add_single_columns();
    add_single_listed();
    add_local_tensors();
    if (body_.owner == OwnerRule::kBalanced) balance_tensors();
    if (body_.owner == OwnerRule::kExact) choose_greedily();
    for (ListedTensor& listed : body_.listed) listed.index_owners();
    note_writers();
    if (body_.owner != OwnerRule::kExact) balance_objects();
    for (size_t g = 0; g < body_.object_maps.size(); ++g) settle_object(g);
    note_writers();
  }

 private:
  bool lowest() const { return body_.owner == OwnerRule::kLowestRank; }

  // What is decided without looking at loads: columns with one holder, or all. Tensors of one grid,
  // map and width are counted together.
  void add_single_columns() {
    std::vector<std::tuple<uint32_t, uint32_t, uint64_t>> keys;
    for (size_t g = 0; g < body_.tensors.size(); ++g) {
      const TensorPlan& tensor = body_.tensors[g];
      if (tensor.grid != kListed) keys.emplace_back(tensor.map, tensor.grid, body_.bits(g));
    }
    std::ranges::sort(keys);
    for (size_t i = 0; i < keys.size();) {
      const auto [map, grid, bits] = keys[i];
      size_t end = i;
      while (end < keys.size() && keys[end] == keys[i]) ++end;
      add_single(body_.maps[map], body_.grids[grid], {bits, end - i});
      i = end;
    }
  }

  struct Width {
    uint64_t bits = 0;
    uint64_t tensor_count = 0;
  };

  void add_single(const HolderMap& map, const ShardGrid& grid, const Width& width) {
    if (!lowest() && !map.has_single()) return;
    for (const ColumnRun& run : grid.runs()) {
      const uint64_t bytes = packed_bytes(width.bits, run.elements) * width.tensor_count;
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        const std::span<const uint32_t> holders = map.of(column);
        if (holders.size() == 1 || (lowest() && !holders.empty())) body_.loads[holders[0]] += bytes;
      }
    }
  }

  uint64_t listed_bytes(size_t group, size_t chunk) const {
    const ListedTensor& listed = body_.listed[body_.tensors[group].map];
    return packed_bytes(body_.bits(group), elements_of(listed.box(chunk)));
  }

  void add_single_listed() {
    for (size_t g = 0; g < body_.tensors.size(); ++g) {
      if (body_.tensors[g].grid != kListed) continue;
      const ListedTensor& listed = body_.listed[body_.tensors[g].map];
      for (size_t c = 0; c < listed.chunk_count(); ++c) {
        const std::span<const Holder> holders = listed.holders_of(c);
        if (lowest() || holders.size() == 1) body_.loads[holders[0].rank] += listed_bytes(g, c);
      }
    }
  }

  // rank_local tensors are whole on each of their ranks.
  void add_local_tensors() {
    std::vector<uint64_t> bytes(body_.ranks.descriptions.size(), 0);
    for (size_t d = 0; d < bytes.size(); ++d) {
      const Catalog& catalog = body_.ranks.descriptions[d].catalog;
      for (size_t t = 0; t < catalog.tensors.size(); ++t) {
        if (catalog.tensors[t].kind == EntryKind::kRankLocal) bytes[d] += catalog.tensor_bytes(t);
      }
    }
    for (size_t r = 0; r < body_.loads.size(); ++r)
      body_.loads[r] += bytes[body_.ranks.description_of_rank[r]];
  }

  // What several ranks hold of tensors.
  std::vector<OpenItem> open_items() {
    std::vector<OpenItem> items;
    for (uint32_t g = 0; g < body_.tensors.size(); ++g) {
      const TensorPlan& tensor = body_.tensors[g];
      if (tensor.grid == kListed) {
        const ListedTensor& listed = body_.listed[tensor.map];
        for (size_t c = 0; c < listed.chunk_count(); ++c) {
          const auto holders = static_cast<uint32_t>(listed.holders_of(c).size());
          if (holders > 1)
            items.push_back({listed_bytes(g, c), g, static_cast<int64_t>(c), holders});
        }
      } else if (body_.maps[tensor.map].most() > 1) {
        for (const int64_t elements : body_.grids[tensor.grid].sizes()) {
          for (const uint32_t holders : holder_counts(tensor, elements))
            items.push_back({packed_bytes(body_.bits(g), elements), g, elements, holders});
        }
      }
    }
    return items;
  }

  // How many ranks hold the columns of so many elements, where that decides over their turn.
  std::vector<uint32_t> holder_counts(const TensorPlan& tensor, int64_t elements) {
    const HolderMap& map = body_.maps[tensor.map];
    if (body_.owner != OwnerRule::kExact) return {0};
    if (map.least() == map.most()) return {map.most()};
    std::vector<uint32_t>& counts = counts_[{tensor.grid, tensor.map, elements}];
    if (!counts.empty()) return counts;
    for (const ColumnRun& run : body_.grids[tensor.grid].runs()) {
      if (run.elements != elements) continue;
      for (uint32_t column = run.first; column < run.first + run.count; ++column)
        counts.push_back(static_cast<uint32_t>(map.of(column).size()));
    }
    std::ranges::sort(counts);
    const auto rest = std::ranges::unique(counts);
    counts.erase(rest.begin(), rest.end());
    return counts;
  }

  static void sort(std::vector<OpenItem>* items) {
    std::ranges::stable_sort(*items, std::greater<>(), &OpenItem::weight);
  }

  // Whether an item can follow in the batch of another: the same columns, the same bytes in each.
  bool same_columns(const OpenItem& a, const OpenItem& b) const {
    const TensorPlan& first = body_.tensors[a.group];
    const TensorPlan& second = body_.tensors[b.group];
    if (a.weight != b.weight || a.holders != b.holders) return false;
    if (first.grid == kListed || second.grid == kListed) return false;
    if (first.map != second.map || a.group == b.group) return false;
    if (body_.grids[first.grid].even() && body_.grids[second.grid].even()) return true;
    return first.grid == second.grid && a.elements == b.elements;
  }

  void balance_tensors() {
    std::vector<OpenItem> items = open_items();
    sort(&items);
    ColumnBalancer balancer(&body_.loads, &body_.tensor_choices);
    for (size_t i = 0; i < items.size();) {
      size_t end = i + 1;
      while (end < items.size() && same_columns(items[end - 1], items[end])) ++end;
      assign_tensors(std::span(items).subspan(i, end - i), &balancer);
      i = end;
    }
    body_.tensor_choices.index(body_.tensors.size());
  }

  // Items of the same columns, or one chunk of a listed tensor.
  void assign_tensors(std::span<const OpenItem> items, ColumnBalancer* balancer) {
    const TensorPlan& tensor = body_.tensors[items[0].group];
    if (tensor.grid == kListed) return assign_listed(items[0]);
    balancer->begin(items, body_.maps[tensor.map].most());
    assign_columns(items[0], balancer);
  }

  // Items of objects that the same ranks hold.
  void assign_objects(std::span<const OpenItem> items, ColumnBalancer* balancer) {
    const HolderMap& map = body_.maps[body_.object_maps[items[0].group]];
    balancer->begin(items, map.most());
    balancer->assign(0, map.of(0));
  }

  // An item at its place in Megatron's order.
  struct Turn {
    OpenItem item;
    bool is_object = false;
    std::string_view name;
    GreedyTurn greedy() const { return {false, item.holders, item.weight}; }
  };

  std::vector<Turn> greedy_turns() {
    std::vector<Turn> turns;
    for (const OpenItem& item : open_items()) {
      if (item.holders > 1) turns.push_back({item, false, body_.name(item.group)});
    }
    for (const OpenItem& item : give_single_objects()) {
      const GroupMember& first = body_.merged.objects.of(item.group)[0];
      turns.push_back({item, true, body_.description(first).catalog.object_name(first.entry)});
    }
    std::ranges::stable_sort(turns, [](const Turn& a, const Turn& b) {
      const auto order = a.greedy() <=> b.greedy();
      return order == 0 ? a.name < b.name : order < 0;
    });
    return turns;
  }

  bool follows(const Turn& turn, const Turn& before) const {
    if (turn.is_object != before.is_object) return false;
    return turn.is_object ? same_holders(before.item, turn.item)
                          : same_columns(before.item, turn.item);
  }

  void choose_greedily() {
    const std::vector<Turn> turns = greedy_turns();
    ColumnBalancer tensors(&body_.loads, &body_.tensor_choices);
    ColumnBalancer objects(&body_.loads, &body_.object_choices);
    std::vector<OpenItem> items;
    for (size_t i = 0; i < turns.size();) {
      items.assign(1, turns[i].item);
      size_t end = i + 1;
      for (; end < turns.size() && follows(turns[end], turns[end - 1]); ++end)
        items.push_back(turns[end].item);
      if (turns[i].is_object) {
        assign_objects(items, &objects);
      } else {
        assign_tensors(items, &tensors);
      }
      i = end;
    }
    body_.tensor_choices.index(body_.tensors.size());
    body_.object_choices.index(body_.object_maps.size());
  }

  void assign_columns(const OpenItem& item, ColumnBalancer* balancer) {
    const HolderMap& map = body_.maps[body_.tensors[item.group].map];
    for (const ColumnRun& run : body_.grids[body_.tensors[item.group].grid].runs()) {
      if (run.elements != item.elements) continue;
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        const std::span<const uint32_t> holders = map.of(column);
        const bool counts = item.holders == 0 || item.holders == holders.size();
        if (holders.size() > 1 && counts) balancer->assign(column, holders);
      }
    }
  }

  void assign_listed(const OpenItem& item) {
    ListedTensor& listed = body_.listed[body_.tensors[item.group].map];
    const auto chunk = static_cast<size_t>(item.elements);
    const size_t lightest = lightest_of(
        listed.holders_of(chunk), [this](const Holder& each) { return body_.loads[each.rank]; });
    listed.owners[chunk] = listed.holder_begins[chunk] + static_cast<uint32_t>(lightest);
    body_.loads[listed.owner(chunk).rank] += item.weight;
  }

  // Chunks hold bytes, so a rank that writes one bears a load.
  void note_writers() {
    for (size_t r = 0; r < body_.loads.size(); ++r) {
      if (body_.loads[r] != 0) body_.writes_nothing[r] = false;
    }
  }

  uint64_t object_bytes(size_t group) const {
    return body_.object(body_.merged.objects.of(group)[0]).size_bytes;
  }

  // Gives objects with one holder to it, and all to the lowest where that is the rule; the others.
  std::vector<OpenItem> give_single_objects() {
    for (const SymbolicPart& part : body_.ranks.parts) {
      for (const uint64_t bytes : part.object_sizes)
        body_.loads[static_cast<size_t>(part.rank)] += bytes;
      if (!part.object_sizes.empty()) body_.writes_nothing[static_cast<size_t>(part.rank)] = false;
    }
    std::vector<OpenItem> items;
    for (uint32_t g = 0; g < body_.object_maps.size(); ++g) {
      const std::span<const uint32_t> holders = body_.maps[body_.object_maps[g]].of(0);
      if (lowest() || holders.size() == 1) {
        body_.loads[holders[0]] += object_bytes(g);
      } else {
        items.push_back({object_bytes(g), g, 0, static_cast<uint32_t>(holders.size())});
      }
    }
    return items;
  }

  bool same_holders(const OpenItem& a, const OpenItem& b) const {
    return a.weight == b.weight && body_.object_maps[a.group] == body_.object_maps[b.group];
  }

  void balance_objects() {
    std::vector<OpenItem> items = give_single_objects();
    sort(&items);
    ColumnBalancer balancer(&body_.loads, &body_.object_choices);
    for (size_t i = 0; i < items.size();) {
      size_t end = i + 1;
      while (end < items.size() && same_holders(items[i], items[end])) ++end;
      assign_objects(std::span(items).subspan(i, end - i), &balancer);
      i = end;
    }
    body_.object_choices.index(body_.object_maps.size());
  }

  // What is stored is the owner's object, which may have another size when nobody compared them.
  void settle_object(size_t group) {
    const uint32_t owner = body_.object_owner(group);
    const GroupMember& member = body_.member_of(body_.merged.objects, group, owner);
    body_.loads[owner] += body_.object(member).size_bytes - object_bytes(group);
    body_.writes_nothing[owner] = false;
  }

  SymbolicBody& body_;
  // By grid, map and elements.
  std::map<std::tuple<uint32_t, uint32_t, int64_t>, std::vector<uint32_t>> counts_;
};

}  // namespace

void choose_writers(SymbolicBody* body) {
  Writers(body).run();
}

}  // namespace shardwright::plan::internal
