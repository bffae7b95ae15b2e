// SPDX-License-Identifier: Apache-2.0
//
// What each rank writes, as bits over what it described. Tensors that are cut by a rule are written
// by the ranks at one place among the holders of their columns: the ranks of a description at equal
// places of equal maps have equal bits, which are put together once.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
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
    add_columns(merged_, Columns::kAll, out_.bytes, out_.item_counts);
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
    for (size_t i = 0; i < merged_.objects.size(); ++i) {
      const ObjectSource& object = merged_.objects[i];
      if (object.map == kByBoxes) continue;
      for (const Member& member : entries_.objects.of(object.entry.group)) {
        place(member.description, object.map, merged_.chosen[merged_.box_count() + i],
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
    std::inclusive_scan(kept_.begins.begin(), kept_.begins.end(), kept_.begins.begin());
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

  void count_objects() {
    for (size_t i = 0; i < merged_.objects.size(); ++i) {
      const uint32_t rank = merged_.owner_of_object(i);
      out_.bytes[rank] += merged_.catalog.objects[i].size_bytes;
      ++out_.item_counts[rank];
    }
  }

  // Appends the entries of the description in catalog order, numbered from base. Groups are
  // numbered in that order. What the rank lists first of all comes after what ranks before it have.
  static void append_order(const EntryGroups& groups, uint32_t description, bool first_rank,
                           uint32_t base, std::vector<uint32_t>* order) {
    const std::vector<uint32_t>& group_of = groups.group_of[description];
    std::vector<std::pair<uint32_t, uint32_t>> keys;
    keys.reserve(group_of.size());
    for (uint32_t i = 0; i < group_of.size(); ++i) {
      const bool is_new = group_of[i] == kOwnEntry ||
                          (first_rank && groups.of(group_of[i])[0].description == description);
      keys.emplace_back(is_new ? kOwnEntry : group_of[i], base + i);
    }
    if (!std::ranges::is_sorted(keys)) std::ranges::sort(keys);
    for (const auto& [key, entry] : keys) order->push_back(entry);
  }

  void find_orders() {
    kept_.order_of_rank.assign(ranks_.rank_count(), KeptItems::kAsDescribed);
    // Of each description: the order of ranks behind its first one, and that of the first.
    std::vector<std::array<uint32_t, 2>> numbers(ranks_.descriptions.size());
    for (uint32_t d = 0; d < numbers.size(); ++d) {
      for (const size_t first : {0U, 1U}) {
        std::vector<uint32_t> order;
        append_order(entries_.tensors, d, first != 0, 0, &order);
        append_order(entries_.objects, d, first != 0, static_cast<uint32_t>(tensor_count(d)),
                     &order);
        numbers[d][first] = KeptItems::kAsDescribed;
        if (std::ranges::is_sorted(order)) continue;
        numbers[d][first] = static_cast<uint32_t>(kept_.orders.size());
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

void add_columns(const Merged& merged, Columns which, std::span<uint64_t> bytes,
                 std::span<uint32_t> items) {
  // Tensors of one grid, map, replica and width are counted together.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>, uint32_t> counts;
  for (size_t t = 0; t < merged.tensors.size(); ++t) {
    const TensorSource& tensor = merged.tensors[t];
    if (tensor.is_ruled() && (which == Columns::kAll || tensor.replicas == 1))
      ++counts[{tensor.grid, tensor.map, tensor.replica, merged.bits(t)}];
  }
  for (const auto& [kind, count] : counts) {
    const auto [grid, map, replica, bits] = kind;
    for (const ColumnRun& run : merged.grids[grid].runs()) {
      const uint64_t run_bytes = packed_bytes(bits, run.elements) * count;
      for (uint32_t column = run.first; column < run.first + run.count; ++column) {
        const uint32_t rank = merged.maps[map].of(column)[replica];
        bytes[rank] += run_bytes;
        if (!items.empty()) items[rank] += count;
      }
    }
  }
}

RankWrites list_writes(const RankPlans& ranks, const MergedEntries& entries, const Merged& merged) {
  return WriteLister(ranks, entries, merged).run();
}

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

}  // namespace shardwright::plan
