// SPDX-License-Identifier: Apache-2.0
//
// Numbers the chunks of merged descriptions and says which item of which rank each of them is.
//   row-major  the merged catalog as it is;
//   as kept    ranks in order, each with its items in the order in which it listed them: entries of
//              the result come in the order of their first kept item, chunks of a tensor likewise.
#include <algorithm>

#include "core/base/huge_pages.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint32_t kNoEntry = 0xFFFFFFFF;

class Numbering {
 public:
  Numbering(std::span<const LocalView> locals, MergedEntries* groups, Deduplicated merged,
            std::span<const uint32_t> owners, const MergePolicy& policy)
      : locals_(locals),
        groups_(groups),
        merged_(std::move(merged)),
        owners_(owners),
        policy_(policy) {}

  NumberedChunks run() {
    out_.item_begins.reserve(locals_.size() + 1);
    out_.item_begins.push_back(0);
    for (const LocalView& local : locals_)
      out_.item_begins.push_back(out_.item_begins.back() + local.item_count());
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
  uint32_t& number_of(const UnitHolder& holder) {
    return out_.numbers[out_.item_begins[holder.rank] + holder.item];
  }

  void number_row_major() {
    out_.catalog = std::move(merged_.catalog);
    for (const TensorRecord& tensor : out_.catalog.tensors) {
      for (uint64_t k = 0; k < tensor.chunk_count; ++k) {
        const uint64_t unit = tensor.chunk_begin + k;
        number_of(merged_.holders_of(unit)[owners_[unit]]) = static_cast<uint32_t>(k);
      }
    }
    for (size_t unit = out_.catalog.chunks.size(); unit < owners_.size(); ++unit)
      number_of(merged_.holders_of(unit)[owners_[unit]]) = 0;
    for (uint32_t t = 0; t < out_.catalog.tensors.size(); ++t) add_tensor_attribute(t);
    for (uint32_t i = 0; i < out_.catalog.objects.size(); ++i) add_object_attribute(i);
    finish_attributes();
  }

  // Calls visit(holder) for everyone who writes the unit.
  template <typename Visit>
  void for_each_writer(size_t unit, const Visit& visit) const {
    const std::span<const UnitHolder> holders = merged_.holders_of(unit);
    const bool all = policy_.choice == MergePolicy::Choice::kAll;
    const UnitHolder& owner = holders[owners_[unit]];
    visit(owner);
    for (size_t i = owners_[unit] + 1; i < holders.size(); ++i) {
      if (!all && !(policy_.twice_on_rank && holders[i].rank == owner.rank)) break;
      visit(holders[i]);
    }
  }

  // Marks kept items with their entry, tensors first.
  void mark_kept() {
    const Catalog& catalog = merged_.catalog;
    counts_.assign(catalog.tensors.size(), 0);
    for (size_t unit = 0; unit < owners_.size(); ++unit) {
      const bool chunk = unit < catalog.chunks.size();
      const auto entry =
          static_cast<uint32_t>(chunk ? catalog.chunks[unit].tensor
                                      : catalog.tensors.size() + unit - catalog.chunks.size());
      for_each_writer(unit, [&](const UnitHolder& holder) {
        number_of(holder) = entry;
        if (chunk) ++counts_[entry];
      });
    }
  }

  void number_as_kept() {
    mark_kept();
    const Catalog& from = merged_.catalog;
    const auto tensors = static_cast<uint32_t>(from.tensors.size());
    placed_.assign(tensors, kNoEntry);
    object_placed_.assign(from.objects.size(), false);
    next_.assign(tensors, 0);
    out_.catalog.tensors.reserve(tensors);
    uint64_t chunks = 0;
    for (const uint64_t count : counts_) chunks += count;
    reserve_large(&out_.catalog.chunks, chunks);
    out_.catalog.chunks.resize(chunks);
    out_.catalog.shapes.reserve(from.shapes.size());
    std::vector<uint32_t> scratch;
    for (const LocalView& local : locals_) {
      const uint64_t begin = out_.item_begins[static_cast<size_t>(local.rank)];
      for_each_listed(local, &scratch, [&](uint32_t item) {
        uint32_t& number = out_.numbers[begin + item];
        if (number == kNotKept) return;
        number =
            number < tensors ? place_chunk(local, item, number) : place_object(number - tensors);
      });
    }
    // Tensors of which nobody lists a box.
    for (uint32_t t = 0; t < tensors; ++t) {
      if (placed_[t] == kNoEntry) place_tensor(t);
    }
    out_.catalog.texts = std::move(merged_.catalog.texts);
    finish_attributes();
  }

  // The chunk's number in its tensor.
  uint32_t place_chunk(const LocalView& local, uint32_t item, uint32_t from) {
    if (placed_[from] == kNoEntry) place_tensor(from);
    Catalog& catalog = out_.catalog;
    const TensorRecord& tensor = catalog.tensors[placed_[from]];
    const uint32_t number = next_[from]++;
    ChunkRecord& record = catalog.chunks[tensor.chunk_begin + number];
    const ChunkRecord& own = local.catalog.chunks[item];
    const TensorRecord& own_tensor = local.catalog.tensors[own.tensor];
    record.tensor = placed_[from];
    record.place = static_cast<uint32_t>(local.rank);
    if (own_tensor.split_mask == tensor.split_mask && split_count(tensor) <= 2) {
      record.offset0 = own.offset0;
      record.size0 = own.size0;
      record.offset1 = own.offset1;
      record.size1 = own.size1;
    } else {
      copy_pairs(local.catalog, own_tensor, item, tensor, number);
    }
    return number;
  }

  // Pairs of a chunk that is split in fewer dimensions than its tensor, or in more than two.
  void copy_pairs(const CatalogView& from, const TensorRecord& own_tensor, uint32_t item,
                  const TensorRecord& tensor, uint32_t number) {
    Catalog& catalog = out_.catalog;
    ChunkRecord& record = catalog.chunks[tensor.chunk_begin + number];
    const SplitDims split = split_dims(catalog, record.tensor);
    uint32_t own = 0;
    for (uint32_t k = 0; k < split.count; ++k) {
      const bool is_own = (own_tensor.split_mask >> split.dims[k] & 1) != 0;
      const ExtentPair pair =
          is_own ? chunk_pair(from, own_tensor, item, own++) : ExtentPair{0, split.extents[k]};
      if (k == 0) {
        record.offset0 = pair.offset;
        record.size0 = pair.size;
      } else if (k == 1) {
        record.offset1 = pair.offset;
        record.size1 = pair.size;
      } else {
        catalog.more[tensor.more_begin + number * more_per_chunk(split.count) + k - 2] = pair;
      }
    }
  }

  void place_tensor(uint32_t from) {
    Catalog& catalog = out_.catalog;
    placed_[from] = static_cast<uint32_t>(catalog.tensors.size());
    TensorRecord record = merged_.catalog.tensors[from];
    const std::span<const int64_t> shape = merged_.catalog.shape(from);
    record.shape_begin = catalog.shapes.size();
    record.chunk_begin = chunk_end_;
    record.chunk_count = counts_[from];
    record.more_begin = catalog.more.size();
    chunk_end_ += counts_[from];
    catalog.more.resize(catalog.more.size() + counts_[from] * more_per_chunk(split_count(record)));
    catalog.shapes.insert(catalog.shapes.end(), shape.begin(), shape.end());
    catalog.tensors.push_back(record);
    add_tensor_attribute(from);
  }

  uint32_t place_object(uint32_t from) {
    if (object_placed_[from]) return 0;
    object_placed_[from] = true;
    out_.catalog.objects.push_back(merged_.catalog.objects[from]);
    out_.listing.object_begins.push_back(static_cast<uint32_t>(out_.catalog.tensors.size()));
    add_object_attribute(from);
    return 0;
  }

  void add_tensor_attribute(uint32_t group) {
    const Member first = groups_->tensors.first(group);
    tensor_attributes_.push_back(locals_[first.rank].listing.attribute(first.entry));
  }
  void add_object_attribute(uint32_t group) {
    const Member first = groups_->objects.of(group)[0];
    const LocalView& local = locals_[first.rank];
    object_attributes_.push_back(
        local.listing.attribute(local.catalog.tensors.size() + first.entry));
  }

  void finish_attributes() {
    const auto has_bytes = [](std::string_view text) { return !text.empty(); };
    if (std::ranges::none_of(tensor_attributes_, has_bytes) &&
        std::ranges::none_of(object_attributes_, has_bytes)) {
      return;
    }
    Listing& listing = out_.listing;
    for (const auto* column : {&tensor_attributes_, &object_attributes_}) {
      for (const std::string_view text : *column) {
        listing.attributes.insert(listing.attributes.end(), text.begin(), text.end());
        listing.attribute_ends.push_back(listing.attributes.size());
      }
    }
  }

  std::span<const LocalView> locals_;
  MergedEntries* groups_;
  Deduplicated merged_;
  std::span<const uint32_t> owners_;
  const MergePolicy& policy_;
  NumberedChunks out_;
  uint64_t chunk_end_ = 0;        // of the tensors placed so far
  std::vector<uint64_t> counts_;  // kept chunks of each merged tensor
  std::vector<uint32_t> placed_;  // where each merged tensor is now, or kNoEntry
  std::vector<bool> object_placed_;
  std::vector<uint32_t> next_;  // number of the next chunk of each merged tensor
  std::vector<std::string_view> tensor_attributes_;  // in the order of the result
  std::vector<std::string_view> object_attributes_;
};

}  // namespace

NumberedChunks number_chunks(std::span<const LocalView> locals, MergedEntries* groups,
                             Deduplicated merged, std::span<const uint32_t> owners,
                             const MergePolicy& policy) {
  return Numbering(locals, groups, std::move(merged), owners, policy).run();
}

}  // namespace shardwright::plan::internal
