// SPDX-License-Identifier: Apache-2.0
//
// EntryIndex: from (name, owner rank) to a position in a column that holds both; the column is
// asked, nothing is copied. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/hash_index.h"

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
    index_ = HashIndex();
    index_.reserve(count, [](size_t) { return uint64_t{0}; });  // empty: nothing is hashed again
  }

  // Position of the entry with that key, or -1. key_at: position -> EntryKey.
  template <typename KeyAt>
  int64_t find(const EntryKey& key, const KeyAt& key_at) const {
    const auto found = index_.find(hash_of(key), [&](size_t i) { return key_at(i) == key; });
    return found.has_value() ? static_cast<int64_t>(*found) : -1;
  }

  // Adds position unless the key is there; the position that now has the key.
  template <typename KeyAt>
  size_t insert(const EntryKey& key, size_t position, const KeyAt& key_at) {
    const uint64_t hash = hash_of(key);
    if (const auto found = index_.find(hash, [&](size_t i) { return key_at(i) == key; }))
      return *found;
    index_.insert(hash, position);
    return position;
  }

 private:
  static uint64_t hash_of(const EntryKey& key) {
    constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // spreads ranks over all bits
    const uint64_t hash = hash_text(key.name) + kOdd * (static_cast<uint32_t>(key.rank) + 1U);
    return hash ^ (hash >> 29);
  }

  HashIndex index_;
};

}  // namespace shardwright::plan::internal
