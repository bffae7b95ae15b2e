// SPDX-License-Identifier: Apache-2.0
//
// Local plans of several ranks out of a row of choices: a table of entries that all ranks share,
// then per rank which of them it lists and what it holds of each. Most choices make ranks that fit
// together; rare ones make a rank contradict the others.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/describe/describe_entries.h"
#include "core/plan/wire/wire.h"
#include "tests/fuzz/byte_source.h"
#include "tests/support/entry_arrays_builder.h"

namespace shardwright::fuzz {

struct TableEntry {
  std::string name;
  int32_t dtype = 0;  // 0 = an object
  EntryKind kind = EntryKind::kAuto;
  std::vector<int64_t> shape;
};

inline std::vector<TableEntry> entry_table(ByteSource* source) {
  // Objects, float32, bfloat16, bool, and four bits each.
  constexpr std::array<DType, 5> kDTypes = {DType::kInvalid, DType::kFloat32, DType::kBfloat16,
                                            DType::kBool, DType::kInt4};
  std::vector<TableEntry> table(1 + source->below<size_t>(5));
  for (size_t i = 0; i < table.size(); ++i) {
    TableEntry& entry = table[i];
    entry.name = source->rarely() ? "e0" : "e" + std::to_string(i);
    entry.dtype = static_cast<int32_t>(kDTypes[source->below(kDTypes.size())]);
    entry.kind = static_cast<EntryKind>(source->below(4));
    if (entry.dtype == 0) {
      if (entry.kind == EntryKind::kSharded) entry.kind = EntryKind::kAuto;
      continue;
    }
    entry.shape.resize(source->below<size_t>(5));
    for (int64_t& extent : entry.shape) extent = source->below<int64_t>(9);
  }
  return table;
}

// The flat arrays of one rank.
class RankArrays {
 public:
  RankArrays(ByteSource* source, plan::RankPosition position)
      : source_(*source), position_(position) {}

  void add(const TableEntry& listed) {
    enum Bits : uint8_t { kForm = 3, kSecondary = 4, kDigest = 8, kAttribute = 16, kSize = 32 };
    const uint8_t bits = source_.byte();
    const bool secondary = (bits & kSecondary) != 0;
    TableEntry entry = listed;
    if (source_.rarely()) contradict(&entry);
    boxes_.clear();
    if (entry.dtype != 0) add_boxes(entry.shape, bits & kForm);
    const uint64_t object_bytes = (bits & kSize) != 0 ? source_.byte() : 0;
    Digest128 digest{};
    if ((bits & kDigest) != 0) digest[0] = std::byte{source_.byte()};
    builder_.add({.name = entry.name,
                  .dtype = entry.dtype,
                  .kind = static_cast<int32_t>(entry.kind),
                  .shape = entry.shape,
                  .attribute = (bits & kAttribute) != 0 ? "note" : "",
                  .object_bytes = object_bytes,
                  .digest = digest,
                  .secondary = secondary});
    for (const Extents& box : boxes_) builder_.add_box(box.offsets, box.sizes, secondary);
  }

  // Another order than that of the entries.
  void shuffle() {
    std::vector<uint64_t> order(builder_.item_count());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[source_.below<size_t>(i)]);
    builder_.set_order(std::move(order));
  }

  plan::EntryArrays arrays() const { return builder_.arrays(); }

 private:
  void contradict(TableEntry* entry) {
    if (entry->dtype != 0 && !entry->shape.empty()) ++entry->shape[0];
    entry->kind = static_cast<EntryKind>(source_.below(4));
  }

  struct Extents {
    std::vector<int64_t> offsets, sizes;
  };

  // The whole tensor, the rank's part of a dimension, some part, or any boxes.
  void add_boxes(const std::vector<int64_t>& shape, int form) {
    if (form == 3) {
      const uint64_t boxes = source_.below<uint64_t>(4);
      for (uint64_t b = 0; b < boxes; ++b) add_any_box(shape);
      return;
    }
    size_t split = shape.size();
    int64_t parts = 1;
    int64_t part = 0;
    if (form != 0 && !shape.empty()) {
      split = source_.below(shape.size());
      parts = form == 1 ? position_.world_size : 1 + source_.below<int64_t>(4);
      part = form == 1 ? position_.rank : source_.below(parts);
    }
    Extents box{std::vector<int64_t>(shape.size(), 0), shape};
    if (split < shape.size()) {
      box.offsets[split] = shape[split] * part / parts;
      box.sizes[split] = shape[split] * (part + 1) / parts - box.offsets[split];
    }
    boxes_.push_back(std::move(box));
  }

  void add_any_box(const std::vector<int64_t>& shape) {
    Extents box;
    for (const int64_t extent : shape) {
      box.offsets.push_back(source_.below(extent + 1));
      box.sizes.push_back(source_.below(extent - box.offsets.back() + 1));
    }
    boxes_.push_back(std::move(box));
  }

  ByteSource& source_;
  const plan::RankPosition position_;
  std::vector<Extents> boxes_;  // of the entry at hand
  test::EntryArraysBuilder builder_;
};

inline Result<plan::Bytes> described_rank(ByteSource* source, const std::vector<TableEntry>& table,
                                          plan::RankPosition position, bool says_world_size) {
  plan::DescribeRules rules;
  rules.rank = says_world_size ? position.rank : 0;
  rules.world_size = says_world_size ? position.world_size : 0;
  if (source->rarely()) rules.agreement = "other=1\n";
  RankArrays arrays(source, position);
  const uint8_t left_out = source->byte();  // one bit per entry
  for (size_t i = 0; i < table.size(); ++i) {
    if ((left_out >> i & 1) == 0) arrays.add(table[i]);
  }
  if ((left_out & 0x80) != 0) arrays.shuffle();
  SHW_ASSIGN_OR_RETURN(const plan::LocalPlan plan, describe_local(arrays.arrays(), rules));
  return encode(plan);
}

// One plan per rank; none when a description is refused, for which there is a reason in words.
inline std::vector<plan::Bytes> described_ranks(ByteSource* source, int32_t ranks,
                                                bool says_world_size) {
  const std::vector<TableEntry> table = entry_table(source);
  std::vector<plan::Bytes> plans;
  for (int32_t r = 0; r < ranks; ++r) {
    Result<plan::Bytes> plan = described_rank(source, table, {r, ranks}, says_world_size);
    if (!plan.ok() && plan.status().message().empty()) __builtin_trap();
    if (!plan.ok()) return {};
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace shardwright::fuzz
