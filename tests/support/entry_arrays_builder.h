// SPDX-License-Identifier: Apache-2.0
//
// Fills the flat arrays of plan::EntryArrays entry by entry.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/entry_arrays.h"

namespace shardwright::test {

class EntryArraysBuilder {
 public:
  struct Entry {
    std::string_view name;
    int32_t dtype = 0;  // code + 256 x bits, 0 = a byte object
    int32_t kind = 0;
    std::span<const int64_t> shape = {};
    std::string_view attribute = {};
    uint64_t object_bytes = 0;
    Digest128 digest = {};
    bool secondary = false;  // an object; boxes say it themselves
  };

  // The boxes of a tensor follow.
  void add(const Entry& entry) {
    append(entry.name, &names_, &name_offsets_);
    append(entry.attribute, &attributes_, &attribute_offsets_);
    dtypes_.push_back(entry.dtype);
    kinds_.push_back(entry.kind);
    shapes_.insert(shapes_.end(), entry.shape.begin(), entry.shape.end());
    shape_offsets_.push_back(shapes_.size());
    object_sizes_.push_back(entry.object_bytes);
    digests_.push_back(entry.digest);
    ranges_.push_back(ranges_.back());
    if (entry.dtype == 0) add_box({}, {}, entry.secondary);
  }

  // One box of the entry that was added last.
  void add_box(std::span<const int64_t> offsets, std::span<const int64_t> sizes,
               bool secondary = false) {
    offsets_.insert(offsets_.end(), offsets.begin(), offsets.end());
    sizes_.insert(sizes_.end(), sizes.begin(), sizes.end());
    secondary_.push_back(secondary ? 1 : 0);
    ++ranges_.back();
  }

  // Another order of the boxes and objects than that of the entries.
  void set_order(std::vector<uint64_t> order) { order_ = std::move(order); }
  uint64_t item_count() const { return ranges_.back(); }

  // Views this builder until the next change.
  plan::EntryArrays arrays() const {
    plan::EntryArrays made;
    made.count = dtypes_.size();
    made.names = {names_, name_offsets_};
    made.dtypes = dtypes_;
    made.kinds = kinds_;
    made.shapes = shapes_.data();
    made.shape_offsets = shape_offsets_;
    made.box_ranges = ranges_;
    made.box_offsets = offsets_.data();
    made.box_sizes = sizes_.data();
    made.order = order_.empty() ? nullptr : order_.data();
    made.secondary = secondary_.data();
    made.object_sizes = object_sizes_;
    made.attributes = {attributes_, attribute_offsets_};
    made.digests = digests_;
    return made;
  }

 private:
  static void append(std::string_view text, std::vector<char>* blob, std::vector<uint64_t>* ends) {
    blob->insert(blob->end(), text.begin(), text.end());
    ends->push_back(blob->size());
  }

  std::vector<char> names_, attributes_;
  std::vector<uint64_t> name_offsets_ = {0}, attribute_offsets_ = {0}, shape_offsets_ = {0};
  std::vector<int32_t> dtypes_, kinds_;
  std::vector<int64_t> shapes_, offsets_, sizes_;
  std::vector<uint64_t> ranges_ = {0}, order_, object_sizes_;
  std::vector<uint8_t> secondary_;
  std::vector<Digest128> digests_;
};

}  // namespace shardwright::test
