// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_data.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/huge_pages.h"
#include "core/format/archive/pickle_arena_internal.h"

namespace shardwright::format::archive {

namespace internal {

PickleArena::~PickleArena() {
  for (const Block& block : blocks_) {
    if (block.is_mapped) {
      unmap_memory(block.words, block.bytes);
    } else {
      delete[] block.words;
    }
  }
}

// Beside many small blocks a large one wastes little, and its pages cost few faults.
void PickleArena::new_block(size_t count) {
  blocks_.reserve(blocks_.size() + 1);
  Block block;
  block.bytes = blocks_.size() < kSmallBlocks ? kSmallBlockBytes : kLargeBlockBytes;
  block.bytes = std::max<uint64_t>(count * sizeof(uint64_t), block.bytes);
  if (block.bytes >= kLargeBlockBytes)
    block.words = static_cast<uint64_t*>(map_memory(block.bytes));
  block.is_mapped = block.words != nullptr;
  if (!block.is_mapped) block.words = new uint64_t[block.bytes / sizeof(uint64_t)];
  blocks_.push_back(block);
  block_bytes_ += block.bytes;
  word_ = block.words;
  word_end_ = word_ + block.bytes / sizeof(uint64_t);
}

}  // namespace internal

using internal::PickleArena;
using internal::PickleNode;
using internal::PickleSegment;

PickleCursor::PickleCursor(const PickleSegment* last) {
  if (last == nullptr) return;
  segment_ = last->next;
  last_ = last;
  at_ = segment_->values();
  end_ = at_ + segment_->count;
}

bool PickleCursor::advance() {
  if (segment_ == last_) return false;
  segment_ = segment_->next;
  at_ = segment_->values();
  end_ = at_ + segment_->count;
  return true;
}

PickleData::PickleData(std::unique_ptr<PickleArena> arena, PickleRef root)
    : arena_(std::move(arena)), root_(root) {}
PickleData::PickleData(PickleData&&) noexcept = default;
PickleData& PickleData::operator=(PickleData&&) noexcept = default;
PickleData::~PickleData() = default;

PickleKind PickleData::kind(PickleRef value) const {
  if (PickleArena::is_node(value)) return arena_->node(value).kind;
  if (PickleArena::is_inline_integer(value)) return PickleKind::kInteger;
  if (value == internal::kNoneRef) return PickleKind::kNone;
  if (value == internal::kEmptyTupleRef) return PickleKind::kTuple;
  return value.is_absent() ? PickleKind::kAbsent : PickleKind::kBool;
}

bool PickleData::boolean(PickleRef value) const {
  return value == internal::kTrueRef;
}

int64_t PickleData::integer(PickleRef value) const {
  if (PickleArena::is_inline_integer(value)) return static_cast<int32_t>(value.bits) >> 2;
  return static_cast<int64_t>(arena_->node(value).payload);
}

double PickleData::real(PickleRef value) const {
  return std::bit_cast<double>(arena_->node(value).payload);
}

std::string_view PickleData::text(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  return {node.text, node.count};
}

std::span<const std::byte> PickleData::bytes(PickleRef value) const {
  return std::as_bytes(std::span(text(value)));
}

std::span<const PickleRef> PickleData::tuple(PickleRef value) const {
  if (!PickleArena::is_node(value)) return {};
  const PickleNode& node = arena_->node(value);
  return {node.slots, node.count};
}

PickleCursor PickleData::parts(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  return PickleCursor(node.kind == PickleKind::kObject ? node.body->parts : node.last);
}

PickleCursor PickleData::pairs(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  return PickleCursor(node.kind == PickleKind::kObject ? node.body->pairs : node.last);
}

uint64_t PickleData::part_count(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  return node.kind == PickleKind::kDict ? node.count / 2 : node.count;
}

const PickleGlobal& PickleData::global(PickleRef value) const {
  return arena_->globals[arena_->node(value).count];
}

int32_t PickleData::known(PickleRef value) const {
  if (!PickleArena::is_node(value)) return -1;
  const PickleNode& node = arena_->node(value);
  if (node.kind == PickleKind::kRecord) return static_cast<int32_t>(internal::record_known(node));
  const PickleRef callable = node.kind == PickleKind::kObject ? node.body->callable : value;
  return kind(callable) == PickleKind::kGlobal ? global(callable).known : -1;
}

std::span<const PickleRef> PickleData::fields(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  return {node.slots, internal::record_fields(node)};
}

PickleRef PickleData::state(PickleRef value) const {
  const PickleNode& node = arena_->node(value);
  if (node.kind == PickleKind::kObject) return node.body->state;
  const bool is_instance = (node.flags & PickleNode::kInstance) != 0;
  return is_instance ? node.slots[internal::record_fields(node)] : PickleRef();
}

PickleMaking PickleData::making(PickleRef value) const {
  return arena_->node(value).body->making;
}
PickleRef PickleData::callable(PickleRef value) const {
  return arena_->node(value).body->callable;
}
PickleRef PickleData::arguments(PickleRef value) const {
  return arena_->node(value).body->arguments;
}
PickleRef PickleData::keywords(PickleRef value) const {
  return arena_->node(value).body->keywords;
}

PickleRef PickleData::target(PickleRef value) const {
  return {static_cast<uint32_t>(arena_->node(value).payload)};
}

std::span<const PickleGlobal> PickleData::globals() const {
  return arena_->globals;
}
uint64_t PickleData::arena_bytes() const {
  return arena_->bytes();
}

}  // namespace shardwright::format::archive
