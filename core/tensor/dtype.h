// SPDX-License-Identifier: Apache-2.0
//
// DType: the element types of api.md section 4, their torch names, widths and DLPack codes. The
// numbers are stored in files and plan buffers: frozen, append only. Immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/result.h"

namespace shardwright {

enum class DType : uint8_t {
  kInvalid = 0,
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint8 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kBfloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kComplex32 = 14,
  kComplex64 = 15,
  kComplex128 = 16,
  kFloat8E3m4 = 17,
  kFloat8E4m3 = 18,
  kFloat8E4m3b11fnuz = 19,
  kFloat8E4m3fn = 20,
  kFloat8E4m3fnuz = 21,
  kFloat8E5m2 = 22,
  kFloat8E5m2fnuz = 23,
  kFloat8E8m0fnu = 24,
  kFloat6E2m3fn = 25,
  kFloat6E3m2fn = 26,
  kFloat4E2m1fn = 27,
  kInt4 = 28,
  kUint4 = 29,
};
inline constexpr int32_t kDTypeCount = 30;

bool dtype_is_valid(DType dtype);
// torch's name without prefix, e.g. "bfloat16"; "invalid" for a number outside the table.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
// Bits of one element: 4, 6, 8, ..., 128.
int32_t dtype_bits(DType dtype);
bool dtype_is_subbyte(DType dtype);
// DLPack (code, bits) with one lane.
struct DLPackType {
  uint8_t code = 0;
  uint8_t bits = 0;
};
DLPackType dtype_to_dlpack(DType dtype);
// UNIMPLEMENTED for unknown codes, opaque types and lanes != 1; INVALID_ARGUMENT for float6 with
// bits != 6 and float4 with bits != 4.
Result<DType> dtype_from_dlpack(uint8_t code, uint8_t bits, uint16_t lanes);
// Bytes of count elements packed without padding; INVALID_ARGUMENT when it does not fit; sub-byte
// counts round up.
Result<uint64_t> dtype_packed_bytes(DType dtype, int64_t element_count);
// Whether so many packed elements end where a byte ends.
bool dtype_fills_bytes(DType dtype, int64_t element_count);

}  // namespace shardwright
