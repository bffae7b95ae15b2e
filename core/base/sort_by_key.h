// SPDX-License-Identifier: Apache-2.0
//
// Many numbers sorted by 64-bit keys in linear time. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

namespace shardwright {

struct Keyed {
  uint64_t key = 0;
  uint32_t number = 0;
};
// By key, equal keys in their order: a radix sort by the bytes of the keys that differ.
void sort_by_key(std::vector<Keyed>* keys);

}  // namespace shardwright
