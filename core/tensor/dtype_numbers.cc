// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype_numbers.h"

#include <array>

#include <fmt/format.h>

namespace shardwright {
namespace {

constexpr uint32_t kWidestBits = 128;
constexpr uint32_t kCodes = 18;

// By code + 18 * bits; all but the dtypes of the table are kInvalid.
using DLPackTable = std::array<DType, kCodes*(kWidestBits + 1)>;

DLPackTable make_dlpack_table() {
  DLPackTable table{};
  for (int32_t i = 1; i < kDTypeCount; ++i) {
    const DLPackType type = dtype_to_dlpack(static_cast<DType>(i));
    table[type.code + kCodes * type.bits] = static_cast<DType>(i);
  }
  return table;
}

}  // namespace

DType find_dtype(int32_t number) {
  return number > 0 && number < kDTypeCount ? static_cast<DType>(number) : DType::kInvalid;
}

Result<DType> dtype_from_number(int32_t number) {
  const DType dtype = find_dtype(number);
  if (dtype != DType::kInvalid) return dtype;
  return invalid_argument(
      fmt::format("there is no dtype {}, only 1 to {}", number, kDTypeCount - 1));
}

DType find_dlpack_dtype(uint32_t type) {
  static const DLPackTable kTable = make_dlpack_table();
  const uint32_t code = type & 0xFF;
  const uint32_t bits = type >> 8 & 0xFF;
  return type >> 16 == 1 && code < kCodes && bits <= kWidestBits ? kTable[code + kCodes * bits]
                                                                 : DType::kInvalid;
}

}  // namespace shardwright
