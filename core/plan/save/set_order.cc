// SPDX-License-Identifier: Apache-2.0
//
// A table of slots as CPython keeps it: an integer is its own hash.
#include "core/plan/save/set_order_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint32_t kFree = 0xFFFFFFFF;
constexpr size_t kFirstSlots = 8;
constexpr size_t kLinearProbes = 9;
constexpr int kPerturbShift = 5;
constexpr size_t kLargeSet = 50000;  // from here on tables grow by two instead of by four

class PythonSet {
 public:
  PythonSet() : slots_(kFirstSlots, kFree) {}

  void insert(uint32_t value) {
    put(value);
    ++fill_;
    if (fill_ * 5 >= (slots_.size() - 1) * 3) grow();
  }

  std::vector<uint32_t> walk() const {
    std::vector<uint32_t> values;
    values.reserve(fill_);
    for (const uint32_t slot : slots_) {
      if (slot != kFree) values.push_back(slot);
    }
    return values;
  }

 private:
  void put(uint32_t value) {
    const size_t mask = slots_.size() - 1;
    uint64_t perturb = value;
    size_t i = value & mask;
    while (true) {
      const size_t probes = i + kLinearProbes <= mask ? kLinearProbes : 0;
      for (size_t p = 0; p <= probes; ++p) {
        if (slots_[i + p] != kFree) continue;
        slots_[i + p] = value;
        return;
      }
      perturb >>= kPerturbShift;
      i = (i * 5 + 1 + perturb) & mask;
    }
  }

  void grow() {
    const size_t wanted = fill_ > kLargeSet ? fill_ * 2 : fill_ * 4;
    size_t size = kFirstSlots;
    while (size <= wanted) size *= 2;
    std::vector<uint32_t> old(size, kFree);
    old.swap(slots_);
    for (const uint32_t value : old) {
      if (value != kFree) put(value);
    }
  }

  std::vector<uint32_t> slots_;
  size_t fill_ = 0;
};

}  // namespace

std::vector<uint32_t> python_set_order(std::span<const uint32_t> values) {
  PythonSet set;
  for (const uint32_t value : values) set.insert(value);
  return set.walk();
}

}  // namespace shardwright::plan::internal
