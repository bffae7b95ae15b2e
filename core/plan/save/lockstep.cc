// SPDX-License-Identifier: Apache-2.0
#include "core/plan/save/lockstep_internal.h"

#include <algorithm>

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {
namespace {

bool same_columns(std::span<const ColumnRun> a, std::span<const ColumnRun> b) {
  if (a.data() == b.data()) return true;
  // Runs differ in their elements; what counts is which columns they are.
  size_t i = 0;
  size_t j = 0;
  uint64_t a_end = 0;
  uint64_t b_end = 0;
  const auto next = [](std::span<const ColumnRun> runs, size_t* at, uint64_t* end) {
    const uint64_t first = runs[*at].first;
    *end = first + runs[*at].count;
    for (++*at; *at < runs.size() && runs[*at].first == *end; ++*at) *end += runs[*at].count;
    return first;
  };
  while (i < a.size() && j < b.size()) {
    if (next(a, &i, &a_end) != next(b, &j, &b_end) || a_end != b_end) return false;
  }
  return i == a.size() && j == b.size();
}

}  // namespace

bool Lockstep::goes_on(const ColumnSizes& tensor) const {
  return tensor.map == map_ && same_columns(tensor.runs, columns_);
}

void Lockstep::begin(const ColumnSizes& tensor, uint32_t replicas) {
  settle();
  std::vector<Bearing> bearings(replicas);
  for (uint32_t k = 0; k < replicas; ++k) bearings[k].replica = k;
  for (const ColumnRun& run : tensor.runs) {
    for (uint32_t column = run.first; column < run.first + run.count; ++column) {
      const std::span<const uint32_t> holders = tensor.map->of(column);
      for (uint32_t k = 0; k < replicas; ++k) bearings[k].bytes += loads_[holders[k]];
    }
  }
  bearings_ = std::priority_queue(std::greater<>(), std::move(bearings));
  map_ = tensor.map;
  columns_ = tensor.runs;
}

uint32_t Lockstep::choose(const ColumnSizes& tensor, uint32_t replicas) {
  if (!goes_on(tensor)) begin(tensor, replicas);
  Bearing lightest = bearings_.top();
  bearings_.pop();
  for (const ColumnRun& run : tensor.runs)
    lightest.bytes += packed_bytes(tensor.bits, run.elements) * run.count;
  bearings_.push(lightest);
  Times& times = chosen_[{tensor.runs.data(), tensor.bits, lightest.replica}];
  times.runs = tensor.runs;
  ++times.count;
  return lightest.replica;
}

void Lockstep::settle() {
  for (const auto& [chosen, times] : chosen_) {
    const uint64_t bits = std::get<1>(chosen);
    const uint32_t replica = std::get<2>(chosen);
    for (const ColumnRun& run : times.runs) {
      const uint64_t bytes = packed_bytes(bits, run.elements) * times.count;
      for (uint32_t column = run.first; column < run.first + run.count; ++column)
        loads_[map_->of(column)[replica]] += bytes;
    }
  }
  chosen_.clear();
  map_ = nullptr;
}

}  // namespace shardwright::plan::internal
