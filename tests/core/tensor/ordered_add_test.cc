// SPDX-License-Identifier: Apache-2.0
//
// Sums in order: every bit against loops over single numbers, in each kernel that this processor
// runs; refusals.
#include "core/tensor/ordered_add.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/cast.h"
#include "core/tensor/number_kernel_internal.h"
#include "tests/support/random_source.h"

namespace shardwright {
namespace {

using internal::NumberKernel;
using internal::SumFunction;

std::vector<const NumberKernel*> kernels_of_this_processor() {
  std::vector<const NumberKernel*> kernels = {&internal::kNumberBaseline};
#if defined(SHW_NUMBERS_WIDE)
  if (__builtin_cpu_supports("avx2")) kernels.push_back(&internal::kNumberAvx2);
#endif
  return kernels;
}

template <typename T>
T element(std::span<const std::byte> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(T value, size_t index, std::span<std::byte> bytes) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

template <typename To, typename From>
To cast_one(DType from, From value, DType to) {
  To result{};
  EXPECT_TRUE(cast_elements(from, std::as_bytes(std::span(&value, 1)), to,
                            std::as_writable_bytes(std::span(&result, 1)))
                  .ok());
  return result;
}

// Written out so that no compiler joins two operations.
template <typename T>
T add_numbers(T a, T b) {
  volatile T sum = static_cast<T>(a + b);
  return sum;
}

template <typename T>
T scaled(T value, double scale) {
  if constexpr (std::is_floating_point_v<T>) {
    volatile T product = scale == 1 ? value : value * static_cast<T>(scale);
    return std::isnan(product) ? std::numeric_limits<T>::quiet_NaN() : T{product};
  } else {
    return value;
  }
}

struct Parts {
  std::span<const std::byte> bytes;
  size_t count = 1;     // of parts
  size_t elements = 0;  // of one part
};

// The oracle for numbers that add as they are stored.
template <typename T>
void sum_plainly(const Parts& parts, double scale, std::span<std::byte> target) {
  for (size_t i = 0; i < parts.elements; ++i) {
    auto sum = element<T>(parts.bytes, i);
    for (size_t p = 1; p < parts.count; ++p)
      sum = add_numbers<T>(sum, element<T>(parts.bytes, p * parts.elements + i));
    set_element(scaled(sum, scale), i, target);
  }
}

// The oracle for floats of 16 bits.
void sum_short_floats(DType dtype, const Parts& parts, double scale, std::span<std::byte> target) {
  for (size_t i = 0; i < parts.elements; ++i) {
    float sum = 0;
    for (size_t p = 0; p < parts.count; ++p) {
      const auto code = element<uint16_t>(parts.bytes, p * parts.elements + i);
      const auto term = cast_one<float>(dtype, code, DType::kFloat32);
      sum = p == 0 ? term : add_numbers(sum, term);
    }
    set_element(cast_one<uint16_t>(DType::kFloat64, static_cast<double>(scaled(sum, scale)), dtype),
                i, target);
  }
}

void sum_by_oracle(DType dtype, const Parts& parts, double scale, std::span<std::byte> target) {
  switch (dtype) {
    case DType::kFloat32:
      return sum_plainly<float>(parts, scale, target);
    case DType::kFloat64:
      return sum_plainly<double>(parts, scale, target);
    case DType::kFloat16:
    case DType::kBfloat16:
      return sum_short_floats(dtype, parts, scale, target);
    default:
      break;
  }
  switch (dtype_bits(dtype)) {
    case 8:
      return sum_plainly<uint8_t>(parts, scale, target);
    case 16:
      return sum_plainly<uint16_t>(parts, scale, target);
    case 32:
      return sum_plainly<uint32_t>(parts, scale, target);
    default:
      return sum_plainly<uint64_t>(parts, scale, target);
  }
}

SumFunction function_of(const NumberKernel& kernel, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return kernel.sum_float16;
    case DType::kBfloat16:
      return kernel.sum_bfloat16;
    case DType::kFloat32:
      return kernel.sum_float32;
    case DType::kFloat64:
      return kernel.sum_float64;
    default:
      break;
  }
  switch (dtype_bits(dtype)) {
    case 8:
      return kernel.sum_integer8;
    case 16:
      return kernel.sum_integer16;
    case 32:
      return kernel.sum_integer32;
    default:
      return kernel.sum_integer64;
  }
}

const std::vector<DType>& added_dtypes() {
  static const std::vector<DType> kAdded = {DType::kFloat16, DType::kBfloat16, DType::kFloat32,
                                            DType::kFloat64, DType::kInt8,     DType::kInt16,
                                            DType::kInt32,   DType::kInt64,    DType::kUint8,
                                            DType::kUint16,  DType::kUint32,   DType::kUint64};
  return kAdded;
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

// Numbers of one kind: any bits, about one, or those at the ends of the range.
enum class Kind { kAnyBits, kNearOne, kDenormal, kSpecial };

uint64_t float64_bits(test::RandomSource& random, Kind kind) {
  const uint64_t sign = random.chance(50) ? uint64_t{1} << 63 : 0;
  switch (kind) {
    case Kind::kAnyBits:
      return random.next();
    case Kind::kNearOne:
      return sign | std::bit_cast<uint64_t>(1.0 + static_cast<double>(random.next() >> 40) * 1e-7);
    case Kind::kDenormal:
      return sign | (random.next() & 0xFFFFF);
    case Kind::kSpecial:
      break;
  }
  return sign | random.pick(std::vector<uint64_t>{0, 0x7FF0000000000000, 0x7FF0000000000001,
                                                  0x7FF8000000000123, 0x7FEFFFFFFFFFFFFF});
}

uint32_t float32_bits(test::RandomSource& random, Kind kind) {
  const uint32_t sign = random.chance(50) ? 0x80000000 : 0;
  switch (kind) {
    case Kind::kAnyBits:
      return static_cast<uint32_t>(random.next());
    case Kind::kNearOne:
      return sign | (0x3F800000 + static_cast<uint32_t>(random.next() & 0xFFFFFF));
    case Kind::kDenormal:
      return sign | static_cast<uint32_t>(random.next() & 0x7FFFFF);
    case Kind::kSpecial:
      break;
  }
  return sign |
         random.pick(std::vector<uint32_t>{0, 0x7F800000, 0x7F800001, 0x7FC00123, 0x7F7FFFFF});
}

std::vector<std::byte> random_numbers(test::RandomSource& random, DType dtype, size_t count) {
  const auto bytes = static_cast<size_t>(dtype_bits(dtype)) / 8;
  std::vector<std::byte> numbers = random.bytes(count * bytes);
  if (!is_float(dtype)) return numbers;
  const auto kind = static_cast<Kind>(random.between(0, 3));
  for (size_t i = 0; i < count; ++i) {
    if (dtype == DType::kFloat64) {
      set_element(float64_bits(random, kind), i, numbers);
    } else if (dtype == DType::kFloat32) {
      set_element(float32_bits(random, kind), i, numbers);
    } else if (kind != Kind::kAnyBits) {
      const uint32_t wide = float32_bits(random, kind);
      // Denormal ones of 16 bits have other exponents: any bits below a quarter of the codes.
      const auto code =
          kind == Kind::kDenormal
              ? static_cast<uint16_t>(wide & 0x83FF)
              : cast_one<uint16_t>(DType::kFloat32, std::bit_cast<float>(wide), dtype);
      set_element(code, i, numbers);
    }
  }
  return numbers;
}

// Memory that begins at an odd address.
class OddMemory {
 public:
  explicit OddMemory(std::span<const std::byte> content) : memory_(content.size() + 1) {
    if (!content.empty()) std::memcpy(memory_.data() + 1, content.data(), content.size());
  }
  std::span<std::byte> bytes() { return std::span(memory_).subspan(1); }

 private:
  std::vector<std::byte> memory_;
};

std::vector<std::byte> to_vector(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(OrderedAdd, EveryKernelGivesTheBitsOfTheOracle) {
  test::RandomSource random;
  for (const DType dtype : added_dtypes()) {
    const auto bytes = static_cast<size_t>(dtype_bits(dtype)) / 8;
    for (size_t parts = 1; parts <= 16; ++parts) {
      const auto elements = static_cast<size_t>(
          random.pick(std::vector<int64_t>{1, 2, 3, 7, 8, 9, 31, 33, 1023, 1024, 1025, 2500}));
      const double scale =
          is_float(dtype) ? random.pick(std::vector<double>{1, 0.5, 1.0 / 3, 1e-8, 3}) : 1;
      OddMemory source(random_numbers(random, dtype, parts * elements));
      std::vector<std::byte> expected(elements * bytes);
      sum_by_oracle(dtype, {source.bytes(), parts, elements}, scale, expected);
      for (const NumberKernel* kernel : kernels_of_this_processor()) {
        OddMemory target{std::vector<std::byte>(elements * bytes)};
        const auto* const first = reinterpret_cast<const unsigned char*>(source.bytes().data());
        function_of(*kernel, dtype)({first, first + elements * bytes, parts - 1, elements, scale,
                                     reinterpret_cast<unsigned char*>(target.bytes().data())});
        ASSERT_EQ(to_vector(target.bytes()), expected)
            << kernel->name << " " << dtype_name(dtype) << " " << parts << " x " << elements;
      }
    }
  }
}

TEST(OrderedAdd, PartsMayBeSummedOntoTheFirst) {
  test::RandomSource random;
  for (const DType dtype : added_dtypes()) {
    const auto bytes = static_cast<size_t>(dtype_bits(dtype)) / 8;
    constexpr size_t kElements = 1500;
    std::vector<std::byte> parts = random_numbers(random, dtype, 3 * kElements);
    std::vector<std::byte> expected(kElements * bytes);
    sum_by_oracle(dtype, {parts, 3, kElements}, 1, expected);
    const std::span<std::byte> first = std::span(parts).first(kElements * bytes);
    ASSERT_TRUE(add_in_order(dtype, parts, 3, 1, first).ok());
    ASSERT_EQ(to_vector(first), expected) << dtype_name(dtype);
  }
}

TEST(OrderedAdd, AddToAndScaleRoundToTheDtype) {
  test::RandomSource random;
  for (const DType dtype : added_dtypes()) {
    const auto bytes = static_cast<size_t>(dtype_bits(dtype)) / 8;
    constexpr size_t kElements = 1100;
    std::vector<std::byte> parts = random_numbers(random, dtype, 2 * kElements);
    std::vector<std::byte> expected(kElements * bytes);
    sum_by_oracle(dtype, {parts, 2, kElements}, 1, expected);
    std::vector<std::byte> target(parts.begin(),
                                  parts.begin() + static_cast<ptrdiff_t>(kElements * bytes));
    ASSERT_TRUE(add_to(dtype, std::span(parts).subspan(kElements * bytes), target).ok());
    ASSERT_EQ(target, expected) << dtype_name(dtype);
    if (!is_float(dtype)) continue;
    const std::vector<std::byte> unscaled = target;
    sum_by_oracle(dtype, {unscaled, 1, kElements}, 1.0 / 3, expected);
    ASSERT_TRUE(scale_elements(dtype, 1.0 / 3, target).ok());
    ASSERT_EQ(target, expected) << dtype_name(dtype);
  }
}

// 2^24 + 1 + 1: the order decides what float32 keeps.
TEST(OrderedAdd, AddsInTheOrderOfTheParts) {
  const auto sum = [](std::vector<float> parts) {
    float result = 0;
    EXPECT_TRUE(add_in_order(DType::kFloat32, std::as_bytes(std::span(parts)), parts.size(), 1,
                             std::as_writable_bytes(std::span(&result, 1)))
                    .ok());
    return result;
  };
  EXPECT_EQ(sum({0x1p24F, 1, 1}), 0x1p24F);
  EXPECT_EQ(sum({1, 1, 0x1p24F}), 0x1p24F + 2);
}

// 256 + 1 + 1 in bfloat16 steps would stay 256; in float32 it is 258.
TEST(OrderedAdd, ShortFloatsRoundOnce) {
  std::vector<uint16_t> parts = {0x4380, 0x3F80, 0x3F80};
  uint16_t sum = 0;
  ASSERT_TRUE(add_in_order(DType::kBfloat16, std::as_bytes(std::span(parts)), 3, 1,
                           std::as_writable_bytes(std::span(&sum, 1)))
                  .ok());
  EXPECT_EQ(sum, 0x4381);
}

TEST(OrderedAdd, OnePartIsCopiedAsItIs) {
  const std::vector<uint32_t> parts = {0xFFC00123, 0x7F800001, 0x80000000};
  std::vector<uint32_t> target(3);
  ASSERT_TRUE(add_in_order(DType::kFloat32, std::as_bytes(std::span(parts)), 1, 1,
                           std::as_writable_bytes(std::span(target)))
                  .ok());
  EXPECT_EQ(target, parts);
}

TEST(OrderedAdd, NothingIsASum) {
  EXPECT_TRUE(add_in_order(DType::kFloat32, {}, 4, 0.25, {}).ok());
  EXPECT_TRUE(add_to(DType::kFloat32, {}, {}).ok());
  EXPECT_TRUE(scale_elements(DType::kFloat32, 0.25, {}).ok());
}

TEST(OrderedAdd, RefusesDtypesThatDoNotAddNamingThem) {
  for (const DType dtype : {DType::kBool, DType::kComplex64, DType::kFloat8E4m3fn, DType::kInt4}) {
    EXPECT_FALSE(ordered_add_is_supported(dtype));
    const Status status = add_in_order(dtype, {}, 1, 1, {});
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(status.message().find(dtype_name(dtype)), std::string_view::npos);
  }
  for (const DType dtype : added_dtypes()) EXPECT_TRUE(ordered_add_is_supported(dtype));
}

TEST(OrderedAdd, RefusesWhatDoesNotFit) {
  std::vector<std::byte> memory(24);
  const std::span<std::byte> bytes(memory);
  const auto refused = [](const Status& status) {
    return status.code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(add_in_order(DType::kFloat32, bytes, 0, 1, bytes.first(8))));
  EXPECT_TRUE(refused(add_in_order(DType::kFloat32, bytes, 2, 1, bytes.first(8))));
  EXPECT_TRUE(refused(add_in_order(DType::kFloat32, bytes, 4, 1, bytes.first(6))));
  EXPECT_TRUE(refused(add_in_order(DType::kInt32, bytes, 3, 0.5, bytes.first(8))));
  EXPECT_TRUE(refused(add_to(DType::kFloat32, bytes.first(4), bytes.first(8))));
  EXPECT_TRUE(refused(scale_elements(DType::kInt32, 2, bytes.first(8))));
  EXPECT_TRUE(refused(scale_elements(DType::kFloat64, 2, bytes.first(4))));
}

}  // namespace
}  // namespace shardwright
