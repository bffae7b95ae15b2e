// SPDX-License-Identifier: Apache-2.0
//
// Owners as save/owners.cc chooses them: first what one rank holds, whose order does not matter, then
// tensors by their largest chunk, largest first, ties in catalog order, each in lockstep; then
// objects likewise. With Megatron's rule, for which all tensors are listed, chunks and objects one by
// one. SymbolicPlan.RandomJobsEqualTheExplicitPlan holds both choices equal.
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/greedy_rule_internal.h"
#include "core/plan/save/lockstep_internal.h"
#include "core/plan/symbolic/lockstep_internal.h"
#include "core/plan/symbolic/plan_body_internal.h"

namespace shardwright::plan::internal {
namespace {

class Writers {
 public:
  explicit Writers(SymbolicBody* body) : body_(*body), lockstep_(&body_.loads) {
    body_.loads.assign(body_.ranks.description_of_rank.size(), 0);
    body_.writes_nothing.assign(body_.loads.size(), true);
    body_.object_replicas.assign(body_.object_maps.size(), 0);
    runs_.reserve(body_.grids.size());
    for (const ShardGrid& grid : body_.grids) runs_.push_back(grid.runs());
  }

  void run() {
    give_single_columns();
    give_single_listed();
    give_local_tensors();
    if (body_.owner == OwnerRule::kBalanced) balance_tensors();
    if (body_.owner == OwnerRule::kExact) choose_greedily();
    for (ListedTensor& listed : body_.listed) listed.index_owners();
    note_writers();
    if (body_.owner != OwnerRule::kExact) balance_objects();
    for (size_t g = 0; g < body_.object_maps.size(); ++g) settle_object(g);
    note_writers();
  }

 private:
  static constexpr uint32_t kAllChunks = 0xFFFFFFFF;

  // A tensor in lockstep, one chunk of a listed tensor, or an object.
  struct Item {
    uint64_t weight = 0;
    uint32_t group = 0;
    uint32_t chunk = kAllChunks;
  };

  bool lowest() const { return body_.owner == OwnerRule::kLowestRank; }

  // What is decided without looking at loads: columns with one holder, or all. Tensors of one grid,
  // map and width are counted together.
  void give_single_columns() {
    std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint64_t> counts;
    for (size_t g = 0; g < body_.tensors.size(); ++g) {
      const TensorPlan& tensor = body_.tensors[g];
      if (tensor.grid != kListed && (lowest() || tensor.replicas == 1))
        ++counts[{tensor.map, tensor.grid, body_.bits(g)}];
    }
    for (const auto& [kind, count] : counts) {
      const auto [map, grid, bits] = kind;
      for (const ColumnRun& run : runs_[grid]) {
        const uint64_t bytes = packed_bytes(bits, run.elements) * count;
        for (uint32_t column = run.first; column < run.first + run.count; ++column)
          body_.loads[body_.maps[map].of(column)[0]] += bytes;
      }
    }
  }

  ListedTensor& listed_of(size_t group) { return body_.listed[body_.tensors[group].map]; }

  uint64_t listed_bytes(size_t group, size_t chunk) {
    return packed_bytes(body_.bits(group), elements_of(listed_of(group).box(chunk)));
  }

  void give_single_listed() {
    for (size_t g = 0; g < body_.tensors.size(); ++g) {
      if (body_.tensors[g].grid != kListed) continue;
      const ListedTensor& listed = listed_of(g);
      for (size_t c = 0; c < listed.chunk_count(); ++c) {
        const std::span<const Holder> holders = listed.holders_of(c);
        if (lowest() || holders.size() == 1) body_.loads[holders[0].rank] += listed_bytes(g, c);
      }
    }
  }

  // rank_local tensors are whole on each of their ranks.
  void give_local_tensors() {
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

  static void sort(std::vector<Item>* items) {
    std::ranges::stable_sort(*items, std::greater<>(), &Item::weight);
  }

  static bool goes_in_lockstep(const ListedTensor& listed) {
    const size_t replicas = listed.chunk_count() == 0 ? 0 : listed.holders_of(0).size();
    for (size_t c = 1; c < listed.chunk_count(); ++c) {
      if (listed.holders_of(c).size() != replicas) return false;
    }
    return replicas > 1;
  }

  void list_shared_chunks(uint32_t group, std::vector<Item>* items) {
    const ListedTensor& listed = listed_of(group);
    const bool together = body_.owner == OwnerRule::kBalanced && goes_in_lockstep(listed);
    uint64_t largest = 0;
    for (uint32_t c = 0; c < listed.chunk_count(); ++c) {
      const uint64_t bytes = listed_bytes(group, c);
      largest = std::max(largest, bytes);
      if (!together && listed.holders_of(c).size() > 1) items->push_back({bytes, group, c});
    }
    if (together) items->push_back({largest, group});
  }

  // What several ranks hold of tensors, in catalog order.
  std::vector<Item> shared_tensors() {
    std::vector<Item> items;
    for (uint32_t g = 0; g < body_.tensors.size(); ++g) {
      const TensorPlan& tensor = body_.tensors[g];
      if (tensor.grid == kListed) {
        list_shared_chunks(g, &items);
      } else if (tensor.replicas > 1 && !runs_[tensor.grid].empty()) {
        items.push_back({packed_bytes(body_.bits(g), body_.grids[tensor.grid].sizes()[0]), g});
      }
    }
    return items;
  }

  void balance_tensors() {
    std::vector<Item> items = shared_tensors();
    sort(&items);
    for (const Item& item : items) {
      TensorPlan& tensor = body_.tensors[item.group];
      if (tensor.grid == kListed) {
        lockstep_.settle();
        balance_listed(item);
      } else {
        tensor.replica = lockstep_.choose(
            {&body_.maps[tensor.map], runs_[tensor.grid], body_.bits(item.group)}, tensor.replicas);
      }
    }
    lockstep_.settle();
  }

  void balance_listed(const Item& item) {
    const ListedTensor& listed = listed_of(item.group);
    const uint32_t first = item.chunk == kAllChunks ? 0 : item.chunk;
    const size_t count = item.chunk == kAllChunks ? listed.chunk_count() : 1;
    const uint32_t replica = lightest_replica(
        count, listed.holders_of(first).size(), body_.loads,
        [&](size_t c, uint32_t k) { return listed.holders_of(first + c)[k].rank; });
    for (size_t c = first; c < first + count; ++c) give_listed(item.group, c, replica);
  }

  void give_listed(size_t group, size_t chunk, uint32_t replica) {
    ListedTensor& listed = listed_of(group);
    listed.owners[chunk] = listed.holder_begins[chunk] + replica;
    body_.loads[listed.owner(chunk).rank] += listed_bytes(group, chunk);
  }

  // An item at its place in Megatron's order.
  struct Turn {
    Item item;
    bool is_object = false;
    GreedyTurn greedy;
    std::string_view name;
  };

  std::vector<Turn> greedy_turns() {
    std::vector<Turn> turns;
    for (const Item& item : shared_tensors()) {
      const uint64_t holders = listed_of(item.group).holders_of(item.chunk).size();
      turns.push_back({item, false, {false, holders, item.weight}, body_.name(item.group)});
    }
    for (const Item& item : give_single_objects()) {
      const GroupMember& first = body_.merged.objects.of(item.group)[0];
      turns.push_back({item,
                       true,
                       {false, object_holders(item.group).size(), item.weight},
                       body_.description(first).catalog.object_name(first.entry)});
    }
    std::ranges::stable_sort(turns, [](const Turn& a, const Turn& b) {
      return a.greedy != b.greedy ? a.greedy < b.greedy : a.name < b.name;
    });
    return turns;
  }

  void choose_greedily() {
    for (const Turn& turn : greedy_turns()) {
      if (turn.is_object) {
        give_object(turn.item);
      } else {
        balance_listed(turn.item);
      }
    }
  }

  // Chunks hold bytes, so a rank that writes one bears a load.
  void note_writers() {
    for (size_t r = 0; r < body_.loads.size(); ++r) {
      if (body_.loads[r] != 0) body_.writes_nothing[r] = false;
    }
  }

  std::span<const uint32_t> object_holders(size_t group) const {
    return body_.maps[body_.object_maps[group]].of(0);
  }

  uint64_t object_bytes(size_t group) const {
    return body_.object(body_.merged.objects.of(group)[0]).size_bytes;
  }

  // Gives objects with one holder to it, and all to the lowest where that is the rule; the others.
  std::vector<Item> give_single_objects() {
    for (const SymbolicPart& part : body_.ranks.parts) {
      for (const uint64_t bytes : part.object_sizes)
        body_.loads[static_cast<size_t>(part.rank)] += bytes;
      if (!part.object_sizes.empty()) body_.writes_nothing[static_cast<size_t>(part.rank)] = false;
    }
    std::vector<Item> items;
    for (uint32_t g = 0; g < body_.object_maps.size(); ++g) {
      const std::span<const uint32_t> holders = object_holders(g);
      if (lowest() || holders.size() == 1) {
        body_.loads[holders[0]] += object_bytes(g);
      } else {
        items.push_back({object_bytes(g), g});
      }
    }
    return items;
  }

  void give_object(const Item& item) {
    const std::span<const uint32_t> holders = object_holders(item.group);
    const size_t lightest =
        lightest_of(holders, [this](uint32_t rank) { return body_.loads[rank]; });
    body_.object_replicas[item.group] = static_cast<uint32_t>(lightest);
    body_.loads[holders[lightest]] += item.weight;
  }

  // An object is one column of its bytes.
  void balance_objects() {
    std::vector<Item> items = give_single_objects();
    sort(&items);
    std::map<uint64_t, ColumnRun> runs;  // stay where they are
    for (const Item& item : items) {
      constexpr uint64_t kBits = 8;
      const ColumnRun& run =
          runs.try_emplace(item.weight, ColumnRun{0, 1, static_cast<int64_t>(item.weight)})
              .first->second;
      const HolderMap& map = body_.maps[body_.object_maps[item.group]];
      body_.object_replicas[item.group] = lockstep_.choose({&map, {&run, 1}, kBits}, map.most());
    }
    lockstep_.settle();
  }

  // What is stored is the owner's object, which may have another size when nobody compared them.
  void settle_object(size_t group) {
    const uint32_t owner = body_.object_owner(group);
    const GroupMember& member = body_.member_of(body_.merged.objects, group, owner);
    body_.loads[owner] += body_.object(member).size_bytes - object_bytes(group);
    body_.writes_nothing[owner] = false;
  }

  SymbolicBody& body_;
  Lockstep lockstep_;
  std::vector<std::vector<ColumnRun>> runs_;  // of each grid
};

}  // namespace

void choose_writers(SymbolicBody* body) {
  Writers(body).run();
}

}  // namespace shardwright::plan::internal
