// SPDX-License-Identifier: Apache-2.0
//
// Schedule: the order in which units run, recorded in one iteration and foretold in the next; from
// it comes what to gather ahead. An order holds a unit as often as it ran. Until one was recorded
// the order of creation stands for it. Pure bookkeeping, thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwright::hsdp {

using UnitId = uint64_t;  // number of the unit in the order of creation

class Schedule {
 public:
  void add_unit(UnitId unit) { created_.push_back(unit); }

  // The unit begins its forward; returns what probably comes next, at most depth of them.
  std::vector<UnitId> forward(UnitId unit, size_t depth);
  // The unit begins its backward; returns what ran before it and had none yet, the last first. One
  // around others may begin before them.
  std::vector<UnitId> backward(UnitId unit, size_t depth);
  // The iteration is over: what ran is what the next one is expected to run.
  void finish();
  // What ran in this iteration is forgotten; what was recorded before it stays.
  void abandon();

  const std::vector<UnitId>& recorded() const { return recorded_; }

 private:
  std::vector<UnitId> created_;
  std::vector<UnitId> recorded_;  // of the last iteration that ended
  std::vector<UnitId> current_;
  size_t cursor_ = 0;               // in recorded_ (or created_): behind the last forward
  size_t backward_end_ = 0;         // current_ from here on had its backward
  std::vector<bool> had_backward_;  // of current_
  bool in_backward_ = false;
};

}  // namespace shardwright::hsdp
