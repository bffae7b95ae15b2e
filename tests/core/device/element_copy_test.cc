// SPDX-License-Identifier: Apache-2.0
#include "core/device/element_copy.h"

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright::device {
namespace {

template <typename T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <typename T>
std::byte* bytes_of(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

// The upper half of a float32.
uint16_t bfloat16(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

// One run from source to target.
template <typename Source, typename Target>
ElementCopy run(const std::vector<Source>& source, DType from, std::vector<Target>& target,
                DType to) {
  return {.source = bytes_of(source),
          .target = bytes_of(target),
          .columns = source.size(),
          .source_dtype = from,
          .target_dtype = to};
}

TEST(ElementCopy, RoundsToTheNearestAndTiesToEven) {
  const std::vector<float> source{1.0F, 257.0F, 259.0F, -257.5F, 3.4e38F};
  std::vector<uint16_t> target(source.size());
  ASSERT_TRUE(copy_elements_on_host(run(source, DType::kFloat32, target, DType::kBfloat16)).ok());
  EXPECT_EQ(target, (std::vector<uint16_t>{bfloat16(1), bfloat16(256), bfloat16(260),
                                           bfloat16(-258), uint16_t{0x7F80}}));
}

// 257 is 256 in bfloat16, and 258 is 258.
TEST(ElementCopy, RoundsOnceWhatItMultipliesAndAdds) {
  const std::vector<float> source{514.0F, 1.0F};
  std::vector<uint16_t> target{bfloat16(1), bfloat16(256)};
  ElementCopy copy = run(source, DType::kFloat32, target, DType::kBfloat16);
  copy.scale = 0.5;
  copy.adds = true;
  ASSERT_TRUE(copy_elements_on_host(copy).ok());
  EXPECT_EQ(target, (std::vector<uint16_t>{bfloat16(258), bfloat16(256)}));
}

TEST(ElementCopy, AddsInFloat64WhereOneOfThemIs) {
  const std::vector<float> source{1.0F};
  std::vector<double> target{1e-12};
  ElementCopy copy = run(source, DType::kFloat32, target, DType::kFloat64);
  copy.adds = true;
  ASSERT_TRUE(copy_elements_on_host(copy).ok());
  EXPECT_EQ(target[0], 1.0 + 1e-12);
}

TEST(ElementCopy, MultipliesInPlace) {
  std::vector<float> values{2.0F, -3.0F, 0.25F};
  ElementCopy copy = run(values, DType::kFloat32, values, DType::kFloat32);
  copy.scale = 0.5;
  ASSERT_TRUE(copy_elements_on_host(copy).ok());
  EXPECT_EQ(values, (std::vector<float>{1.0F, -1.5F, 0.125F}));
}

TEST(ElementCopy, LeavesWhatLiesBetweenRunsAsItIs) {
  const std::vector<float> source{1, 2, 3, 4, 5, 6};
  for (const DType to : {DType::kFloat32, DType::kFloat64}) {
    std::vector<double> target(7, std::bit_cast<double>(uint64_t{0x7777777777777777}));
    const std::vector<double> before = target;
    const size_t element = to == DType::kFloat32 ? 4 : 8;
    const ElementCopy copy{.source = bytes_of(source),
                           .target = bytes_of(target),
                           .rows = 2,
                           .columns = 2,
                           .source_pitch = 3,
                           .target_pitch = 4,
                           .source_dtype = DType::kFloat32,
                           .target_dtype = to};
    ASSERT_TRUE(copy_elements_on_host(copy).ok());
    for (size_t row = 0; row < 2; ++row) {
      for (size_t column = 0; column < 2; ++column) {
        const std::byte* const at = bytes_of(target) + (row * 4 + column) * element;
        float narrow = 0;
        double wide = 0;
        std::memcpy(&narrow, at, sizeof narrow);
        if (element == 8) std::memcpy(&wide, at, sizeof wide);
        EXPECT_EQ(element == 8 ? wide : static_cast<double>(narrow), source[row * 3 + column]);
      }
    }
    const size_t end = (4 + 2) * element;
    EXPECT_EQ(
        std::memcmp(bytes_of(target) + 2 * element, bytes_of(before) + 2 * element, 2 * element),
        0);
    EXPECT_EQ(std::memcmp(bytes_of(target) + end, bytes_of(before) + end, 56 - end), 0);
  }
}

TEST(ElementCopy, MovesBytesOfAnyDtypeThatFillsThem) {
  const std::vector<uint16_t> source{0x7F01, 0xFFFF, 3};
  std::vector<uint16_t> target(3);
  ASSERT_TRUE(copy_elements_on_host(run(source, DType::kFloat16, target, DType::kFloat16)).ok());
  EXPECT_EQ(target, source);
  ASSERT_TRUE(copy_elements_on_host(run(source, DType::kUint16, target, DType::kUint16)).ok());
  EXPECT_EQ(copy_elements_on_host(run(source, DType::kUint4, target, DType::kUint4)).code(),
            StatusCode::kUnimplemented);
}

// 257 + 2^-40 is above the middle of 256 and 258, which a float does not tell.
TEST(ElementCopy, RoundsFloat64OnceToSixteenBits) {
  const std::vector<double> source{257.0, 257.0 + 0x1p-40, 257.0 - 0x1p-40};
  std::vector<uint16_t> target(source.size());
  ASSERT_TRUE(copy_elements_on_host(run(source, DType::kFloat64, target, DType::kBfloat16)).ok());
  EXPECT_EQ(target, (std::vector<uint16_t>{bfloat16(256), bfloat16(258), bfloat16(256)}));
  std::vector<double> back(source.size());
  ASSERT_TRUE(copy_elements_on_host(run(target, DType::kBfloat16, back, DType::kFloat64)).ok());
  EXPECT_EQ(back, (std::vector<double>{256, 258, 256}));
}

TEST(ElementCopy, RefusesWhatItDoesNotConvertAddOrMultiply) {
  std::vector<double> memory(4);
  ElementCopy copy = run(memory, DType::kFloat64, memory, DType::kFloat8E5m2);
  const Status refused = check_element_copy(copy);
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("float64"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("float8_e5m2"), std::string::npos) << refused.message();
  copy.source_dtype = copy.target_dtype = DType::kInt32;
  EXPECT_TRUE(check_element_copy(copy).ok());
  copy.adds = true;
  EXPECT_EQ(check_element_copy(copy).code(), StatusCode::kUnimplemented);
}

TEST(ElementCopy, RefusesRunsThatOverlapAndThoseOfNoMemory) {
  std::vector<float> memory(4);
  ElementCopy copy = run(memory, DType::kFloat32, memory, DType::kFloat32);
  copy.rows = 2;
  copy.target_pitch = 3;
  EXPECT_EQ(check_element_copy(copy).code(), StatusCode::kInvalidArgument);
  copy.target_pitch = uint64_t{1} << 62;
  EXPECT_EQ(check_element_copy(copy).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::device
