// SPDX-License-Identifier: Apache-2.0
//
// Greedy choice by patterns.
#include "core/plan/symbolic/column_balancer_internal.h"

#include <algorithm>

#include "core/plan/save/greedy_rule_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr size_t kScanWork = 256;  // item-holder pairs up to which scanning beats a heap

std::string_view bytes_of(std::span<const int64_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

void ColumnBalancer::begin(std::span<const OpenItem> items, uint32_t most_holders) {
  item_count_ = items.size();
  weight_ = items[0].weight;
  patterns_.clear();
  differences_.clear();
  counts_.clear();
  picks_.clear();
  index_ = HashIndex();
  choices_.begin_batch(items, most_holders);
}

void ColumnBalancer::assign(uint32_t column, std::span<const uint32_t> holders) {
  if (patterns_.empty() || !follows(patterns_[last_], holders)) last_ = find_or_add(holders);
  choices_.set_column(column, static_cast<uint32_t>(last_));
  apply(patterns_[last_], holders);
}

bool ColumnBalancer::follows(const Pattern& pattern, std::span<const uint32_t> holders) const {
  if (pattern.holder_count != holders.size()) return false;
  const uint64_t base = loads_[holders[0]];
  const int64_t* differences = differences_.data() + pattern.begin;
  for (size_t j = 1; j < holders.size(); ++j) {
    if (static_cast<int64_t>(loads_[holders[j]] - base) != differences[j]) return false;
  }
  return true;
}

size_t ColumnBalancer::find_or_add(std::span<const uint32_t> holders) {
  current_.resize(holders.size());
  const uint64_t base = loads_[holders[0]];
  for (size_t j = 0; j < holders.size(); ++j)
    current_[j] = static_cast<int64_t>(loads_[holders[j]] - base);
  const uint64_t hash = hash_text(bytes_of(current_));
  const auto found = index_.find(hash, [&](size_t i) {
    const Pattern& pattern = patterns_[i];
    return std::ranges::equal(std::span(differences_).subspan(pattern.begin, pattern.holder_count),
                              current_);
  });
  return found.has_value() ? *found : add(hash);
}

size_t ColumnBalancer::add(uint64_t hash) {
  const Pattern pattern{differences_.size(), current_.size(), picks_.size()};
  differences_.insert(differences_.end(), current_.begin(), current_.end());
  picks_.resize(picks_.size() + item_count_);
  const std::span<uint32_t> picks = std::span(picks_).subspan(pattern.picks_begin);
  choose(picks);
  counts_.resize(differences_.size(), 0);
  for (const uint32_t pick : picks) ++counts_[pattern.begin + pick];
  choices_.add_pattern(picks);
  patterns_.push_back(pattern);
  index_.reserve(patterns_.size(), [this](size_t i) {
    const Pattern& each = patterns_[i];
    return hash_text(bytes_of(std::span(differences_).subspan(each.begin, each.holder_count)));
  });
  index_.insert(hash, patterns_.size() - 1);
  return patterns_.size() - 1;
}

// Consumes current_.
void ColumnBalancer::choose(std::span<uint32_t> picks) {
  const auto weight = static_cast<int64_t>(weight_);
  if (picks.size() == 1 || picks.size() * current_.size() <= kScanWork) {
    for (uint32_t& pick : picks) {
      pick = static_cast<uint32_t>(lightest_of(current_, [](int64_t load) { return load; }));
      current_[pick] += weight;
    }
    return;
  }
  heap_.clear();
  for (uint32_t j = 0; j < current_.size(); ++j) heap_.emplace_back(current_[j], j);
  std::ranges::make_heap(heap_, std::greater<>());
  for (uint32_t& pick : picks) {
    std::ranges::pop_heap(heap_, std::greater<>());
    pick = heap_.back().second;
    heap_.back().first += weight;
    std::ranges::push_heap(heap_, std::greater<>());
  }
}

void ColumnBalancer::apply(const Pattern& pattern, std::span<const uint32_t> holders) {
  if (item_count_ < holders.size()) {
    for (size_t i = 0; i < item_count_; ++i)
      loads_[holders[picks_[pattern.picks_begin + i]]] += weight_;
    return;
  }
  const uint32_t* counts = counts_.data() + pattern.begin;
  for (size_t j = 0; j < holders.size(); ++j) loads_[holders[j]] += counts[j] * weight_;
}

}  // namespace shardwright::plan::internal
