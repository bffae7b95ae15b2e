// SPDX-License-Identifier: Apache-2.0
//
// What each rank writes, as bits over what it described. Tensors that are cut by a rule are written
// by the ranks at one place among the holders of their columns: the ranks of a description at equal
// places of equal maps have equal bits, which are put together once.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "core/base/huge_pages.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan {
namespace internal {
namespace {

constexpr uint64_t kWordBits = 64;

uint64_t words_for(uint64_t bits) {
  return (bits + kWordBits - 1) / kWordBits;
}

void set(uint64_t bit, std::vector<uint64_t>* words) {
  (*words)[bit / kWordBits] |= uint64_t{1} << bit % kWordBits;
}

class WriteLister {
 public:
  WriteLister(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged)
      : ranks_(ranks), entries_(entries), merged_(merged) {}

  RankWrites run() {
    const size_t count = ranks_.rank_count();
    out_.bytes.assign(count, 0);
    out_.item_counts.assign(count, 0);
    kept_.description_of_rank = ranks_.description_of_rank;
    for (uint32_t r = 0; r < count; ++r) kept_.bit_counts.push_back(ranks_.of(r).bit_count());
    place_ruled();
    list_more();
    count_ruled();
    count_boxes();
    count_objects();
    find_orders();
    return std::move(out_);
  }

 private:
  uint64_t tensor_count(uint32_t description) const {
    return ranks_.descriptions[description].forms.size();
  }
  uint64_t entry_count(uint32_t description) const {
    return tensor_count(description) + ranks_.descriptions[description].catalog.objects.size();
  }

  // The bit of an entry for all ranks of the description at that place of the map.
  void place(uint32_t description, uint32_t map, uint32_t replica, uint64_t bit) {
    std::vector<KeptItems::Placed>& of_maps = kept_.of_description[description];
    auto found = std::ranges::find(of_maps, map, &KeptItems::Placed::map);
    if (found == of_maps.end()) {
      of_maps.push_back({map, std::vector<std::vector<uint64_t>>(merged_.maps[map].most())});
      found = of_maps.end() - 1;
      if (kept_.places[map].empty())
        kept_.places[map] = merged_.maps[map].positions(ranks_.rank_count());
    }
    std::vector<uint64_t>& words = found->of_place[replica];
    words.resize(words_for(entry_count(description)), 0);
    set(bit, &words);
  }

  void place_ruled() {
    kept_.of_description.resize(ranks_.descriptions.size());
    kept_.places.resize(merged_.maps.size());
    for (size_t t = 0; t < merged_.tensors.size(); ++t) {
      const TensorSource& tensor = merged_.tensors[t];
      if (!tensor.is_ruled() || merged_.catalog.tensors[t].chunk_count == 0) continue;
      for (const Member& member : entries_.tensors.of(tensor.entry.group)) {
        if (ranks_.descriptions[member.description].forms[member.entry] != kNothing)
          place(member.description, tensor.map, tensor.replica, member.entry);
      }
    }
    for (const ObjectSource& object : merged_.objects) {
      if (object.map == kByBoxes) continue;
      for (const Member& member : entries_.objects.of(object.entry.group)) {
        place(member.description, object.map, object.replica,
              tensor_count(member.description) + member.entry);
      }
    }
  }

  // Calls visit(rank, bit) for what is written by no rule.
  template <typename Visit>
  void for_each_single(const Visit& visit) const {
    for (size_t box = 0; box < merged_.box_count(); ++box) {
      const ItemHolder& owner = merged_.owner_of(box);
      visit(owner.rank, bit_of(owner));
    }
    for (const ObjectSource& object : merged_.objects) {
      if (object.map != kByBoxes) continue;
      const CatalogEntry& own = object.entry;
      visit(own.rank, tensor_count(ranks_.description_of_rank[own.rank]) + own.entry);
    }
  }

  void list_more() {
    kept_.begins.assign(ranks_.rank_count() + 1, 0);
    for_each_single([&](uint32_t rank, uint64_t) { ++kept_.begins[rank + 1]; });
    for (size_t r = 0; r < ranks_.rank_count(); ++r) kept_.begins[r + 1] += kept_.begins[r];
    std::vector<uint64_t> next(kept_.begins.begin(), kept_.begins.end() - 1);
    reserve_large(&kept_.more, kept_.begins.back());
    kept_.more.resize(kept_.begins.back());
    for_each_single([&](uint32_t rank, uint64_t bit) {
      kept_.more[next[rank]++] = static_cast<uint32_t>(bit);
    });
  }

  void count_boxes() {
    const Catalog& catalog = merged_.catalog;
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      if (merged_.tensors[t].is_ruled()) continue;
      const SplitDims split = split_dims(catalog, t);
      for (uint64_t k = 0; k < tensor.chunk_count; ++k) {
        const uint32_t rank = merged_.owner_of(tensor.box_begin + k).rank;
        const int64_t elements = chunk_elements(catalog, tensor, split, tensor.chunk_begin + k);
        ++out_.item_counts[rank];
        out_.bytes[rank] += packed_bytes(merged_.bits(t), elements);
      }
    }
  }

  // Of a box, or of a tensor that a rank has by a rule.
  uint64_t bit_of(const ItemHolder& holder) const {
    const uint32_t description = ranks_.description_of_rank[holder.rank];
    const size_t boxes = ranks_.part(holder.rank).boxes.size();
    if (holder.item < boxes) return entry_count(description) + holder.item;
    return holder.item - boxes - ranks_.descriptions[description].catalog.objects.size();
  }

  // Tensors of one grid, map, replica and width are counted together.
  void count_ruled() {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, uint32_t> counts;
    for (size_t t = 0; t < merged_.tensors.size(); ++t) {
      const TensorSource& tensor = merged_.tensors[t];
      if (tensor.is_ruled()) ++counts[{tensor.grid, tensor.map, tensor.replica, merged_.bits(t)}];
    }
    std::vector<ColumnRun> runs;
    uint32_t runs_of = kByBoxes;
    for (const auto& [kind, count] : counts) {
      const auto [grid, map, replica, bits] = kind;
      if (runs_of != grid) runs = merged_.grids[runs_of = grid].runs();
      for (const ColumnRun& run : runs) {
        const uint64_t bytes = packed_bytes(bits, run.elements) * count;
        for (uint32_t column = run.first; column < run.first + run.count; ++column) {
          const uint32_t rank = merged_.maps[map].of(column)[replica];
          out_.bytes[rank] += bytes;
          out_.item_counts[rank] += count;
        }
      }
    }
  }

  void count_objects() {
    for (size_t i = 0; i < merged_.objects.size(); ++i) {
      const uint32_t rank = merged_.owner_of_object(i);
      out_.bytes[rank] += merged_.catalog.objects[i].size_bytes;
      ++out_.item_counts[rank];
    }
  }

  // Where entries stand in the catalog.
  struct Places {
    std::vector<uint64_t> of_group;
    std::vector<std::vector<uint64_t>> of_own;  // of the first rank of each description
  };

  template <typename Sources>
  Places places_of(const EntryGroups& groups, const Sources& sources) const {
    Places places;
    places.of_group.resize(groups.size());
    places.of_own.resize(ranks_.descriptions.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      const CatalogEntry& entry = sources[i].entry;
      const uint32_t description = ranks_.description_of_rank[entry.rank];
      if (entry.group != kOwnEntry) {
        places.of_group[entry.group] = i;
      } else if (ranks_.first_ranks[description] == entry.rank) {
        places.of_own[description].resize(groups.group_of[description].size(), 0);
        places.of_own[description][entry.entry] = i;
      }
    }
    return places;
  }

  // Appends the entries of the description in catalog order, numbered from base.
  static void append_order(const Places& places, const EntryGroups& groups, uint32_t description,
                           bool first_rank, uint32_t base, std::vector<uint32_t>* order) {
    // What a later rank has of its own comes after all that ranks before it have.
    constexpr uint64_t kLast = uint64_t{1} << 63;
    const std::vector<uint32_t>& group_of = groups.group_of[description];
    std::vector<std::pair<uint64_t, uint32_t>> keys;
    keys.reserve(group_of.size());
    for (uint32_t i = 0; i < group_of.size(); ++i) {
      uint64_t key = kLast + i;
      if (group_of[i] != kOwnEntry) {
        key = places.of_group[group_of[i]];
      } else if (first_rank) {
        key = places.of_own[description][i];
      }
      keys.emplace_back(key, base + i);
    }
    if (!std::ranges::is_sorted(keys)) std::ranges::sort(keys);
    for (const auto& [key, entry] : keys) order->push_back(entry);
  }

  void find_orders() {
    const Places tensors = places_of(entries_.tensors, merged_.tensors);
    const Places objects = places_of(entries_.objects, merged_.objects);
    kept_.order_of_rank.assign(ranks_.rank_count(), KeptItems::kAsDescribed);
    // Of each description: the order of its first rank and that of the others.
    std::vector<std::array<uint32_t, 2>> numbers(ranks_.descriptions.size());
    for (uint32_t d = 0; d < numbers.size(); ++d) {
      for (const bool first : {false, true}) {
        std::vector<uint32_t> order;
        const auto base = static_cast<uint32_t>(tensor_count(d));
        append_order(tensors, entries_.tensors, d, first, 0, &order);
        append_order(objects, entries_.objects, d, first, base, &order);
        numbers[d][first ? 1 : 0] = KeptItems::kAsDescribed;
        if (std::ranges::is_sorted(order)) continue;
        numbers[d][first ? 1 : 0] = static_cast<uint32_t>(kept_.orders.size());
        kept_.orders.push_back(std::move(order));
      }
    }
    for (uint32_t r = 0; r < ranks_.rank_count(); ++r) {
      const uint32_t d = ranks_.description_of_rank[r];
      kept_.order_of_rank[r] = numbers[d][ranks_.first_ranks[d] == r ? 1 : 0];
    }
  }

  const RankPlans& ranks_;
  const MergedEntries& entries_;
  const Merged& merged_;
  RankWrites out_;
  KeptItems& kept_ = out_.kept;
};

}  // namespace
}  // namespace internal

std::vector<uint64_t> KeptItems::bits(size_t rank) const {
  std::vector<uint64_t> words(internal::words_for(bit_counts[rank]), 0);
  for (const Placed& each : of_description[description_of_rank[rank]]) {
    const std::vector<uint64_t>& placed = each.of_place[places[each.map][rank]];
    for (size_t w = 0; w < placed.size(); ++w) words[w] |= placed[w];
  }
  for (uint64_t i = begins[rank]; i < begins[rank + 1]; ++i) internal::set(more[i], &words);
  return words;
}

namespace internal {

RankWrites list_writes(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged) {
  return WriteLister(ranks, entries, merged).run();
}

}  // namespace internal
}  // namespace shardwright::plan
