// SPDX-License-Identifier: Apache-2.0
//
// On the host a run goes through sums of a block at a time, in the precision that the rules name,
// so that it is rounded where a device rounds it.
#include "core/device/element_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/tensor/cast.h"
#include "core/tensor/ordered_add.h"

namespace shardwright::device {
namespace {

constexpr size_t kBlockElements = 1024;

uint64_t element_bytes(DType dtype) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8;
}

bool is_number(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

// Bytes from the first element of the first run to the end of the last one.
Status check_extent(uint64_t rows, uint64_t columns, uint64_t pitch, DType dtype) {
  uint64_t elements = 0;
  uint64_t bytes = 0;
  if (checked_multiply(rows, std::max(pitch, columns), &elements) &&
      checked_multiply(elements, element_bytes(dtype), &bytes) &&
      bytes <= static_cast<uint64_t>(INT64_MAX))
    return {};
  return invalid_argument(fmt::format("{} runs of {} elements of {}, {} apart, fit in no memory",
                                      rows, columns, dtype_name(dtype), pitch));
}

DType sum_dtype(const ElementCopy& copy) {
  const bool is_wide = copy.source_dtype == DType::kFloat64 || copy.target_dtype == DType::kFloat64;
  return is_wide ? DType::kFloat64 : DType::kFloat32;
}

// A block of one run.
Status copy_block(const ElementCopy& copy, const std::byte* source, std::byte* target,
                  size_t elements) {
  const DType sum = sum_dtype(copy);
  std::array<double, kBlockElements> values;
  std::array<double, kBlockElements> sums;
  const size_t sum_bytes = elements * static_cast<size_t>(element_bytes(sum));
  const auto value_bytes = std::as_writable_bytes(std::span(values)).first(sum_bytes);
  const auto total_bytes = std::as_writable_bytes(std::span(sums)).first(sum_bytes);
  const std::span from(source, elements * static_cast<size_t>(element_bytes(copy.source_dtype)));
  const std::span to(target, elements * static_cast<size_t>(element_bytes(copy.target_dtype)));
  SHW_RETURN_IF_ERROR(cast_elements(copy.source_dtype, from, sum, value_bytes));
  if (copy.scale != 1) SHW_RETURN_IF_ERROR(scale_elements(sum, copy.scale, value_bytes));
  if (!copy.adds) return cast_elements(sum, value_bytes, copy.target_dtype, to);
  SHW_RETURN_IF_ERROR(cast_elements(copy.target_dtype, to, sum, total_bytes));
  SHW_RETURN_IF_ERROR(add_to(sum, value_bytes, total_bytes));
  return cast_elements(sum, total_bytes, copy.target_dtype, to);
}

}  // namespace

bool copies_bytes(const ElementCopy& copy) {
  return copy.source_dtype == copy.target_dtype && copy.scale == 1 && !copy.adds;
}

Status check_element_copy(const ElementCopy& copy) {
  const DType from = copy.source_dtype;
  const DType to = copy.target_dtype;
  const bool is_there = copies_bytes(copy) ? dtype_bits(from) >= 8 && dtype_bits(from) % 8 == 0
                                           : is_number(from) && is_number(to);
  if (!is_there)
    return unimplemented(fmt::format("elements of {} are not {} those of {} by a device",
                                     dtype_name(from), copy.adds ? "added to" : "made",
                                     dtype_name(to)));
  SHW_RETURN_IF_ERROR(check_extent(copy.rows, copy.columns, copy.source_pitch, from));
  SHW_RETURN_IF_ERROR(check_extent(copy.rows, copy.columns, copy.target_pitch, to));
  if (copy.rows > 1 && copy.target_pitch < copy.columns)
    return invalid_argument(fmt::format("runs of {} elements that begin {} apart overlap",
                                        copy.columns, copy.target_pitch));
  return {};
}

Status copy_elements_on_host(const ElementCopy& copy) {
  SHW_RETURN_IF_ERROR(check_element_copy(copy));
  const uint64_t from_bytes = element_bytes(copy.source_dtype);
  const uint64_t to_bytes = element_bytes(copy.target_dtype);
  for (uint64_t row = 0; row < copy.rows; ++row) {
    const std::byte* const source = copy.source + row * copy.source_pitch * from_bytes;
    std::byte* const target = copy.target + row * copy.target_pitch * to_bytes;
    if (copies_bytes(copy)) {
      if (source != target) std::memcpy(target, source, copy.columns * from_bytes);
      continue;
    }
    for (uint64_t begin = 0; begin < copy.columns; begin += kBlockElements) {
      const auto count =
          static_cast<size_t>(std::min<uint64_t>(kBlockElements, copy.columns - begin));
      SHW_RETURN_IF_ERROR(
          copy_block(copy, source + begin * from_bytes, target + begin * to_bytes, count));
    }
  }
  return {};
}

}  // namespace shardwright::device
