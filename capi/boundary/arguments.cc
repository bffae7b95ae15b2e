// SPDX-License-Identifier: Apache-2.0
//
// Sizes are bounded by INT64_MAX, so that languages without unsigned integers can hold all of them.
#include "capi/boundary/arguments.h"

#include <utility>

#include <fmt/format.h>

#include "shardwright/base.h"

namespace shardwright::capi {

Status null_argument(const char* parameter) {
  return invalid_argument(fmt::format("parameter '{}' is NULL", parameter))
      .with_detail("parameter", parameter);
}

Status bad_argument(const char* parameter, std::string message) {
  return invalid_argument(fmt::format("parameter '{}': {}", parameter, message))
      .with_detail("parameter", parameter);
}

Status need_pointer(const void* pointer, const char* parameter) {
  return pointer == nullptr ? null_argument(parameter) : Status();
}

Result<std::span<const std::byte>> bytes_argument(const void* data, uint64_t size,
                                                  const char* parameter) {
  if (size > INT64_MAX) {
    return bad_argument(parameter, fmt::format("size {} is above {}", size, INT64_MAX));
  }
  if (data == nullptr && size != 0) return null_argument(parameter);
  return std::span<const std::byte>(static_cast<const std::byte*>(data), size);
}

Result<std::string_view> text_argument(const char* data, uint64_t size, const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const auto bytes, bytes_argument(data, size, parameter));
  return std::string_view(data == nullptr ? "" : data, bytes.size());
}

Result<std::string> path_argument(const char* path, const char* parameter) {
  if (path == nullptr) return null_argument(parameter);
  if (*path == '\0') return bad_argument(parameter, "the path is empty");
  return std::string(path);
}

Result<TextArray> text_list_argument(const void* blob, const uint64_t* offsets, uint64_t count,
                                     const char* parameter) {
  if (count >= INT64_MAX / sizeof(uint64_t)) return bad_argument(parameter, "the list is too long");
  if (offsets == nullptr && count != 0) {
    return null_argument(fmt::format("{} offsets", parameter).c_str());
  }
  if (count == 0) return TextArray();
  if (offsets[0] != 0) {
    return bad_argument(parameter, fmt::format("the first offset is {}, not 0", offsets[0]));
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (offsets[i + 1] < offsets[i] || offsets[i + 1] > INT64_MAX) {
      return bad_argument(parameter,
                          fmt::format("offset {} is {}, below the one before ({}) or too "
                                      "large",
                                      i + 1, offsets[i + 1], offsets[i]));
    }
  }
  if (blob == nullptr && offsets[count] != 0) return null_argument(parameter);
  return TextArray{{static_cast<const char*>(blob == nullptr ? "" : blob), offsets[count]},
                   {offsets, count + 1}};
}

Status cause_argument(int32_t code, std::string_view message, Status* cause) {
  const bool is_failure =
      (code >= SHW_CANCELLED && code <= SHW_UNAUTHENTICATED) || code == SHW_HOST_EXCEPTION;
  if (!is_failure) return bad_argument("code", fmt::format("{} is no failure", code));
  *cause = Status(static_cast<StatusCode>(code), std::string(message));
  return {};
}

Status option_in_range(int32_t value, int32_t last, const char* option) {
  if (value >= 0 && value <= last) return {};
  return bad_argument(option, fmt::format("unknown value {}, expected 0 to {}", value, last));
}

}  // namespace shardwright::capi
