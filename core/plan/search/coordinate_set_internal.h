// SPDX-License-Identifier: Apache-2.0
//
// CoordinateSet: the distinct coordinates of one dimension and the place of each among them in
// ascending order. Coordinates are not negative. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

namespace shardwright::plan::internal {

class CoordinateSet {
 public:
  // Room for count + 1 coordinates; forgets what was there. Comes before anything else.
  void reserve(uint64_t count);
  // False when it was there. At most 2^32 - 1 coordinates.
  bool insert(int64_t coordinate);
  uint64_t size() const { return size_; }

  // The coordinates in ascending order; from then on rank_of answers and nothing is inserted.
  std::vector<int64_t> sort();
  // Place of a coordinate that was inserted.
  uint32_t rank_of(int64_t coordinate) const;

 private:
  struct Slot {
    int64_t coordinate = kFree;
    uint32_t rank = 0;
  };
  static constexpr int64_t kFree = -1;
  void grow();
  uint64_t start_of(int64_t coordinate) const {
    return static_cast<uint64_t>(coordinate) * 0x9E3779B97F4A7C15 >> shift_;
  }

  std::vector<Slot> slots_;  // power of two, at most half full
  uint32_t shift_ = 0;       // bits of a hash that do not choose a slot
  uint64_t size_ = 0;
};

}  // namespace shardwright::plan::internal
