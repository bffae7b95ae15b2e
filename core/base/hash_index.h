// SPDX-License-Identifier: Apache-2.0
//
// HashIndex: from the hash of a key to the position of its entry in columns that already hold the
// keys. It stores 8 bytes per slot (half of the hash and the position) and no key; the caller says
// whether the entry at a position has the wanted key. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace shardwright {

// 64-bit hash of a text, equal in one process only. Pure.
uint64_t hash_text(std::string_view text);

class HashIndex {
 public:
  // Makes room, so that the next inserts up to count entries in all do not allocate; count is below
  // 2^32 - 1. hash_at: position -> hash of its key.
  template <typename HashAt>
  void reserve(size_t count, const HashAt& hash_at) {
    if (count * 4 <= slots_.size() * 3) return;
    size_t capacity = 16;
    while (count * 4 > capacity * 3) capacity *= 2;
    std::vector<Slot> old(capacity);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.position_plus_one != 0)
        insert(hash_at(slot.position_plus_one - 1), slot.position_plus_one - 1);
    }
  }

  // Position of the entry with that key, or nullopt. has_key: position -> bool. Constant time.
  template <typename HasKey>
  std::optional<size_t> find(uint64_t hash, const HasKey& has_key) const {
    if (slots_.empty()) return std::nullopt;
    for (size_t i = start_of(hash);; i = next(i)) {
      const Slot& slot = slots_[i];
      if (slot.position_plus_one == 0) return std::nullopt;
      const size_t position = slot.position_plus_one - 1;
      if (slot.tag == tag_of(hash) && has_key(position)) return position;
    }
  }

  // Adds an entry whose key is not there yet; reserve came first.
  void insert(uint64_t hash, size_t position) {
    size_t i = start_of(hash);
    while (slots_[i].position_plus_one != 0) i = next(i);
    slots_[i] = {tag_of(hash), static_cast<uint32_t>(position + 1)};
  }

  // Asks the processor for the slot that find and insert will look at first.
  // In line: of a function of its own the compiler may believe that it does nothing.
  [[gnu::always_inline]] void prefetch(uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[start_of(hash)]);
  }

  // Forgets all entries, keeps the room.
  void clear() { slots_.assign(slots_.size(), Slot()); }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t position_plus_one = 0;  // 0 = free
  };

  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t start_of(uint64_t hash) const { return static_cast<size_t>(hash) & (slots_.size() - 1); }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  std::vector<Slot> slots_;  // power of two, at most three quarters full
};

}  // namespace shardwright
