// SPDX-License-Identifier: Apache-2.0
//
// What may be added, and with which sizes; the loops are those of the kernel chosen at run time.
#include "core/tensor/ordered_add.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "core/tensor/number_kernel_internal.h"

namespace shardwright {
namespace {

using internal::SumArguments;
using internal::SumFunction;

// Null for what cannot be added. A flat table.
SumFunction sum_function(DType dtype) {
  const internal::NumberKernel& kernel = internal::best_number_kernel();
  switch (dtype) {
    case DType::kFloat16:
      return kernel.sum_float16;
    case DType::kBfloat16:
      return kernel.sum_bfloat16;
    case DType::kFloat32:
      return kernel.sum_float32;
    case DType::kFloat64:
      return kernel.sum_float64;
    case DType::kInt8:
    case DType::kUint8:
      return kernel.sum_integer8;
    case DType::kInt16:
    case DType::kUint16:
      return kernel.sum_integer16;
    case DType::kInt32:
    case DType::kUint32:
      return kernel.sum_integer32;
    case DType::kInt64:
    case DType::kUint64:
      return kernel.sum_integer64;
    default:
      return nullptr;
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

Status check_sum(DType dtype, double scale, size_t bytes) {
  if (!ordered_add_is_supported(dtype))
    return unimplemented(fmt::format("elements of {} cannot be added", dtype_name(dtype)));
  if (scale != 1 && !is_float(dtype)) {
    return invalid_argument(
        fmt::format("elements of {} cannot be multiplied by {}: only sums of "
                    "floats are scaled",
                    dtype_name(dtype), scale));
  }
  if (bytes % (static_cast<size_t>(dtype_bits(dtype)) / 8) != 0) {
    return invalid_argument(
        fmt::format("{} bytes are no whole number of {} elements", bytes, dtype_name(dtype)));
  }
  return {};
}

const unsigned char* numbers(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* numbers(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

size_t element_count(DType dtype, std::span<const std::byte> bytes) {
  return bytes.size() / (static_cast<size_t>(dtype_bits(dtype)) / 8);
}

}  // namespace

bool ordered_add_is_supported(DType dtype) {
  return sum_function(dtype) != nullptr;
}

Status add_in_order(DType dtype, std::span<const std::byte> parts, size_t part_count, double scale,
                    std::span<std::byte> target) {
  SHW_RETURN_IF_ERROR(check_sum(dtype, scale, target.size()));
  if (part_count == 0 || parts.size() % part_count != 0 ||
      parts.size() / part_count != target.size()) {
    return invalid_argument(
        fmt::format("{} bytes are not {} parts of {} bytes, which is what the "
                    "sum has",
                    parts.size(), part_count, target.size()));
  }
  if (target.empty()) return {};
  if (part_count == 1 && scale == 1) {
    if (parts.data() != target.data()) std::memcpy(target.data(), parts.data(), target.size());
    return {};
  }
  sum_function(dtype)({numbers(parts.first(target.size())), numbers(parts.subspan(target.size())),
                       part_count - 1, element_count(dtype, target), scale, numbers(target)});
  return {};
}

Status add_to(DType dtype, std::span<const std::byte> more, std::span<std::byte> target) {
  SHW_RETURN_IF_ERROR(check_sum(dtype, 1, target.size()));
  if (more.size() != target.size()) {
    return invalid_argument(
        fmt::format("{} bytes cannot be added to {}", more.size(), target.size()));
  }
  if (target.empty()) return {};
  sum_function(dtype)(
      {numbers(target), numbers(more), 1, element_count(dtype, target), 1, numbers(target)});
  return {};
}

Status scale_elements(DType dtype, double factor, std::span<std::byte> target) {
  SHW_RETURN_IF_ERROR(check_sum(dtype, factor, target.size()));
  if (target.empty() || factor == 1) return {};
  sum_function(dtype)(
      {numbers(target), nullptr, 0, element_count(dtype, target), factor, numbers(target)});
  return {};
}

}  // namespace shardwright
