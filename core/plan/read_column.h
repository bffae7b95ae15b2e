// SPDX-License-Identifier: Apache-2.0
//
// ReadColumn: the reads of a load plan as flat columns, 24 bytes and two numbers per dimension for
// each. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "core/layout/box.h"

namespace shardwright::plan {

// What is read from where into what.
struct ReadKey {
  uint64_t chunk = 0;  // in the stored catalog
  uint32_t entry = 0;  // tensor in the State
  uint32_t piece = 0;
  friend bool operator==(const ReadKey&, const ReadKey&) = default;
  friend auto operator<=>(const ReadKey&, const ReadKey&) = default;
};

// The common box of stored chunk and wanted piece.
struct ReadItem {
  uint32_t entry = 0;
  uint32_t piece = 0;
  uint64_t chunk = 0;
  Box box;  // in global index space, never empty
};

class ReadColumn {
 public:
  size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }
  const ReadKey& key(size_t read) const { return records_[read].key; }
  // Borrowed until the column changes.
  std::span<const int64_t> offsets(size_t read) const {
    const Record& record = records_[read];
    return {numbers_.data() + begin_of(record), dimensions_of(record)};
  }
  std::span<const int64_t> sizes(size_t read) const {
    const Record& record = records_[read];
    return {numbers_.data() + begin_of(record) + dimensions_of(record), dimensions_of(record)};
  }
  Box box(size_t read) const { return {Dims(offsets(read)), Dims(sizes(read))}; }
  ReadItem operator[](size_t read) const {
    const ReadKey& of = key(read);
    return {of.entry, of.piece, of.chunk, box(read)};
  }

  void reserve(size_t reads, size_t numbers) {
    records_.reserve(reads);
    numbers_.reserve(numbers);
  }
  // Adds `count` reads of boxes of that many dimensions with all values zero.
  void append_blank(size_t count, size_t dimension_count);
  ReadKey& key(size_t read) { return records_[read].key; }
  // Offsets, then sizes.
  int64_t* numbers(size_t read) { return numbers_.data() + begin_of(records_[read]); }
  // Puts the reads from `first` on into the order of their keys.
  void sort_from(size_t first);

 private:
  struct Record {
    ReadKey key;
    uint64_t place = 0;  // begin of the box in numbers_, and its dimensions in the low byte
  };
  static size_t begin_of(const Record& record) { return record.place >> 8; }
  static size_t dimensions_of(const Record& record) { return record.place & 0xFF; }

  std::vector<Record> records_;
  std::vector<int64_t> numbers_;
};

}  // namespace shardwright::plan
