// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype_numbers.h"

#include <limits>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(DTypeNumbers, AreThoseOfTheTable) {
  for (int32_t number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    EXPECT_EQ(*dtype_from_number(number), dtype);
    EXPECT_EQ(find_dtype(number), dtype);
    const DLPackType type = dtype_to_dlpack(dtype);
    EXPECT_EQ(find_dlpack_dtype(type.code + 256U * type.bits + 65536U), dtype);
  }
}

// 256 + 12 is float32 in eight bits.
TEST(DTypeNumbers, RefusesWhatIsNone) {
  for (const int32_t number : {0, -1, kDTypeCount, 256 + 12, std::numeric_limits<int32_t>::min(),
                               std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(find_dtype(number), DType::kInvalid);
    const Status status = dtype_from_number(number).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("no dtype " + std::to_string(number)), std::string::npos);
  }
}

TEST(DTypeNumbers, FindsNothingForOtherTypesOfDLPack) {
  constexpr uint32_t kOneLane = 65536;
  for (const uint32_t type :
       {0U, 2U + 256 * 32, 2 + 256 * 32 + 2 * kOneLane, 2 + 256 * 33 + kOneLane,
        3 + 256 * 8 + kOneLane, 15 + 256 * 8 + kOneLane, 18 + 256 * 8 + kOneLane,
        2 + 256 * 255 + kOneLane, ~0U}) {
    EXPECT_EQ(find_dlpack_dtype(type), DType::kInvalid) << type;
  }
}

}  // namespace
}  // namespace shardwright
