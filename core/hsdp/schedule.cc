// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/schedule.h"

#include <algorithm>

namespace shardwright::hsdp {

std::vector<UnitId> Schedule::forward(UnitId unit, size_t depth) {
  current_.push_back(unit);
  in_backward_ = false;
  const std::vector<UnitId>& expected = recorded_.empty() ? created_ : recorded_;
  const auto begin = expected.begin();
  const auto from = begin + static_cast<std::ptrdiff_t>(std::min(cursor_, expected.size()));
  auto found = std::find(from, expected.end(), unit);
  if (found == expected.end()) {
    // Not where it was expected: units that run again before their backward.
    found = std::find(begin, from, unit);
    if (found == from) return {};
  }
  const auto next = found + 1;
  cursor_ = static_cast<size_t>(next - begin);
  const size_t left = static_cast<size_t>(expected.end() - next);
  return {next, next + static_cast<std::ptrdiff_t>(std::min(depth, left))};
}

std::vector<UnitId> Schedule::backward(UnitId unit, size_t depth) {
  if (!in_backward_) backward_end_ = current_.size();
  in_backward_ = true;
  had_backward_.resize(current_.size());
  size_t position = backward_end_;
  while (position > 0 && (had_backward_[position - 1] || current_[position - 1] != unit))
    --position;
  if (position == 0) return {};  // never ran forward in this iteration
  had_backward_[position - 1] = true;
  while (backward_end_ > 0 && had_backward_[backward_end_ - 1]) --backward_end_;
  std::vector<UnitId> result;
  for (size_t before = position - 1; before > 0 && result.size() < depth; --before) {
    if (!had_backward_[before - 1]) result.push_back(current_[before - 1]);
  }
  return result;
}

void Schedule::finish() {
  if (!current_.empty()) recorded_ = std::move(current_);
  abandon();
}

void Schedule::abandon() {
  current_.clear();
  had_backward_.clear();
  cursor_ = 0;
  backward_end_ = 0;
  in_backward_ = false;
}

}  // namespace shardwright::hsdp
