// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/dtype_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace shardwright::format::safetensors {
namespace {

// In the order of the package (0.8).
constexpr std::array<std::pair<std::string_view, DType>, 22> kDTypes = {{
    {"BOOL", DType::kBool},
    {"F4", DType::kFloat4E2m1fn},
    {"F6_E2M3", DType::kFloat6E2m3fn},
    {"F6_E3M2", DType::kFloat6E3m2fn},
    {"U8", DType::kUint8},
    {"I8", DType::kInt8},
    {"F8_E5M2", DType::kFloat8E5m2},
    {"F8_E4M3", DType::kFloat8E4m3fn},
    {"F8_E8M0", DType::kFloat8E8m0fnu},
    {"F8_E4M3FNUZ", DType::kFloat8E4m3fnuz},
    {"F8_E5M2FNUZ", DType::kFloat8E5m2fnuz},
    {"I16", DType::kInt16},
    {"U16", DType::kUint16},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBfloat16},
    {"I32", DType::kInt32},
    {"U32", DType::kUint32},
    {"F32", DType::kFloat32},
    {"C64", DType::kComplex64},
    {"F64", DType::kFloat64},
    {"I64", DType::kInt64},
    {"U64", DType::kUint64},
}};

const auto* find(DType dtype) {
  return std::ranges::find(kDTypes, dtype, [](const auto& row) { return row.second; });
}

}  // namespace

std::optional<DType> dtype_of(std::string_view name) {
  const auto* found = std::ranges::find(kDTypes, name, [](const auto& row) { return row.first; });
  return found == kDTypes.end() ? std::nullopt : std::optional(found->second);
}

std::string_view name_of(DType dtype) {
  const auto* found = find(dtype);
  return found == kDTypes.end() ? std::string_view() : found->first;
}

uint32_t place_of(DType dtype) {
  return static_cast<uint32_t>(find(dtype) - kDTypes.begin());
}

std::string known_dtypes() {
  std::string all;
  for (const auto& [text, dtype] : kDTypes)
    all += fmt::format("{}{}", all.empty() ? "" : ", ", text);
  return all;
}

}  // namespace shardwright::format::safetensors
