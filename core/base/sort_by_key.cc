// SPDX-License-Identifier: Apache-2.0
#include "core/base/sort_by_key.h"

#include <array>
#include <cstddef>
#include <utility>

namespace shardwright {
namespace {

constexpr size_t kRadix = 256;

}  // namespace

void sort_by_key(std::vector<Keyed>* keys) {
  uint64_t differing = 0;
  for (const Keyed& each : *keys) differing |= each.key ^ keys->front().key;
  std::vector<Keyed> sorted(keys->size());
  for (uint32_t shift = 0; shift < 64; shift += 8) {
    if ((differing >> shift) % kRadix == 0) continue;
    std::array<size_t, kRadix> next{};
    for (const Keyed& each : *keys) ++next[(each.key >> shift) % kRadix];
    size_t begin = 0;
    for (size_t& digit : next) begin += std::exchange(digit, begin);
    for (const Keyed& each : *keys) sorted[next[(each.key >> shift) % kRadix]++] = each;
    keys->swap(sorted);
  }
}

}  // namespace shardwright
