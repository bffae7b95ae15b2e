// SPDX-License-Identifier: Apache-2.0
//
// Sums are those of core/tensor/ordered_add.h; greatest and least of the dtypes that hosts compare.
#include <cmath>
#include <concepts>
#include <cstring>

#include <fmt/format.h>

#include "core/collective/tensor_operation.h"
#include "core/tensor/ordered_add.h"

namespace shardwright::collective {
namespace {

bool has_order(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
         dtype == DType::kInt64;
}

bool is_extremum(Reduction reduction) {
  return reduction == Reduction::kMax || reduction == Reduction::kMin;
}

// One that is no number stays.
template <typename T>
bool replaces(Reduction reduction, T value, T best) {
  if constexpr (std::floating_point<T>) {
    if (std::isnan(best)) return false;
    if (std::isnan(value)) return true;
  }
  return reduction == Reduction::kMax ? value > best : value < best;
}

// Elements need not be aligned.
template <typename T>
void find_extrema(Reduction reduction, std::span<const std::byte> parts, size_t part_count,
                  std::span<std::byte> target) {
  for (size_t at = 0; at < target.size(); at += sizeof(T)) {
    T best{};
    std::memcpy(&best, parts.data() + at, sizeof(T));
    for (size_t part = 1; part < part_count; ++part) {
      T value{};
      std::memcpy(&value, parts.data() + part * target.size() + at, sizeof(T));
      if (replaces(reduction, value, best)) best = value;
    }
    std::memcpy(target.data() + at, &best, sizeof(T));
  }
}

Status extrema(const CommunicatorCall& call, std::span<const std::byte> parts, size_t part_count,
               std::span<std::byte> target) {
  switch (call.dtype) {
    case DType::kFloat32:
      find_extrema<float>(call.reduction, parts, part_count, target);
      return {};
    case DType::kFloat64:
      find_extrema<double>(call.reduction, parts, part_count, target);
      return {};
    case DType::kInt32:
      find_extrema<int32_t>(call.reduction, parts, part_count, target);
      return {};
    case DType::kInt64:
      find_extrema<int64_t>(call.reduction, parts, part_count, target);
      return {};
    default:
      return check_reduction(call.reduction, call.dtype);
  }
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

}  // namespace

Status check_reduction(Reduction reduction, DType dtype) {
  const bool is_there =
      is_extremum(reduction)
          ? has_order(dtype)
          : ordered_add_is_supported(dtype) && (reduction == Reduction::kSum || is_float(dtype));
  if (is_there) return {};
  return unimplemented(fmt::format("there is no reduction {} of elements of {}",
                                   static_cast<int32_t>(reduction), dtype_name(dtype)));
}

Status reduce_parts(const CommunicatorCall& call, std::span<std::byte> parts, size_t part_count,
                    std::span<std::byte> target) {
  if (target.empty()) return {};
  if (is_extremum(call.reduction)) return extrema(call, parts, part_count, target);
  double scale = 1.0;
  if (call.reduction == Reduction::kAverage) scale = 1.0 / static_cast<double>(part_count);
  if (call.reduction == Reduction::kScaledSum)
    SHW_RETURN_IF_ERROR(scale_elements(call.dtype, call.scale, parts));
  return add_in_order(call.dtype, parts, part_count, scale, target);
}

}  // namespace shardwright::collective
