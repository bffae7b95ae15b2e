// SPDX-License-Identifier: Apache-2.0
//
// The dtype table: numbers are frozen, names and codes go both ways.
#include "core/tensor/dtype.h"

#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

struct DTypeRow {
  int number;
  std::string_view name;
  int32_t bits;
  uint8_t code;
};

class DTypeTable : public testing::TestWithParam<DTypeRow> {};

TEST_P(DTypeTable, HoldsNumberNameBitsAndCode) {
  const DTypeRow& row = GetParam();
  const auto dtype = static_cast<DType>(row.number);
  EXPECT_TRUE(dtype_is_valid(dtype));
  EXPECT_EQ(dtype_name(dtype), row.name);
  EXPECT_EQ(dtype_from_name(row.name), dtype);
  EXPECT_EQ(dtype_bits(dtype), row.bits);
  EXPECT_EQ(dtype_is_subbyte(dtype), row.bits < 8);
  EXPECT_EQ(dtype_to_dlpack(dtype).code, row.code);
  EXPECT_EQ(dtype_to_dlpack(dtype).bits, row.bits);
  EXPECT_EQ(*dtype_from_dlpack(row.code, static_cast<uint8_t>(row.bits), 1), dtype);
}

INSTANTIATE_TEST_SUITE_P(
    All, DTypeTable,
    testing::Values(DTypeRow{1, "bool", 8, 6}, DTypeRow{2, "int8", 8, 0},
                    DTypeRow{3, "int16", 16, 0}, DTypeRow{4, "int32", 32, 0},
                    DTypeRow{5, "int64", 64, 0}, DTypeRow{6, "uint8", 8, 1},
                    DTypeRow{7, "uint16", 16, 1}, DTypeRow{8, "uint32", 32, 1},
                    DTypeRow{9, "uint64", 64, 1}, DTypeRow{10, "float16", 16, 2},
                    DTypeRow{11, "bfloat16", 16, 4}, DTypeRow{12, "float32", 32, 2},
                    DTypeRow{13, "float64", 64, 2}, DTypeRow{14, "complex32", 32, 5},
                    DTypeRow{15, "complex64", 64, 5}, DTypeRow{16, "complex128", 128, 5},
                    DTypeRow{17, "float8_e3m4", 8, 7}, DTypeRow{18, "float8_e4m3", 8, 8},
                    DTypeRow{19, "float8_e4m3b11fnuz", 8, 9}, DTypeRow{20, "float8_e4m3fn", 8, 10},
                    DTypeRow{21, "float8_e4m3fnuz", 8, 11}, DTypeRow{22, "float8_e5m2", 8, 12},
                    DTypeRow{23, "float8_e5m2fnuz", 8, 13}, DTypeRow{24, "float8_e8m0fnu", 8, 14},
                    DTypeRow{25, "float6_e2m3fn", 6, 15}, DTypeRow{26, "float6_e3m2fn", 6, 16},
                    DTypeRow{27, "float4_e2m1fn", 4, 17}, DTypeRow{28, "int4", 4, 0},
                    DTypeRow{29, "uint4", 4, 1}));

TEST(DType, NumbersOutsideTheTableAreInvalid) {
  EXPECT_FALSE(dtype_is_valid(DType::kInvalid));
  EXPECT_FALSE(dtype_is_valid(static_cast<DType>(kDTypeCount)));
  EXPECT_FALSE(dtype_is_valid(static_cast<DType>(255)));
  EXPECT_EQ(dtype_name(static_cast<DType>(255)), "invalid");
  EXPECT_EQ(dtype_bits(DType::kInvalid), 0);
  EXPECT_FALSE(dtype_is_subbyte(DType::kInvalid));
  EXPECT_EQ(dtype_from_name("invalid"), std::nullopt);
  EXPECT_EQ(dtype_from_name("float"), std::nullopt);
}

struct RefusedType {
  int code;
  int bits;
  int lanes;
  StatusCode status;
};

class DTypeFromDLPack : public testing::TestWithParam<RefusedType> {};

TEST_P(DTypeFromDLPack, Refuses) {
  const RefusedType& type = GetParam();
  const Result<DType> dtype =
      dtype_from_dlpack(static_cast<uint8_t>(type.code), static_cast<uint8_t>(type.bits),
                        static_cast<uint16_t>(type.lanes));
  EXPECT_EQ(dtype.status().code(), type.status)
      << type.code << " " << type.bits << " " << type.lanes;
}

INSTANTIATE_TEST_SUITE_P(Table, DTypeFromDLPack,
                         testing::Values(RefusedType{3, 64, 1, StatusCode::kUnimplemented},
                                         RefusedType{2, 32, 4, StatusCode::kUnimplemented},
                                         RefusedType{2, 32, 0, StatusCode::kUnimplemented},
                                         RefusedType{18, 8, 1, StatusCode::kUnimplemented},
                                         RefusedType{255, 0, 1, StatusCode::kUnimplemented},
                                         RefusedType{0, 128, 1, StatusCode::kUnimplemented},
                                         RefusedType{2, 8, 1, StatusCode::kUnimplemented},
                                         RefusedType{6, 1, 1, StatusCode::kUnimplemented},
                                         RefusedType{15, 8, 1, StatusCode::kInvalidArgument},
                                         RefusedType{16, 4, 1, StatusCode::kInvalidArgument},
                                         RefusedType{17, 8, 1, StatusCode::kInvalidArgument}));

TEST(DTypePackedBytes, RoundsSubbyteCountsUp) {
  EXPECT_EQ(*dtype_packed_bytes(DType::kInt4, 0), 0U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kInt4, 3), 2U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kFloat6E2m3fn, 3), 3U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kFloat6E2m3fn, 9), 7U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kComplex128, 3), 48U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kBool, 5), 5U);
  EXPECT_EQ(*dtype_packed_bytes(DType::kInt16, 7), 14U);
}

TEST(DTypePackedBytes, RefusesWhatDoesNotFit) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(dtype_packed_bytes(DType::kFloat32, kMax).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(dtype_packed_bytes(DType::kComplex128, kMax / 8).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(*dtype_packed_bytes(DType::kInt8, kMax), uint64_t{kMax});
  EXPECT_EQ(*dtype_packed_bytes(DType::kInt4, kMax), uint64_t{1} << 62);
  EXPECT_EQ(dtype_packed_bytes(DType::kFloat32, -1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(dtype_packed_bytes(DType::kInvalid, 1).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright
