// SPDX-License-Identifier: Apache-2.0
//
// A hint for large memory that is filled once from its beginning: the system may back it by pages of
// 2 MiB, which saves one fault per 4 KiB. Where it does not, nothing changes. Pure but for the hint.
#pragma once

#include <cstddef>
#include <vector>

namespace shardwright {

// Memory that nothing has been written to yet. Small memory is left alone.
void advise_huge_pages(void* data, size_t bytes);

// Room for count elements in an empty vector, with that hint.
template <typename T>
void reserve_large(std::vector<T>* values, size_t count) {
  values->reserve(count);
  advise_huge_pages(values->data(), values->capacity() * sizeof(T));
}

}  // namespace shardwright
