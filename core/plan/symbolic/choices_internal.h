// SPDX-License-Identifier: Apache-2.0
//
// Choices: which of its holders writes each chunk that several ranks hold, in compressed form. Items
// (one size of one tensor, or one object) that are chosen one after the other over the same columns
// make a batch. In a batch every column follows a pattern: for each item in turn, the number of the
// holder that takes it. Columns whose holders bear equal loads follow one pattern, so a regular job
// has few runs and few patterns however many ranks it has. Built once, then immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::plan::internal {

// What a batch is made of: the columns of a group that hold `elements` (0 for objects).
struct OpenItem {
  uint64_t weight = 0;
  uint32_t group = 0;
  int64_t elements = 0;  // of a listed tensor: number of its chunk
  uint32_t holders = 0;  // only of columns with so many; 0 = of all
};

class Choices {
 public:
  // Begins a batch of these items, whose columns have up to most_holders holders.
  void begin_batch(std::span<const OpenItem> items, uint32_t most_holders);
  // picks: one holder number per item. The pattern's number in the batch.
  uint32_t add_pattern(std::span<const uint32_t> picks);
  // The next column of the batch, ascending.
  void set_column(uint32_t column, uint32_t pattern);
  // After the last batch; groups are numbered below group_count.
  void index(size_t group_count);

  // Number of the holder that takes the chunk in this column. item: its group, the elements that the
  // column holds, and how many hold it, which are several.
  uint32_t holder(const OpenItem& item, uint32_t column) const;
  size_t batch_count() const { return batches_.size(); }
  size_t run_count() const { return runs_.size(); }

 private:
  struct Batch {
    size_t runs_begin = 0;
    size_t picks_begin = 0;  // bytes
    uint32_t item_count = 0;
    uint32_t pick_bytes = 1;  // 1, 2 or 4 per pick
    uint32_t pattern_count = 0;
  };
  struct Run {
    uint32_t first_column = 0;
    uint32_t pattern = 0;
  };
  struct Place {
    uint32_t group = 0;
    uint32_t batch = 0;
    uint32_t item = 0;  // in the batch
    int64_t elements = 0;
    uint32_t holders = 0;
  };

  std::vector<Batch> batches_;
  std::vector<Run> runs_;
  std::vector<uint8_t> picks_;
  std::vector<Place> places_;           // by group after index()
  std::vector<uint32_t> place_begins_;  // one more than groups
};

}  // namespace shardwright::plan::internal
