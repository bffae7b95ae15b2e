// SPDX-License-Identifier: Apache-2.0
//
// Writes chunks that are a grid in row-major order as one. Splits and rank maps are numbered anew
// as tensors name them first, and boxes that are left move together.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "core/base/hash_index.h"
#include "core/plan/catalog.h"
#include "core/plan/grid_reader_internal.h"

namespace shardwright::plan {
namespace {

template <typename Value>
uint64_t hash_of(std::span<const Value> values, uint64_t seed) {
  return XXH3_64bits_withSeed(values.data(), values.size_bytes(), seed);
}

uint64_t hash_of(const DimSplit& split) {
  return hash_of(split.runs(), split.repeats());
}

uint64_t hash_of(const RankMap& map) {
  const uint64_t seed = map.count() ^ static_cast<uint64_t>(map.base()) << 32;
  return map.is_affine() ? hash_of(map.levels(), seed) : hash_of(map.column(), seed);
}

// Gives equal values of a column one number. The column must outlive it and is empty at first.
template <typename Value>
class Numbering {
 public:
  explicit Numbering(std::vector<Value>* column) : column_(*column) {}
  uint32_t of(Value value) {
    // Neighbours mostly have the same.
    if (!column_.empty() && column_.back() == value) return last();
    const uint64_t hash = hash_of(value);
    const auto found = index_.find(hash, [&](size_t i) { return column_[i] == value; });
    if (found.has_value()) return static_cast<uint32_t>(*found);
    column_.push_back(std::move(value));
    index_.reserve(column_.size(), [this](size_t i) { return hash_of(column_[i]); });
    index_.insert(hash, last());
    return last();
  }

 private:
  uint32_t last() const { return static_cast<uint32_t>(column_.size() - 1); }
  std::vector<Value>& column_;
  HashIndex index_;
};

class Compaction {
 public:
  explicit Compaction(Catalog* catalog)
      : catalog_(*catalog),
        reader_(*catalog),
        new_splits_(&catalog->splits),
        new_maps_(&catalog->rank_maps) {
    catalog_.splits.swap(splits_);
    catalog_.grids.swap(grids_);
    catalog_.rank_maps.swap(rank_maps_);
    split_numbers_.assign(splits_.size(), kUnnumbered);
    map_numbers_.assign(rank_maps_.size(), kUnnumbered);
  }

  void run() {
    std::vector<TensorRecord> records = catalog_.tensors;  // as they will be
    for (size_t t = 0; t < records.size(); ++t) {
      if (records[t].is_grid()) {
        renumber(&records[t]);
      } else if (reader_.read(t)) {
        write_grid(&records[t]);
      }
    }
    drop_boxes(&records);
    catalog_.tensors = std::move(records);
  }

 private:
  static constexpr uint32_t kUnnumbered = 0xFFFFFFFF;

  // Of a tensor that was a grid: splits and map where they come first now.
  void renumber(TensorRecord* record) {
    const uint64_t begin = record->grid_begin;
    record->grid_begin = catalog_.grids.size();
    for (uint32_t k = 0; k < internal::split_count(*record); ++k) {
      const uint32_t split = grids_[begin + k];
      if (split_numbers_[split] == kUnnumbered)
        split_numbers_[split] = new_splits_.of(std::move(splits_[split]));
      catalog_.grids.push_back(split_numbers_[split]);
    }
    uint32_t& map = map_numbers_[record->rank_map];
    if (map == kUnnumbered) map = new_maps_.of(std::move(rank_maps_[record->rank_map]));
    record->rank_map = map;
  }

  // Of what the reader has read.
  void write_grid(TensorRecord* record) {
    record->grid_begin = catalog_.grids.size();
    for (uint32_t k = 0; k < reader_.count(); ++k) {
      if (reader_.sizes(k).size() == 1) {  // a box that was not kept did not cover it whole
        record->split_mask &= ~(uint64_t{1} << reader_.dim(k));
      } else {
        catalog_.grids.push_back(new_splits_.of(DimSplit::of_sizes(reader_.sizes(k))));
      }
    }
    ranks_.clear();
    for (uint64_t c = 0; c < record->chunk_count; ++c)
      ranks_.push_back(catalog_.boxes[record->box_begin + c].place);
    record->rank_map = new_maps_.of(RankMap::of(ranks_));
    record->box_begin = 0;
    record->more_begin = 0;
  }

  // Those of tensors that became grids.
  void drop_boxes(std::vector<TensorRecord>* records) {
    size_t boxes = 0;
    size_t more = 0;
    for (size_t t = 0; t < records->size(); ++t) {
      TensorRecord& record = (*records)[t];
      if (record.is_grid()) continue;
      const TensorRecord& from = catalog_.tensors[t];
      record.box_begin = boxes;
      record.more_begin = more;
      move_down(&catalog_.boxes, from.box_begin, from.chunk_count, &boxes);
      move_down(&catalog_.more, from.more_begin,
                from.chunk_count * internal::more_per_chunk(internal::split_count(from)), &more);
    }
    catalog_.boxes.resize(boxes);
    catalog_.more.resize(more);
  }

  // `count` elements from begin on to *to, which does not lie behind them.
  template <typename Value>
  static void move_down(std::vector<Value>* column, uint64_t begin, uint64_t count, size_t* to) {
    const auto first = column->begin() + static_cast<std::ptrdiff_t>(begin);
    if (begin != *to)
      std::move(first, first + static_cast<std::ptrdiff_t>(count),
                column->begin() + static_cast<std::ptrdiff_t>(*to));
    *to += count;
  }

  Catalog& catalog_;
  internal::GridReader reader_;
  Numbering<DimSplit> new_splits_;
  Numbering<RankMap> new_maps_;
  std::vector<DimSplit> splits_;  // of the catalog as it was, as are the two below
  std::vector<uint32_t> grids_;
  std::vector<RankMap> rank_maps_;
  std::vector<uint32_t> split_numbers_;  // of splits_ in the catalog as it will be
  std::vector<uint32_t> map_numbers_;
  std::vector<uint32_t> ranks_;
};

}  // namespace

void find_grids(Catalog* catalog) {
  Compaction(catalog).run();
}

}  // namespace shardwright::plan
