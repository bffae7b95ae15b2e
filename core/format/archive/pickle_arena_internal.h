// SPDX-License-Identifier: Apache-2.0
//
// Memory of the values of a pickle. A reference has 32 bits: none, booleans, the empty tuple and
// integers of 30 bits are in it, all else is the number of a node of 16 bytes. What a node holds
// more of (slots of a tuple, segments of a list) lies in blocks that never move. A million chunks
// of a checkpoint's index fit into 300 MB so. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/archive/pickle_data.h"

namespace shardwright::format::archive::internal {

// Segments of a container form a ring: the container knows the last, which knows the first.
struct PickleSegment {
  PickleSegment* next = nullptr;
  uint32_t count = 0;
  const PickleRef* values() const { return reinterpret_cast<const PickleRef*>(this + 1); }
  PickleRef* values() { return reinterpret_cast<PickleRef*>(this + 1); }
};
static_assert(sizeof(PickleSegment) == 16);

struct PickleNode {
  PickleKind kind = PickleKind::kAbsent;
  uint8_t flags = 0;
  uint16_t depth = 0;  // levels of values below, at the time when it was made
  uint32_t count = 0;  // bytes, slots, parts; of a global its number; of a record see below
  union {
    uint64_t payload = 0;  // bits of a number, target of a persistent id
    const char* text;
    PickleRef* slots;
    PickleSegment* last;
    struct PickleBody* body;
  };

  static constexpr uint8_t kMemoized = 1;
  static constexpr uint8_t kShared = 2;    // more than the stack or one holder may know it
  static constexpr uint8_t kInstance = 4;  // of a record
  static constexpr uint8_t kBuilt = 8;     // BUILD came
};
static_assert(sizeof(PickleNode) == 16);

// The count of a record: the position of its global in the vocabulary, and its fields. Behind the
// fields of an instance is a slot for its state.
inline constexpr uint32_t kMaxRecordFields = 255;
inline uint32_t record_count(size_t known, size_t fields) {
  return static_cast<uint32_t>(known << 8 | fields);
}
inline uint32_t record_fields(const PickleNode& node) {
  return node.count & kMaxRecordFields;
}
inline uint32_t record_known(const PickleNode& node) {
  return node.count >> 8;
}

struct PickleBody {
  PickleRef callable;
  PickleRef arguments;
  PickleRef keywords;
  PickleRef state;
  PickleSegment* parts = nullptr;
  PickleSegment* pairs = nullptr;
  PickleMaking making = PickleMaking::kCall;
};

// References whose value is in their bits.
inline constexpr PickleRef kAbsentRef{0};
inline constexpr PickleRef kNoneRef{2};
inline constexpr PickleRef kFalseRef{6};
inline constexpr PickleRef kTrueRef{10};
inline constexpr PickleRef kEmptyTupleRef{14};
// In a memo only: the value was given up.
inline constexpr PickleRef kForgottenRef{18};
inline constexpr int64_t kMaxInlineInteger = (int64_t{1} << 29) - 1;

class PickleArena {
 public:
  PickleArena() = default;
  ~PickleArena();
  PickleArena(const PickleArena&) = delete;
  PickleArena& operator=(const PickleArena&) = delete;

  static bool is_node(PickleRef value) { return (value.bits & 3) == 0 && value.bits != 0; }
  static bool is_inline_integer(PickleRef value) { return (value.bits & 3) == 1; }
  static PickleRef node_ref(uint32_t index) { return {(index + 1) << 2}; }

  PickleNode& node(PickleRef value) { return node_at((value.bits >> 2) - 1); }
  const PickleNode& node(PickleRef value) const {
    return const_cast<PickleArena*>(this)->node_at((value.bits >> 2) - 1);
  }
  uint64_t node_count() const { return node_count_; }

  PickleRef make(PickleKind kind) {
    if (free_ != 0) return reuse(kind);
    if (node_count_ == nodes_.size() * kBlockNodes) add_nodes();
    const PickleRef value = node_ref(static_cast<uint32_t>(node_count_++));
    PickleNode& made = node(value);
    made = PickleNode();
    made.kind = kind;
    return value;
  }
  // The node becomes free for another value.
  void give_back(PickleRef value) {
    PickleNode& freed = node(value);
    freed = PickleNode();
    freed.payload = free_;
    free_ = value.bits;
  }
  PickleRef integer(int64_t value) {
    if (value >= -kMaxInlineInteger && value <= kMaxInlineInteger)
      return {(static_cast<uint32_t>(value) << 2) | 1};
    const PickleRef made = make(PickleKind::kInteger);
    node(made).payload = static_cast<uint64_t>(value);
    return made;
  }
  // text outlives the arena.
  PickleRef text(PickleKind kind, std::string_view text) {
    const PickleRef made = make(kind);
    node(made).count = static_cast<uint32_t>(text.size());
    node(made).text = text.data();
    return made;
  }
  std::string_view keep(std::string text) {
    kept_bytes_ += text.size();
    return kept_.emplace_back(std::move(text));
  }

  // Memory in units of 4 bytes, aligned to 8.
  PickleRef* slots(size_t count) { return reinterpret_cast<PickleRef*>(words((count + 1) / 2)); }
  PickleSegment* segment(size_t count) {
    auto* const made = new (words(2 + (count + 1) / 2)) PickleSegment();
    made->count = static_cast<uint32_t>(count);
    return made;
  }
  PickleBody* body() { return new (words(sizeof(PickleBody) / 8)) PickleBody(); }
  // Takes back the segment when nothing was allocated behind it.
  void take_back(PickleSegment* segment) {
    auto* const begin = reinterpret_cast<uint64_t*>(segment);
    if (begin + 2 + (segment->count + 1) / 2 == word_) word_ = begin;
  }

  uint64_t bytes() const { return block_bytes_ + kept_bytes_; }

  std::vector<PickleGlobal> globals;
  std::vector<PickleRef> global_refs;  // the node of each global
  std::vector<PickleRef> known_refs;   // the same by its position in the vocabulary

 private:
  struct Block {
    uint64_t* words = nullptr;
    uint64_t bytes = 0;
    bool is_mapped = false;
  };
  static constexpr size_t kBlockNodes = 1024;
  static constexpr uint64_t kSmallBlockBytes = uint64_t{64} << 10;
  static constexpr uint64_t kLargeBlockBytes = uint64_t{4} << 20;  // of large pages
  static constexpr uint64_t kSmallBlocks = 16;                     // before large ones

  PickleNode& node_at(uint32_t index) { return nodes_[index / kBlockNodes][index % kBlockNodes]; }
  PickleRef reuse(PickleKind kind) {
    const PickleRef value{free_};
    free_ = static_cast<uint32_t>(node(value).payload);
    node(value) = PickleNode();
    node(value).kind = kind;
    return value;
  }
  uint64_t* words(size_t count) {
    if (static_cast<size_t>(word_end_ - word_) < count) new_block(count);
    uint64_t* const begin = word_;
    word_ += count;
    return begin;
  }
  void add_nodes() {
    nodes_.push_back(
        reinterpret_cast<PickleNode*>(words(kBlockNodes * sizeof(PickleNode) / sizeof(uint64_t))));
  }
  void new_block(size_t count);

  std::vector<PickleNode*> nodes_;
  uint64_t node_count_ = 0;
  uint32_t free_ = 0;  // bits of the first free node, which knows the next
  std::vector<Block> blocks_;
  uint64_t* word_ = nullptr;
  uint64_t* word_end_ = nullptr;
  uint64_t block_bytes_ = 0;
  std::deque<std::string> kept_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace shardwright::format::archive::internal
