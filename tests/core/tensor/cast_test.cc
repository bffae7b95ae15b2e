// SPDX-License-Identifier: Apache-2.0
//
// Casts: known values of each float format, rounding against a search over all codes, saturation,
// refusals.
#include "core/tensor/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename To, typename From>
To cast_one(DType from, From value, DType to) {
  To result{};
  const Status status = cast_elements(from, std::as_bytes(std::span(&value, 1)), to,
                                      std::as_writable_bytes(std::span(&result, 1)));
  EXPECT_TRUE(status.ok()) << status.to_string();
  return result;
}

double decode(DType dtype, uint32_t code) {
  if (dtype_bits(dtype) == 8)
    return cast_one<double>(dtype, static_cast<uint8_t>(code), DType::kFloat64);
  return cast_one<double>(dtype, static_cast<uint16_t>(code), DType::kFloat64);
}

uint32_t encode(DType dtype, double value) {
  if (dtype_bits(dtype) == 8) return cast_one<uint8_t>(DType::kFloat64, value, dtype);
  return cast_one<uint16_t>(DType::kFloat64, value, dtype);
}

bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

struct KnownCode {
  DType dtype;
  uint32_t code;
  double value;
};

class KnownCodes : public testing::TestWithParam<KnownCode> {};

TEST_P(KnownCodes, DecodeAndEncode) {
  const KnownCode& known = GetParam();
  const double decoded = decode(known.dtype, known.code);
  EXPECT_TRUE(same_number(decoded, known.value))
      << dtype_name(known.dtype) << " " << known.code << " gave " << decoded;
  EXPECT_EQ(std::signbit(decoded), std::signbit(known.value));
  EXPECT_EQ(encode(known.dtype, known.value), known.code)
      << dtype_name(known.dtype) << " " << known.value;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, KnownCodes,
    testing::Values(
        KnownCode{DType::kFloat16, 0x3C00, 1.0}, KnownCode{DType::kFloat16, 0x7BFF, 65504.0},
        KnownCode{DType::kFloat16, 0x0001, 0x1p-24}, KnownCode{DType::kFloat16, 0x7C00, kInf},
        KnownCode{DType::kFloat16, 0xFC00, -kInf}, KnownCode{DType::kFloat16, 0x7E00, kNan},
        KnownCode{DType::kFloat16, 0x8000, -0.0}, KnownCode{DType::kBfloat16, 0x3F80, 1.0},
        KnownCode{DType::kBfloat16, 0x7F7F, 0x1.FEp127},
        KnownCode{DType::kBfloat16, 0x0001, 0x1p-133}, KnownCode{DType::kBfloat16, 0x7F80, kInf},
        KnownCode{DType::kBfloat16, 0x7FC0, kNan}, KnownCode{DType::kFloat8E3m4, 0x30, 1.0},
        KnownCode{DType::kFloat8E3m4, 0x6F, 15.5}, KnownCode{DType::kFloat8E3m4, 0x01, 0x1p-6},
        KnownCode{DType::kFloat8E3m4, 0x70, kInf}, KnownCode{DType::kFloat8E4m3, 0x38, 1.0},
        KnownCode{DType::kFloat8E4m3, 0x77, 240.0}, KnownCode{DType::kFloat8E4m3, 0x01, 0x1p-9},
        KnownCode{DType::kFloat8E4m3, 0xF8, -kInf}, KnownCode{DType::kFloat8E4m3b11fnuz, 0x58, 1.0},
        KnownCode{DType::kFloat8E4m3b11fnuz, 0x7F, 30.0},
        KnownCode{DType::kFloat8E4m3b11fnuz, 0x01, 0x1p-13},
        KnownCode{DType::kFloat8E4m3b11fnuz, 0x80, kNan},
        KnownCode{DType::kFloat8E4m3fn, 0x38, 1.0}, KnownCode{DType::kFloat8E4m3fn, 0x7E, 448.0},
        KnownCode{DType::kFloat8E4m3fn, 0x01, 0x1p-9}, KnownCode{DType::kFloat8E4m3fn, 0x7F, kNan},
        KnownCode{DType::kFloat8E4m3fn, 0x80, -0.0}, KnownCode{DType::kFloat8E4m3fnuz, 0x40, 1.0},
        KnownCode{DType::kFloat8E4m3fnuz, 0x7F, 240.0},
        KnownCode{DType::kFloat8E4m3fnuz, 0x01, 0x1p-10},
        KnownCode{DType::kFloat8E4m3fnuz, 0x80, kNan}, KnownCode{DType::kFloat8E5m2, 0x3C, 1.0},
        KnownCode{DType::kFloat8E5m2, 0x7B, 57344.0}, KnownCode{DType::kFloat8E5m2, 0x01, 0x1p-16},
        KnownCode{DType::kFloat8E5m2, 0x7C, kInf}, KnownCode{DType::kFloat8E5m2, 0x7E, kNan},
        KnownCode{DType::kFloat8E5m2fnuz, 0x40, 1.0},
        KnownCode{DType::kFloat8E5m2fnuz, 0x7F, 57344.0},
        KnownCode{DType::kFloat8E5m2fnuz, 0x01, 0x1p-17},
        KnownCode{DType::kFloat8E5m2fnuz, 0x80, kNan}, KnownCode{DType::kFloat8E8m0fnu, 127, 1.0},
        KnownCode{DType::kFloat8E8m0fnu, 0, 0x1p-127},
        KnownCode{DType::kFloat8E8m0fnu, 254, 0x1p127},
        KnownCode{DType::kFloat8E8m0fnu, 255, kNan}));

const std::vector<DType> kSmallFloats = {
    DType::kFloat16,        DType::kBfloat16,     DType::kFloat8E3m4,
    DType::kFloat8E4m3,     DType::kFloat8E4m3fn, DType::kFloat8E4m3b11fnuz,
    DType::kFloat8E4m3fnuz, DType::kFloat8E5m2,   DType::kFloat8E5m2fnuz};

TEST(CastToSmallFloat, EveryCodeComesBack) {
  for (const DType dtype : kSmallFloats) {
    const uint32_t codes = 1U << dtype_bits(dtype);
    for (uint32_t code = 0; code < codes; ++code) {
      const double value = decode(dtype, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(dtype, encode(dtype, value)))) << dtype_name(dtype);
      } else {
        ASSERT_EQ(encode(dtype, value), code) << dtype_name(dtype);
      }
    }
  }
}

// All finite values from 0 up, ascending; the index is the code without sign.
std::vector<double> finite_values(DType dtype) {
  std::vector<double> values;
  for (uint32_t code = 0; code < (1U << (dtype_bits(dtype) - 1)); ++code) {
    const double value = decode(dtype, code);
    if (!std::isfinite(value)) break;
    values.push_back(value);
  }
  return values;
}

double overflow_value(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4m3fn:
      return 448.0;
    case DType::kFloat8E4m3b11fnuz:
    case DType::kFloat8E4m3fnuz:
    case DType::kFloat8E5m2fnuz:
      return kNan;
    default:
      return kInf;
  }
}

// Nearest by search, ties to the even code; what lies half a step or more beyond the largest
// overflows.
double nearest(const std::vector<double>& values, double value, double overflow) {
  const double magnitude = std::abs(value);
  const double last_step = values.back() - values[values.size() - 2];
  const double beyond = values.back() + last_step;
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  double result = 0;
  if (above == values.end()) {
    const bool tie_stays = values.size() % 2 == 1;  // the last code is even
    const double middle = (values.back() + beyond) / 2;
    const bool stays = magnitude < middle || (magnitude == middle && tie_stays);
    result = stays ? values.back() : overflow;
  } else if (above == values.begin()) {
    result = values.front();
  } else {
    const double low = *(above - 1);
    const double to_low = magnitude - low;
    const double to_high = *above - magnitude;
    const bool low_is_even = (above - 1 - values.begin()) % 2 == 0;
    result = to_low < to_high || (to_low == to_high && low_is_even) ? low : *above;
  }
  return std::copysign(result, value);
}

TEST(CastToSmallFloat, RoundsToTheNearestWithTiesToEven) {
  test::RandomSource random;
  for (const DType dtype : kSmallFloats) {
    const std::vector<double> values = finite_values(dtype);
    const double overflow = overflow_value(dtype);
    std::vector<double> inputs = {values.back() * 2,
                                  values.back() * 1e30,
                                  values[1] / 2,
                                  values[1] / 4,
                                  values[1] * 0.51,
                                  1e-300,
                                  5e-324,
                                  kInf};
    for (int i = 0; i < 3000; ++i) {
      const auto index =
          static_cast<size_t>(random.between(1, static_cast<int64_t>(values.size()) - 1));
      const double fraction =
          random.pick(std::vector<double>{0.25, 0.5, 0.5000001, 0.4999999, 0.75});
      inputs.push_back(values[index - 1] + (values[index] - values[index - 1]) * fraction);
      const double last_step = values.back() - values[values.size() - 2];
      inputs.push_back(values.back() + last_step * fraction);
    }
    for (const double magnitude : inputs) {
      for (const double input : {magnitude, -magnitude}) {
        const double got = decode(dtype, encode(dtype, input));
        ASSERT_TRUE(same_number(got, nearest(values, input, overflow)))
            << dtype_name(dtype) << ": " << input << " gave " << got;
      }
    }
  }
}

TEST(CastToSmallFloat, IntegersAreRoundedOnce) {
  // 2^54 + 2^46 + 1 lies just above a tie of bfloat16; rounding to double first would make it the
  // tie.
  const int64_t value = (int64_t{1} << 54) + (int64_t{1} << 46) + 1;
  EXPECT_EQ(cast_one<uint16_t>(DType::kInt64, value, DType::kBfloat16), 0x5A81);
  EXPECT_EQ(cast_one<uint16_t>(DType::kInt64, value - 1, DType::kBfloat16), 0x5A80);
  EXPECT_EQ(cast_one<uint16_t>(DType::kInt64, -value, DType::kBfloat16), 0xDA81);
  EXPECT_EQ(cast_one<uint16_t>(DType::kUint64, static_cast<uint64_t>(value), DType::kBfloat16),
            0x5A81);
  EXPECT_EQ(
      cast_one<uint16_t>(DType::kInt64, std::numeric_limits<int64_t>::min(), DType::kBfloat16),
      0xDF00);
  EXPECT_EQ(cast_one<uint16_t>(DType::kUint64, UINT64_MAX, DType::kBfloat16), 0x5F80);
}

TEST(CastToE8m0, HasNoZeroAndNoSign) {
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 0.0), 0U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, -0.0), 0U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 1e-300), 0U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, -1.0), 255U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, kInf), 255U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 0x1.7fp127), 254U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 0x1.8p127), 255U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 1.49), 127U);
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 1.5), 128U);  // ties go up
  EXPECT_EQ(encode(DType::kFloat8E8m0fnu, 3.0), 129U);
}

struct ToInteger {
  double value;
  int8_t as_int8;
  uint8_t as_uint8;
  int64_t as_int64;
  uint64_t as_uint64;
};

class CastToInteger : public testing::TestWithParam<ToInteger> {};

TEST_P(CastToInteger, TruncatesAndSaturates) {
  const ToInteger& row = GetParam();
  EXPECT_EQ(cast_one<int8_t>(DType::kFloat64, row.value, DType::kInt8), row.as_int8);
  EXPECT_EQ(cast_one<uint8_t>(DType::kFloat64, row.value, DType::kUint8), row.as_uint8);
  EXPECT_EQ(cast_one<int64_t>(DType::kFloat64, row.value, DType::kInt64), row.as_int64);
  EXPECT_EQ(cast_one<uint64_t>(DType::kFloat64, row.value, DType::kUint64), row.as_uint64);
}

INSTANTIATE_TEST_SUITE_P(Values, CastToInteger,
                         testing::Values(ToInteger{1.9, 1, 1, 1, 1}, ToInteger{-1.9, -1, 0, -1, 0},
                                         ToInteger{0.99, 0, 0, 0, 0}, ToInteger{-0.0, 0, 0, 0, 0},
                                         ToInteger{128.0, 127, 128, 128, 128},
                                         ToInteger{-129.0, -128, 0, -129, 0},
                                         ToInteger{256.5, 127, 255, 256, 256},
                                         ToInteger{0x1p63, 127, 255, INT64_MAX, uint64_t{1} << 63},
                                         ToInteger{-0x1p63, -128, 0, INT64_MIN, 0},
                                         ToInteger{1e30, 127, 255, INT64_MAX, UINT64_MAX},
                                         ToInteger{-1e30, -128, 0, INT64_MIN, 0},
                                         ToInteger{kInf, 127, 255, INT64_MAX, UINT64_MAX},
                                         ToInteger{-kInf, -128, 0, INT64_MIN, 0},
                                         ToInteger{kNan, 0, 0, 0, 0}));

TEST(Cast, IntegersSaturate) {
  EXPECT_EQ(cast_one<int8_t>(DType::kInt64, int64_t{300}, DType::kInt8), 127);
  EXPECT_EQ(cast_one<int8_t>(DType::kInt64, int64_t{-300}, DType::kInt8), -128);
  EXPECT_EQ(cast_one<uint32_t>(DType::kInt32, int32_t{-1}, DType::kUint32), 0U);
  EXPECT_EQ(cast_one<int64_t>(DType::kUint64, UINT64_MAX, DType::kInt64), INT64_MAX);
  EXPECT_EQ(cast_one<uint64_t>(DType::kInt64, int64_t{INT64_MAX}, DType::kUint64),
            uint64_t{INT64_MAX});
  EXPECT_EQ(cast_one<int16_t>(DType::kUint16, uint16_t{65535}, DType::kInt16), 32767);
}

TEST(Cast, Bools) {
  EXPECT_EQ(cast_one<uint8_t>(DType::kFloat32, 0.0F, DType::kBool), 0);
  EXPECT_EQ(cast_one<uint8_t>(DType::kFloat32, -0.0F, DType::kBool), 0);
  EXPECT_EQ(cast_one<uint8_t>(DType::kFloat32, 0.1F, DType::kBool), 1);
  EXPECT_EQ(cast_one<uint8_t>(DType::kFloat64, kNan, DType::kBool), 1);
  EXPECT_EQ(cast_one<uint8_t>(DType::kInt32, int32_t{-256}, DType::kBool), 1);
  EXPECT_EQ(cast_one<float>(DType::kBool, uint8_t{2}, DType::kFloat32), 1.0F);
}

TEST(Cast, WideFloats) {
  EXPECT_EQ(cast_one<float>(DType::kFloat64, 0.1, DType::kFloat32), 0.1F);
  EXPECT_EQ(cast_one<float>(DType::kFloat64, 1e300, DType::kFloat32),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(cast_one<double>(DType::kFloat32, 0.1F, DType::kFloat64), static_cast<double>(0.1F));
  const int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(cast_one<double>(DType::kInt64, odd, DType::kFloat64), 0x1p53);
  EXPECT_EQ(
      cast_one<float>(DType::kInt64, (int64_t{1} << 54) + (int64_t{1} << 30) + 1, DType::kFloat32),
      0x1.000002p54F);
}

// The direct loops must give what the general way through float64 gives, for every code and many
// floats.
TEST(Cast, DirectPairsAgreeWithTheGeneralWay) {
  for (uint32_t code = 0; code <= 0xFFFF; ++code) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
      const auto direct = cast_one<float>(dtype, static_cast<uint16_t>(code), DType::kFloat32);
      ASSERT_TRUE(same_number(direct, decode(dtype, code))) << dtype_name(dtype) << " " << code;
      ASSERT_EQ(std::signbit(direct), (code & 0x8000) != 0);
    }
  }
  test::RandomSource random;
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random.next()));
    const auto direct = cast_one<uint16_t>(DType::kFloat32, value, DType::kBfloat16);
    ASSERT_EQ(direct, encode(DType::kBfloat16, value)) << value;
  }
}

TEST(Cast, WorksAcrossBlocksAndWithoutAlignment) {
  constexpr size_t kCount = 1000;
  std::vector<std::byte> source(kCount * 4 + 1);
  for (size_t i = 0; i < kCount; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(source.data() + 1 + i * 4, &value, 4);
  }
  std::vector<std::byte> target(kCount * 2 + 1);
  ASSERT_TRUE(cast_elements(DType::kFloat32, std::span(source).subspan(1), DType::kInt16,
                            std::span(target).subspan(1))
                  .ok());
  for (size_t i = 0; i < kCount; ++i) {
    int16_t value = 0;
    std::memcpy(&value, target.data() + 1 + i * 2, 2);
    ASSERT_EQ(value, static_cast<int16_t>(i));
  }
}

TEST(Cast, SameDtypeCopiesAnyType) {
  const std::vector<std::byte> source = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::vector<std::byte> target(3);
  EXPECT_TRUE(cast_elements(DType::kInt4, source, DType::kInt4, target).ok());
  EXPECT_EQ(target, source);
  EXPECT_TRUE(cast_elements(DType::kComplex64, {}, DType::kComplex64, {}).ok());
}

TEST(Cast, RefusesComplexAndSubbyteNamingBoth) {
  for (const DType other :
       {DType::kComplex32, DType::kComplex64, DType::kComplex128, DType::kInt4, DType::kUint4,
        DType::kFloat6E2m3fn, DType::kFloat6E3m2fn, DType::kFloat4E2m1fn}) {
    EXPECT_FALSE(cast_is_supported(other, DType::kFloat32));
    EXPECT_FALSE(cast_is_supported(DType::kFloat32, other));
    const Status status = cast_elements(DType::kFloat32, {}, other, {});
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(status.message().find("float32"), std::string_view::npos);
    EXPECT_NE(status.message().find(dtype_name(other)), std::string_view::npos);
  }
  EXPECT_FALSE(cast_is_supported(DType::kInvalid, DType::kInvalid));
}

TEST(Cast, RefusesSizesThatDoNotMatch) {
  std::vector<std::byte> eight(8);
  std::vector<std::byte> three(3);
  EXPECT_EQ(cast_elements(DType::kFloat32, eight, DType::kInt8, three).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cast_elements(DType::kFloat32, three, DType::kInt8, three).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cast_elements(DType::kInt8, three, DType::kFloat32, eight).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(cast_elements(DType::kInt8, three, DType::kInt8, eight).code(),
            StatusCode::kInvalidArgument);
}

TEST(Cast, EveryPairOfTheListedTypesWorks) {
  for (int from = 1; from < kDTypeCount; ++from) {
    for (int to = 1; to < kDTypeCount; ++to) {
      const auto a = static_cast<DType>(from);
      const auto b = static_cast<DType>(to);
      if (a == b || !cast_is_supported(a, b)) continue;
      // The number one exists in all of them and must survive.
      std::vector<std::byte> one(static_cast<size_t>(dtype_bits(a)) / 8);
      const double value = 1.0;
      ASSERT_TRUE(cast_elements(DType::kFloat64, std::as_bytes(std::span(&value, 1)), a, one).ok());
      std::vector<std::byte> cast(static_cast<size_t>(dtype_bits(b)) / 8);
      ASSERT_TRUE(cast_elements(a, one, b, cast).ok());
      double back = 0;
      ASSERT_TRUE(
          cast_elements(b, cast, DType::kFloat64, std::as_writable_bytes(std::span(&back, 1)))
              .ok());
      EXPECT_EQ(back, 1.0) << dtype_name(a) << " to " << dtype_name(b);
    }
  }
}

}  // namespace
}  // namespace shardwright
