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

void put(uint32_t value, std::vector<uint32_t>* slots) {
  const size_t mask = slots->size() - 1;
  uint64_t perturb = value;
  size_t i = value & mask;
  while (true) {
    const size_t probes = i + kLinearProbes <= mask ? kLinearProbes : 0;
    for (size_t p = 0; p <= probes; ++p) {
      if ((*slots)[i + p] != kFree) continue;
      (*slots)[i + p] = value;
      return;
    }
    perturb >>= kPerturbShift;
    i = (i * 5 + 1 + perturb) & mask;
  }
}

}  // namespace

std::vector<uint32_t> python_set_order(std::span<const uint32_t> values) {
  std::vector<uint32_t> slots(kFirstSlots, kFree);
  for (size_t i = 0; i < values.size(); ++i) {
    put(values[i], &slots);
    const size_t fill = i + 1;
    if (fill * 5 < (slots.size() - 1) * 3) continue;
    const size_t wanted = fill > kLargeSet ? fill * 2 : fill * 4;
    size_t size = kFirstSlots;
    while (size <= wanted) size *= 2;
    std::vector<uint32_t> old(size, kFree);
    old.swap(slots);
    for (const uint32_t value : old) {
      if (value != kFree) put(value, &slots);
    }
  }
  std::erase(slots, kFree);
  return slots;
}

}  // namespace shardwright::plan::internal
