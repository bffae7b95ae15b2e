// SPDX-License-Identifier: Apache-2.0
//
// One table, indexed by the frozen number of the dtype.
#include "core/tensor/dtype.h"

#include <iterator>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/tensor/dtype_numbers.h"

namespace shardwright {
namespace {

struct Row {
  std::string_view name;
  uint8_t bits;
  uint8_t dlpack_code;
};

constexpr uint8_t kDLPackOpaque = 3;
constexpr uint8_t kDLPackFloat6First = 15;
constexpr uint8_t kDLPackFloat6Last = 16;
constexpr uint8_t kDLPackFloat4 = 17;

constexpr Row kRows[] = {
    {"invalid", 0, 255},
    {"bool", 8, 6},
    {"int8", 8, 0},
    {"int16", 16, 0},
    {"int32", 32, 0},
    {"int64", 64, 0},
    {"uint8", 8, 1},
    {"uint16", 16, 1},
    {"uint32", 32, 1},
    {"uint64", 64, 1},
    {"float16", 16, 2},
    {"bfloat16", 16, 4},
    {"float32", 32, 2},
    {"float64", 64, 2},
    {"complex32", 32, 5},
    {"complex64", 64, 5},
    {"complex128", 128, 5},
    {"float8_e3m4", 8, 7},
    {"float8_e4m3", 8, 8},
    {"float8_e4m3b11fnuz", 8, 9},
    {"float8_e4m3fn", 8, 10},
    {"float8_e4m3fnuz", 8, 11},
    {"float8_e5m2", 8, 12},
    {"float8_e5m2fnuz", 8, 13},
    {"float8_e8m0fnu", 8, 14},
    {"float6_e2m3fn", 6, 15},
    {"float6_e3m2fn", 6, 16},
    {"float4_e2m1fn", 4, 17},
    {"int4", 4, 0},
    {"uint4", 4, 1},
};
static_assert(std::size(kRows) == kDTypeCount);

const Row& row_of(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < std::size(kRows) ? kRows[index] : kRows[0];
}

}  // namespace

bool dtype_is_valid(DType dtype) {
  return dtype != DType::kInvalid && static_cast<size_t>(dtype) < std::size(kRows);
}

std::string_view dtype_name(DType dtype) {
  return row_of(dtype).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int32_t dtype_bits(DType dtype) {
  return row_of(dtype).bits;
}

bool dtype_is_subbyte(DType dtype) {
  return dtype_is_valid(dtype) && row_of(dtype).bits < 8;
}

DLPackType dtype_to_dlpack(DType dtype) {
  return {row_of(dtype).dlpack_code, row_of(dtype).bits};
}

Result<DType> dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes) {
  if (code == kDLPackOpaque)
    return unimplemented("tensors of opaque DLPack elements are not supported");
  if (lanes != 1) {
    return unimplemented(
        fmt::format("DLPack elements of {} lanes are not supported, only 1", lanes));
  }
  if (code >= kDLPackFloat6First && code <= kDLPackFloat6Last && bits != 6) {
    return invalid_argument(fmt::format("a DLPack float6 element has 6 bits, not {}", bits));
  }
  if (code == kDLPackFloat4 && bits != 4) {
    return invalid_argument(fmt::format("a DLPack float4 element has 4 bits, not {}", bits));
  }
  const DType dtype = find_dlpack_dtype(code + 256U * bits + 65536U * lanes);
  if (dtype != DType::kInvalid) return dtype;
  return unimplemented(
      fmt::format("the DLPack dtype with code {} and {} bits is not supported", code, bits));
}

Result<uint64_t> dtype_packed_bytes(DType dtype, int64_t element_count) {
  if (!dtype_is_valid(dtype)) return invalid_argument("the dtype is not one of the table");
  if (element_count < 0) {
    return invalid_argument(fmt::format("the element count is negative: {}", element_count));
  }
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  const auto count = static_cast<uint64_t>(element_count);
  // Whole groups of eight elements are `bits` bytes; the rest rounds up. No product of count and
  // bits can wrap.
  uint64_t bytes = 0;
  if (!checked_multiply(count / 8, bits, &bytes) ||
      !checked_add(bytes, ((count % 8) * bits + 7) / 8, &bytes) || bytes > uint64_t{INT64_MAX}) {
    return invalid_argument(fmt::format("the bytes of {} elements of {} do not fit 63 bits",
                                        element_count, dtype_name(dtype)));
  }
  return bytes;
}

bool dtype_fills_bytes(DType dtype, int64_t element_count) {
  return element_count % 8 * dtype_bits(dtype) % 8 == 0;
}

}  // namespace shardwright
