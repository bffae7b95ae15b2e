// SPDX-License-Identifier: Apache-2.0
//
// Checks that every function makes of its arguments, and the conversions of the flat shapes of the
// C surface: bytes, texts, lists of texts. All failures name the parameter. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/text_array.h"

namespace shardwright::capi {

Status null_argument(const char* parameter);
Status bad_argument(const char* parameter, std::string message);

// INVALID_ARGUMENT when the pointer is NULL.
Status need_pointer(const void* pointer, const char* parameter);

// Bytes (data, size): NULL only with size 0, at most INT64_MAX.
Result<std::span<const std::byte>> bytes_argument(const void* data, uint64_t size,
                                                  const char* parameter);
Result<std::string_view> text_argument(const char* data, uint64_t size, const char* parameter);
// A list of `count` values; NULL only when count is 0.
template <typename T>
Result<std::span<const T>> list_argument(const T* items, uint64_t count, const char* parameter) {
  if (items == nullptr && count != 0) return null_argument(parameter);
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements of some lists are pointers
  if (count > INT64_MAX / sizeof(T)) return bad_argument(parameter, "the list is too long");
  return std::span<const T>(items, items == nullptr ? 0 : count);
}
// NUL-terminated text that is not empty.
Result<std::string> path_argument(const char* path, const char* parameter);

// Blob cut by count + 1 ascending offsets, the first 0.
Result<TextArray> text_list_argument(const void* blob, const uint64_t* offsets, uint64_t count,
                                     const char* parameter);

// The failure that a host tells other ranks: CANCELLED to UNAUTHENTICATED, or HOST_EXCEPTION.
Status cause_argument(int32_t code, std::string_view message, Status* cause);

// Value of an option that is one of 0 to last; INVALID_ARGUMENT naming it otherwise.
Status option_in_range(int32_t value, int32_t last, const char* option);

}  // namespace shardwright::capi
