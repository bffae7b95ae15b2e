// SPDX-License-Identifier: Apache-2.0
//
// EntryArrays: entries with their boxes in the flat arrays of a host, as they come through the C
// interface. Views: the host's arrays must outlive them. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/plan/digest.h"

namespace shardwright::plan {

// Texts in a blob: text i lies from offsets[i] to offsets[i + 1]. Without offsets all are empty.
struct TextArray {
  std::span<const char> blob;
  std::span<const uint64_t> offsets;
  std::string_view at(size_t index) const {
    if (offsets.empty()) return {};
    return {blob.data() + offsets[index], offsets[index + 1] - offsets[index]};
  }
};

// The arrays of shw_entry_batch (include/shardwright/planning.h says what each means). Empty spans
// are absent arrays. Offsets ascend inside their blobs; everything else is checked by
// who describes them (save/describe.h).
struct EntryArrays {
  size_t count = 0;
  TextArray names;
  std::span<const int32_t> dtypes;  // code + 256 x bits, 0 = a byte object
  std::span<const int32_t> kinds;
  const int64_t* shapes = nullptr;
  std::span<const uint64_t> shape_offsets;
  std::span<const uint64_t> box_ranges;
  const int64_t* box_offsets = nullptr;
  const int64_t* box_sizes = nullptr;
  const uint64_t* numbers = nullptr;
  const uint64_t* order = nullptr;
  const uint8_t* secondary = nullptr;
  std::span<const uint64_t> object_sizes;
  TextArray paths;
  TextArray attributes;
  std::span<const Digest128> digests;
};

}  // namespace shardwright::plan
