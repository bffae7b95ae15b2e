// SPDX-License-Identifier: Apache-2.0
//
// Numbers the chunks of merged descriptions and says which item of which rank each of them is.
//   row-major  the merged catalog as it is;
//   as kept    ranks in order, each with its items in the order in which it listed them: entries of
//              the result come in the order of their first kept item, chunks of a tensor likewise.
#include <algorithm>
#include <optional>
#include <tuple>

#include "core/base/huge_pages.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint32_t kNobody = 0xFFFFFFFF;

class Numbering {
 public:
  Numbering(const RankPlans& ranks, const MergedEntries& entries, Merged merged,
            const MergePolicy& policy)
      : ranks_(ranks),
        entries_(entries),
        merged_(std::move(merged)),
        holders_(ranks, entries, merged_),
        policy_(policy) {}

  NumberedChunks run() {
    out_.item_begins = item_begins(ranks_);
    reserve_large(&out_.numbers, out_.item_begins.back());
    out_.numbers.assign(out_.item_begins.back(), kNotKept);
    if (policy_.numbering == MergePolicy::Numbering::kRowMajor) {
      number_row_major();
    } else {
      number_as_kept();
    }
    return std::move(out_);
  }

 private:
  uint32_t& number_of(const ItemHolder& holder) {
    return out_.numbers[out_.item_begins[holder.rank] + holder.item];
  }

  void number_row_major() {
    const Catalog& catalog = merged_.catalog;
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      if (merged_.tensors[t].is_ruled()) {
        number_ruled(t);
        continue;
      }
      for (uint64_t k = 0; k < tensor.chunk_count; ++k)
        number_of(merged_.owner_of(tensor.box_begin + k)) = static_cast<uint32_t>(k);
    }
    for (size_t stored = merged_.box_count(); stored < merged_.stored_count(); ++stored)
      number_of(holders_.of(stored)[merged_.chosen[stored]]) = 0;
    for (const TensorSource& tensor : merged_.tensors) tensors_.push_back(tensor.entry);
    for (const ObjectSource& object : merged_.objects) objects_.push_back(object.entry);
    copy_attributes();
    finish_grids(&merged_);
    out_.catalog = std::move(merged_.catalog);
  }

  void number_ruled(size_t t) {
    const TensorSource& tensor = merged_.tensors[t];
    const std::vector<uint32_t> columns = merged_.grids[tensor.grid].chunk_columns();
    for (size_t c = 0; c < columns.size(); ++c) {
      const uint32_t rank = merged_.owner_of_column(tensor, columns[c]);
      const uint32_t entry = entry_of(entries_.tensors, ranks_, tensor.entry, rank);
      number_of({rank, ranks_.of(rank).tensor_item(entry)}) = static_cast<uint32_t>(c);
    }
  }

  // Calls visit(holder) for everyone who writes the stored item.
  template <typename Visit>
  void for_each_writer(size_t stored, const Visit& visit) {
    const std::span<const ItemHolder> holders = holders_.of(stored);
    const bool all = policy_.choice == MergePolicy::Choice::kAll;
    const ItemHolder owner = holders[merged_.chosen[stored]];
    visit(owner);
    for (size_t i = merged_.chosen[stored] + 1; i < holders.size(); ++i) {
      if (!all && !(policy_.twice_on_rank && holders[i].rank == owner.rank)) break;
      visit(holders[i]);
    }
  }

  void number_as_kept() {
    places_.emplace(ranks_);
    std::vector<Entry> entries = number_entries();
    const auto by_first = [](const Entry& a, const Entry& b) {
      return std::tie(a.rank, a.place, a.number) < std::tie(b.rank, b.place, b.number);
    };
    if (!std::ranges::is_sorted(entries, by_first)) std::ranges::sort(entries, by_first);
    const Catalog& from = merged_.catalog;
    const bool arranged = std::ranges::all_of(entries, &Entry::as_merged);
    if (arranged) {
      arrange_merged(entries);
    } else {
      size_t kept = 0;
      for (const Entry& entry : entries) kept += entry.chunks;
      reserve_large(&out_.catalog.boxes, kept);
    }
    out_.catalog.tensors.reserve(from.tensors.size());
    out_.catalog.shapes.reserve(from.shapes.size());
    for (const Entry& entry : entries) {
      if (entry.number < from.tensors.size()) {
        place_tensor(entry, arranged);
      } else {
        place_object(static_cast<uint32_t>(entry.number - from.tensors.size()));
      }
    }
    out_.catalog.texts = std::move(merged_.catalog.texts);
    find_grids(&out_.catalog);
    copy_attributes();
  }

  // One item that is kept.
  struct Kept {
    ItemHolder holder;
    uint32_t place = 0;
  };
  // An entry of the merged catalog, tensors first, and where it was kept first.
  struct Entry {
    uint32_t rank = kNobody;
    uint32_t place = 0;
    uint32_t number = 0;
    uint32_t chunks = 0;    // that are kept
    bool as_merged = true;  // they are those of the merged catalog, in its order
  };

  // Kept items of an entry by rank and place. True when they are its stored items as they stand.
  bool gather_kept(size_t entry) {
    kept_.clear();
    bool sorted = true;
    const auto items = merged_.stored_of(entry);
    for (const size_t stored : items) {
      for_each_writer(stored, [&](const ItemHolder& holder) {
        const Kept kept{holder, places_->of(holder)};
        sorted = sorted && (kept_.empty() || !before(kept, kept_.back()));
        kept_.push_back(kept);
      });
    }
    if (!sorted) std::ranges::sort(kept_, before);
    return sorted && kept_.size() == items.size();
  }
  static bool before(const Kept& a, const Kept& b) {
    return std::tie(a.holder.rank, a.place) < std::tie(b.holder.rank, b.place);
  }

  // Tensors of which nobody lists a box come last.
  std::vector<Entry> number_entries() {
    const size_t tensors = merged_.tensors.size();
    std::vector<Entry> entries(tensors + merged_.objects.size());
    for (uint32_t e = 0; e < entries.size(); ++e) {
      Entry& entry = entries[e];
      entry.number = e;
      const bool as_stored = gather_kept(e);
      const bool is_tensor = e < tensors;
      for (uint32_t k = 0; k < kept_.size(); ++k) number_of(kept_[k].holder) = is_tensor ? k : 0;
      if (is_tensor) {
        entry.as_merged = as_stored && !merged_.uneven[e];
        entry.chunks = static_cast<uint32_t>(kept_.size());
      }
      if (kept_.empty()) continue;
      entry.rank = kept_[0].holder.rank;
      entry.place = kept_[0].place;
    }
    return entries;
  }

  // All boxes as they are kept, in the column of the merged catalog itself: they name their owners
  // already. Tensors that keep its order move towards the beginning; those behind the first that
  // does not are put aside before.
  void arrange_merged(std::span<const Entry> entries) {
    std::vector<ChunkRecord>& chunks = merged_.catalog.boxes;
    std::vector<uint32_t> tensors;  // of the merged catalog, in the order of the result
    for (const Entry& entry : entries) {
      if (entry.number < merged_.catalog.tensors.size()) tensors.push_back(entry.number);
    }
    const auto ordered =
        static_cast<size_t>(std::ranges::is_sorted_until(tensors) - tensors.begin());
    const auto each_chunk = [&](size_t begin, size_t end, const auto& visit) {
      for (size_t t = begin; t < end; ++t) {
        const TensorRecord& tensor = merged_.catalog.tensors[tensors[t]];
        for (uint64_t c = tensor.box_begin; c < tensor.box_begin + tensor.chunk_count; ++c) {
          chunks[c].tensor = static_cast<uint32_t>(t);
          visit(chunks[c]);
        }
      }
    };
    uint64_t later = 0;
    for (size_t t = ordered; t < tensors.size(); ++t)
      later += merged_.catalog.tensors[tensors[t]].chunk_count;
    std::vector<ChunkRecord> aside;
    reserve_large(&aside, later);
    each_chunk(ordered, tensors.size(), [&](const ChunkRecord& chunk) { aside.push_back(chunk); });
    auto to = chunks.begin();
    each_chunk(0, ordered, [&](const ChunkRecord& chunk) { *to++ = chunk; });
    std::ranges::copy(aside, to);
    out_.catalog.boxes = std::move(chunks);
  }

  // arranged: its chunks are in the column already.
  void place_tensor(const Entry& entry, bool arranged) {
    Catalog& to = out_.catalog;
    const Catalog& from = merged_.catalog;
    const std::span<const int64_t> shape = from.shape(entry.number);
    TensorRecord record = from.tensors[entry.number];
    if (entry.as_merged) {
      for (uint64_t c = 0; !arranged && c < record.chunk_count; ++c) {
        to.boxes.push_back(from.boxes[record.box_begin + c]);
        to.boxes.back().tensor = static_cast<uint32_t>(to.tensors.size());
      }
      const auto pairs = std::span(from.more).subspan(
          record.more_begin, record.chunk_count * more_per_chunk(split_count(record)));
      record.more_begin = to.more.size();
      to.more.insert(to.more.end(), pairs.begin(), pairs.end());
    } else {
      record.more_begin = to.more.size();
      gather_kept(entry.number);
      for (const Kept& kept : kept_) copy_kept(kept, record.split_mask, shape);
    }
    record.shape_begin = to.shapes.size();
    record.chunk_begin = record.box_begin = placed_;
    record.chunk_count = entry.chunks;
    placed_ += entry.chunks;
    to.shapes.insert(to.shapes.end(), shape.begin(), shape.end());
    to.tensors.push_back(record);
    tensors_.push_back(merged_.tensors[entry.number].entry);
  }

  // The box as its writer lists it, in the split dimensions of the merged tensor.
  void copy_kept(const Kept& kept, uint64_t split_mask, std::span<const int64_t> shape) {
    const Box box = ranks_.of(kept.holder.rank).box_of(kept.holder.item);
    ChunkRecord record;
    record.tensor = static_cast<uint32_t>(out_.catalog.tensors.size());
    record.place = kept.holder.rank;
    pack_box(split_dims(shape, split_mask), box, &record, &out_.catalog.more);
    out_.catalog.boxes.push_back(record);
  }

  void place_object(uint32_t from) {
    out_.catalog.objects.push_back(merged_.catalog.objects[from]);
    out_.listing.object_begins.push_back(static_cast<uint32_t>(out_.catalog.tensors.size()));
    objects_.push_back(merged_.objects[from].entry);
  }

  void copy_attributes() {
    std::vector<std::string_view> texts;
    texts.reserve(tensors_.size() + objects_.size());
    for (const CatalogEntry& first : tensors_)
      texts.push_back(ranks_.part(first.rank).listing.attribute(first.entry));
    for (const CatalogEntry& first : objects_) {
      const RankView rank = ranks_.of(first.rank);
      texts.push_back(rank.part.listing.attribute(rank.description.forms.size() + first.entry));
    }
    if (std::ranges::all_of(texts, &std::string_view::empty)) return;
    Listing& listing = out_.listing;
    for (const std::string_view text : texts) {
      listing.attributes.insert(listing.attributes.end(), text.begin(), text.end());
      listing.attribute_ends.push_back(listing.attributes.size());
    }
  }

  const RankPlans& ranks_;
  const MergedEntries& entries_;
  Merged merged_;
  StoredHolders holders_;
  const MergePolicy& policy_;
  NumberedChunks out_;
  std::optional<ListedPlaces> places_;  // of items that are numbered as kept
  uint64_t placed_ = 0;                 // chunks of the tensors that are placed
  std::vector<Kept> kept_;              // of the tensor at hand
  std::vector<CatalogEntry> tensors_;   // in the order of the result
  std::vector<CatalogEntry> objects_;
};

}  // namespace

NumberedChunks number_chunks(const RankPlans& ranks, const MergedEntries& entries, Merged merged,
                             const MergePolicy& policy) {
  return Numbering(ranks, entries, std::move(merged), policy).run();
}

}  // namespace shardwright::plan::internal
