// SPDX-License-Identifier: Apache-2.0
//
// EntryIndex: from (name, owner rank) to a position in a column that holds both; the column is
// asked, nothing is copied. 8 bytes per slot. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace shardwright::plan::internal {

// Rank -1 = shared by all ranks.
struct EntryKey {
  std::string_view name;
  int32_t rank = -1;
  friend bool operator==(const EntryKey&, const EntryKey&) = default;
};

class EntryIndex {
 public:
  // Room for count entries, fewer than 2^32 - 1; forgets what was there.
  void reset(size_t count) {
    size_t capacity = 16;
    while (count * 4 > capacity * 3) capacity *= 2;
    slots_.assign(capacity, Slot());
  }

  // Position of the entry with that key, or -1. key_at: position -> EntryKey.
  template <typename KeyAt>
  int64_t find(const EntryKey& key, const KeyAt& key_at) const {
    if (slots_.empty()) return -1;
    const uint64_t hash = hash_of(key);
    for (size_t i = start_of(hash);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.position_plus_one == 0) return -1;
      if (slot.tag == tag_of(hash) && key_at(slot.position_plus_one - 1) == key) {
        return static_cast<int64_t>(slot.position_plus_one) - 1;
      }
    }
  }

  // Adds position unless the key is there; the position that now has the key.
  template <typename KeyAt>
  size_t insert(const EntryKey& key, size_t position, const KeyAt& key_at) {
    const uint64_t hash = hash_of(key);
    size_t i = start_of(hash);
    for (; slots_[i].position_plus_one != 0; i = (i + 1) & (slots_.size() - 1)) {
      const size_t there = slots_[i].position_plus_one - 1;
      if (slots_[i].tag == tag_of(hash) && key_at(there) == key) return there;
    }
    slots_[i] = {tag_of(hash), static_cast<uint32_t>(position + 1)};
    return position;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t position_plus_one = 0;  // 0 = free
  };

  static uint64_t hash_of(const EntryKey& key) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // spreads ranks over all bits
    const uint64_t hash =
        std::hash<std::string_view>{}(key.name) + kOdd * (static_cast<uint32_t>(key.rank) + 1U);
    return hash ^ (hash >> 29);
  }
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t start_of(uint64_t hash) const { return static_cast<size_t>(hash) & (slots_.size() - 1); }

  std::vector<Slot> slots_;  // power of two, at most three quarters full
};

}  // namespace shardwright::plan::internal
