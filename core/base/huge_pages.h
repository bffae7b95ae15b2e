// SPDX-License-Identifier: Apache-2.0
//
// Large memory that is filled once from its beginning: a hint that the system may back it by pages
// of 2 MiB, which saves one fault per 4 KiB, and pages that are made many at a time. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwright {

// Memory that nothing has been written to yet. Small memory is left alone.
void advise_huge_pages(void* data, size_t bytes);

// Anonymous memory, zero, from 2 MiB on aligned to 2 MiB and with that hint. Null when the system
// refuses it.
void* map_memory(uint64_t bytes);
// The same in pages of the size that the system gives by itself.
void* map_small_pages(uint64_t bytes);
void unmap_memory(void* memory, uint64_t bytes);
// Makes the pages of a range before it is written, by one call instead of a fault each. False where
// the system cannot (Linux before 5.14): they are made when they are touched.
bool populate_pages(void* data, uint64_t bytes);
// The same everywhere, for memory whose content is wanted by nobody. False when there is not so
// much memory.
bool make_pages(void* data, uint64_t bytes);

// Room for count elements in an empty vector, with that hint.
template <typename T>
void reserve_large(std::vector<T>* values, size_t count) {
  values->reserve(count);
  advise_huge_pages(values->data(), values->capacity() * sizeof(T));
}

}  // namespace shardwright
