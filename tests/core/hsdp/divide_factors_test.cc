// SPDX-License-Identifier: Apache-2.0
//
// Factors against the vectors of FSDP2.
#include "core/hsdp/divide_factors.h"

#include <gtest/gtest.h>

namespace shardwright::hsdp {
namespace {

TEST(DivideFactors, Float16DividesInTheStepsOfFsdp2) {
  struct Vector {
    double factor;
    DivideFactors expected;
  };
  for (const Vector& each : {Vector{1, {1, 1}}, Vector{2, {2, 1}}, Vector{3, {2, 1.5}},
                             Vector{4, {2, 2}}, Vector{5, {2, 2.5}}, Vector{6, {4, 1.5}},
                             Vector{8, {4, 2}}, Vector{12, {4, 3}}, Vector{16, {4, 4}}}) {
    EXPECT_EQ(divide_factors(each.factor, DType::kFloat16), each.expected) << each.factor;
  }
}

TEST(DivideFactors, AFactorThatIsNoWholeNumberDividesAtTheEnd) {
  EXPECT_EQ(divide_factors(0.5, DType::kFloat16), (DivideFactors{1, 0.5}));
  EXPECT_EQ(divide_factors(2.5, DType::kFloat16), (DivideFactors{1, 2.5}));
}

TEST(DivideFactors, WideFloatsDivideAtTheEnd) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat64}) {
    for (const double factor : {1.0, 3.0, 7.0, 8.0, 0.5})
      EXPECT_EQ(divide_factors(factor, dtype), (DivideFactors{1, factor}));
  }
}

}  // namespace
}  // namespace shardwright::hsdp
