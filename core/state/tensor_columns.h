// SPDX-License-Identifier: Apache-2.0
//
// TensorColumns: the tensor entries of a state as flat columns, 32 bytes and its extents per plain
// tensor; 16 more where tensors have layouts. Reads like a list of TensorRef, whose pointers hold
// until the columns change. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/text_column.h"
#include "core/state/tensor_entry.h"

namespace shardwright {

class TensorColumns {
 public:
  size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }
  TensorRef operator[](size_t index) const;
  std::string_view name(size_t index) const { return names_[index]; }
  // Whether another rank saves some of them.
  bool has_replicas() const { return replicas_ > 0; }
  // Whether some tensor has a layout.
  bool has_layouts() const { return !layouts_.empty(); }

  class Iterator {
   public:
    Iterator(const TensorColumns* columns, size_t index) : columns_(columns), index_(index) {}
    TensorRef operator*() const { return (*columns_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const TensorColumns* columns_;
    size_t index_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // Copies everything but the memory, with path in place of the tensor's own. The caller checked
  // the tensor.
  void append(const TensorRef& tensor, std::string_view path);
  // Room for that many further tensors with that many bytes of names.
  void reserve_more(size_t tensors, size_t name_bytes);
  // Forgets what was appended since the mark, also by an append that threw.
  struct Mark {
    size_t records;
    size_t numbers;
    size_t names;
    size_t paths;
    size_t layouts;
    size_t replicas;
  };
  Mark mark() const;
  void take_back(const Mark& mark);

 private:
  struct Record {
    std::byte* data;
    // Where its numbers begin: local shape; strides when strided; device type, device id and stream
    // when placed; fragments when cut; unless it is plain the global shape, then the offsets of all
    // pieces, their sizes, their local offsets; when scattered the address of each and its strides.
    uint64_t numbers;
    uint32_t piece_count;
    DType dtype;
    EntryKind kind;
    uint8_t local_rank;
    uint8_t global_rank;
    bool strided : 1;
    bool placed : 1;  // not plain CPU memory
    bool plain : 1;   // one piece, which is the whole global and the whole local tensor
    bool read_only : 1;
    bool scattered : 1;  // each piece has memory of its own
    bool replica : 1;
    bool cut : 1;  // has fragments
  };

  void append_numbers(std::span<const int64_t> values) {
    for (const int64_t value : values) numbers_.push_back(value);
  }
  void append_pieces(const TensorRef& tensor);
  void append_path(std::string_view path);
  void append_layout(const Layout::Ptr& layout);

  size_t replicas_ = 0;  // records that are
  std::vector<Record> records_;
  std::vector<int64_t> numbers_;
  TextColumn names_;
  TextColumn paths_;                  // ends at the last path that is not empty
  std::vector<Layout::Ptr> layouts_;  // co-owned with the host; ends at the last that is not null
};

}  // namespace shardwright
