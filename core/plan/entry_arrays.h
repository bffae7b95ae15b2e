// SPDX-License-Identifier: Apache-2.0
//
// EntryArrays: entries with their boxes in the flat arrays of a host, as they come through the C
// interface. Views: the host's arrays must outlive them. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/digest128.h"
#include "core/base/text_array.h"

namespace shardwright::plan {

// The arrays of shw_entry_batch (include/shardwright/planning.h says what each means). Empty spans
// are absent arrays. Offsets ascend inside their blobs; everything else is checked by
// who describes them (save/describe.h).
struct EntryArrays {
  size_t count = 0;
  TextArray names;
  std::span<const int32_t> dtypes;  // numbers of DType, 0 = a byte object
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
