// SPDX-License-Identifier: Apache-2.0
//
// NameIndex: from a name to the position of its entry, for columns that already hold the names. It
// stores 8 bytes per entry (part of the hash and the position) and no text; the caller passes a
// function that gives the name at a position. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace shardwright {

class NameIndex {
 public:
  // Makes room, so that the next inserts up to count entries in all do not allocate. name_at:
  // position -> name.
  template <typename NameAt>
  void reserve(size_t count, const NameAt& name_at) {
    if (count * 4 <= slots_.size() * 3) return;
    size_t capacity = 16;
    while (count * 4 > capacity * 3) capacity *= 2;
    std::vector<Slot> old(capacity);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.position_plus_one != 0)
        place(name_at(slot.position_plus_one - 1), slot.position_plus_one);
    }
  }

  // Position of the entry with that name, or nullopt. Constant time.
  template <typename NameAt>
  std::optional<size_t> find(std::string_view name, const NameAt& name_at) const {
    if (slots_.empty()) return std::nullopt;
    const uint64_t hash = hash_of(name);
    for (size_t i = start_of(hash);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.position_plus_one == 0) return std::nullopt;
      if (slot.tag == tag_of(hash) && name_at(slot.position_plus_one - 1) == name)
        return slot.position_plus_one - 1;
    }
  }

  // Adds an entry whose name is not there yet; reserve came first and position < 2^32 - 1.
  void insert(std::string_view name, size_t position) {
    place(name, static_cast<uint32_t>(position + 1));
  }

  // Forgets all entries, keeps the room.
  void clear() { slots_.assign(slots_.size(), Slot()); }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t position_plus_one = 0;  // 0 = free
  };

  static uint64_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t start_of(uint64_t hash) const { return static_cast<size_t>(hash) & (slots_.size() - 1); }

  void place(std::string_view name, uint32_t position_plus_one) {
    const uint64_t hash = hash_of(name);
    size_t i = start_of(hash);
    while (slots_[i].position_plus_one != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {tag_of(hash), position_plus_one};
  }

  std::vector<Slot> slots_;  // power of two, at most three quarters full
};

}  // namespace shardwright
