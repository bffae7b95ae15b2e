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

#include "core/plan/save/describe.h"
#include "core/plan/wire/wire.h"
#include "tests/fuzz/byte_source.h"

namespace shardwright::fuzz {

struct TableEntry {
  std::string name;
  int32_t dtype = 0;  // 0 = an object
  EntryKind kind = EntryKind::kAuto;
  std::vector<int64_t> shape;
};

inline std::vector<TableEntry> entry_table(ByteSource* source) {
  // Objects, float32, bfloat16, bool, and four bits each.
  constexpr std::array<int32_t, 5> kDTypes = {0, 2 + 256 * 32, 4 + 256 * 16, 6 + 256 * 8,
                                              0 + 256 * 4};
  std::vector<TableEntry> table(1 + source->below<size_t>(5));
  for (size_t i = 0; i < table.size(); ++i) {
    TableEntry& entry = table[i];
    entry.name = source->rarely() ? "e0" : "e" + std::to_string(i);
    entry.dtype = kDTypes[source->below(kDTypes.size())];
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
    TableEntry entry = listed;
    if (source_.rarely()) contradict(&entry);
    append(entry.name, &names_, &name_offsets_);
    append((bits & kAttribute) != 0 ? "note" : "", &attributes_, &attribute_offsets_);
    dtypes_.push_back(entry.dtype);
    kinds_.push_back(static_cast<int32_t>(entry.kind));
    shapes_.insert(shapes_.end(), entry.shape.begin(), entry.shape.end());
    shape_offsets_.push_back(shapes_.size());
    const uint64_t boxes = entry.dtype == 0 ? 1 : add_boxes(entry.shape, bits & kForm);
    ranges_.push_back(ranges_.back() + boxes);
    secondary_.insert(secondary_.end(), boxes, (bits & kSecondary) != 0 ? 1 : 0);
    object_sizes_.push_back((bits & kSize) != 0 ? source_.byte() : 0);
    digests_.emplace_back();
    if ((bits & kDigest) != 0) digests_.back()[0] = std::byte{source_.byte()};
  }

  // Another order than that of the entries.
  void shuffle() {
    order_.resize(ranges_.back());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[source_.below<size_t>(i)]);
  }

  plan::EntryArrays arrays() const {
    plan::EntryArrays made;
    made.count = dtypes_.size();
    made.names = {names_, name_offsets_};
    made.dtypes = dtypes_;
    made.kinds = kinds_;
    made.shapes = shapes_.data();
    made.shape_offsets = shape_offsets_;
    made.box_ranges = ranges_;
    made.box_offsets = offsets_.data();
    made.box_sizes = sizes_.data();
    made.order = order_.empty() ? nullptr : order_.data();
    made.secondary = secondary_.data();
    made.object_sizes = object_sizes_;
    made.attributes = {attributes_, attribute_offsets_};
    made.digests = digests_;
    return made;
  }

 private:
  static void append(std::string_view text, std::vector<char>* blob, std::vector<uint64_t>* ends) {
    blob->insert(blob->end(), text.begin(), text.end());
    ends->push_back(blob->size());
  }

  void contradict(TableEntry* entry) {
    if (entry->dtype != 0 && !entry->shape.empty()) ++entry->shape[0];
    entry->kind = static_cast<EntryKind>(source_.below(4));
  }

  // Number of boxes: the whole tensor, the rank's part of a dimension, some part, or any boxes.
  uint64_t add_boxes(const std::vector<int64_t>& shape, int form) {
    if (form == 3) {
      const uint64_t boxes = source_.below<uint64_t>(4);
      for (uint64_t b = 0; b < boxes; ++b) add_any_box(shape);
      return boxes;
    }
    size_t split = shape.size();
    int64_t parts = 1;
    int64_t part = 0;
    if (form != 0 && !shape.empty()) {
      split = source_.below(shape.size());
      parts = form == 1 ? position_.world_size : 1 + source_.below<int64_t>(4);
      part = form == 1 ? position_.rank : source_.below(parts);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t begin = d == split ? shape[d] * part / parts : 0;
      const int64_t end = d == split ? shape[d] * (part + 1) / parts : shape[d];
      offsets_.push_back(begin);
      sizes_.push_back(end - begin);
    }
    return 1;
  }

  void add_any_box(const std::vector<int64_t>& shape) {
    for (const int64_t extent : shape) {
      offsets_.push_back(source_.below(extent + 1));
      sizes_.push_back(source_.below(extent - offsets_.back() + 1));
    }
  }

  ByteSource& source_;
  const plan::RankPosition position_;
  std::vector<char> names_, attributes_;
  std::vector<uint64_t> name_offsets_ = {0}, attribute_offsets_ = {0}, shape_offsets_ = {0};
  std::vector<int32_t> dtypes_, kinds_;
  std::vector<int64_t> shapes_, offsets_, sizes_;
  std::vector<uint64_t> ranges_ = {0}, order_, object_sizes_;
  std::vector<uint8_t> secondary_;
  std::vector<plan::Digest128> digests_;
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
  SHW_ASSIGN_OR_RETURN(const plan::LocalSavePlan plan, describe_local(arrays.arrays(), rules));
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
