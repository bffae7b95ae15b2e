// SPDX-License-Identifier: Apache-2.0
//
// The rule for extensible structs of the C surface. With L = our size, V1 = the oldest published
// size and s = the caller's struct_size:
//   s < V1, s > 4096 or s % 8 != 0        INVALID_ARGUMENT, details expected and found
//   V1 <= s < L                           missing fields read as zero, which is their default
//   s > L, bytes behind L all zero        accepted
//   s > L, a byte that is not zero        UNIMPLEMENTED, details field_offset and library_version
//   unknown flag or reserved field set    UNIMPLEMENTED, details flags or field_offset
// Out structs: min(s, L) bytes are filled, the rest zeroed, min(s, L) written back. Pure, any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "capi/boundary/struct_rules.h"
#include "core/base/result.h"

namespace shardwright::capi {

inline constexpr uint32_t kLargestStruct = 4096;

// Type-erased core; `rules` of the struct, `parameter` for messages.
Status check_struct_size(uint32_t size, const StructRules& rules, const char* parameter);
Status copy_struct(const void* from, const StructRules& rules, const char* parameter, void* to);
// Checks the caller's struct_size without touching anything.
Status check_out_struct(const void* out, const StructRules& rules, const char* parameter);
// value has our size; out passed check_out_struct.
void write_struct(const void* value, const StructRules& rules, void* out) noexcept;

// Reads *from; INVALID_ARGUMENT for NULL.
template <typename T>
Status read_struct(const T* from, const char* parameter, T* to) {
  return copy_struct(from, rules_of<T>(), parameter, to);
}

// Reads options: NULL = all defaults.
template <typename T>
Status read_options(const T* from, const char* parameter, T* to) {
  if (from != nullptr) return read_struct(from, parameter, to);
  std::memset(to, 0, sizeof(T));
  to->struct_size = static_cast<uint32_t>(sizeof(T));
  return {};
}

template <typename T>
Status check_out(const T* out, const char* parameter) {
  return check_out_struct(out, rules_of<T>(), parameter);
}
template <typename T>
void write_out(const T& value, T* out) noexcept {
  write_struct(&value, rules_of<T>(), out);
}

// Element i of a caller's array whose stride is items[0].struct_size.
template <typename T>
const T* element_at(const T* items, uint64_t index) {
  const auto* bytes = reinterpret_cast<const std::byte*>(items);
  return reinterpret_cast<const T*>(bytes + index * items->struct_size);
}
template <typename T>
T* element_at(T* items, uint64_t index) {
  auto* bytes = reinterpret_cast<std::byte*>(items);
  return reinterpret_cast<T*>(bytes + index * items->struct_size);
}

// Reads element `index` of the array; INVALID_ARGUMENT when its size differs from the first one's.
template <typename T>
Status read_element(const T* items, uint64_t index, const char* parameter, T* to) {
  const T* item = element_at(items, index);
  if (item->struct_size != items->struct_size) {
    return invalid_argument(fmt::format("{}[{}].struct_size is {}, but {}[0] says {}", parameter,
                                        index, item->struct_size, parameter, items->struct_size))
        .with_detail("parameter", parameter);
  }
  return copy_struct(item, rules_of<T>(), parameter, to);
}

}  // namespace shardwright::capi
