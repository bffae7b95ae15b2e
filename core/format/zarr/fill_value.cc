// SPDX-License-Identifier: Apache-2.0
#include "core/format/zarr/fill_value.h"

#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "core/tensor/cast.h"

namespace shardwright::format::zarr {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

// Numbers, and the three that JSON cannot say as one.
std::optional<double> real_of(JsonValueView value) {
  if (value.type() == JsonType::kInteger || value.type() == JsonType::kReal) return value.real();
  if (value.type() != JsonType::kText) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value.text() == "Infinity") return kInfinity;
  if (value.text() == "-Infinity") return -kInfinity;
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::byte>> fill_element(JsonValueView value, DType dtype) {
  if (value.type() == JsonType::kNull) return std::vector<std::byte>();
  if (dtype == DType::kComplex64 || dtype == DType::kComplex128)
    return unimplemented("has a fill_value of complex numbers, which is not read");
  const Status wrong = data_loss(fmt::format("has a fill_value that is no {}", dtype_name(dtype)));
  std::vector<std::byte> element(static_cast<size_t>(dtype_bits(dtype) / 8));
  if (is_float(dtype)) {
    const std::optional<double> real = real_of(value);
    if (!real.has_value()) return wrong;
    SHW_RETURN_IF_ERROR(
        cast_elements(DType::kFloat64, std::as_bytes(std::span(&*real, 1)), dtype, element));
    return element;
  }
  const JsonType wanted = dtype == DType::kBool ? JsonType::kBoolean : JsonType::kInteger;
  if (value.type() != wanted) return wrong;
  const int64_t number = value.integer();
  int64_t again = 0;
  SHW_RETURN_IF_ERROR(
      cast_elements(DType::kInt64, std::as_bytes(std::span(&number, 1)), dtype, element));
  SHW_RETURN_IF_ERROR(
      cast_elements(dtype, element, DType::kInt64, std::as_writable_bytes(std::span(&again, 1))));
  return again == number ? Result<std::vector<std::byte>>(std::move(element)) : wrong;
}

}  // namespace shardwright::format::zarr
