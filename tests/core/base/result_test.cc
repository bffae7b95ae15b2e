// SPDX-License-Identifier: Apache-2.0
//
// Result and the macros that propagate failures.
#include "core/base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(Result, HoldsAValue) {
  Result<std::string> result(std::string("bytes"));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(*result, "bytes");
  EXPECT_EQ(result->size(), 5U);
  const std::string moved = std::move(result).value();
  EXPECT_EQ(moved, "bytes");
}

TEST(Result, HoldsAFailure) {
  const Result<int> result(not_found("no such name"));
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
}

TEST(Result, ValueOfAFailureThrowsInEveryBuild) {
  const Result<int> result(not_found("no such name"));
  EXPECT_THROW(static_cast<void>(result.value()), std::logic_error);
}

TEST(Result, BuiltFromASuccessStatusIsAnInternalError) {
  const Result<int> result{Status()};
  EXPECT_EQ(result.status().code(), StatusCode::kInternal);
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> owned = std::move(result).value();
  EXPECT_EQ(*owned, 7);
}

Result<int> half(int value) {
  if (value % 2 != 0) return invalid_argument("odd");
  return value / 2;
}

Result<int> quarter(int value) {
  SHW_ASSIGN_OR_RETURN(const int first, half(value));
  int second = 0;
  SHW_ASSIGN_OR_RETURN(second, half(first));
  return second;
}

Status check_even(int value) {
  SHW_RETURN_IF_ERROR(half(value).status());
  return {};
}

TEST(ResultMacros, AssignOrReturnTheFailure) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(quarter(7).status().message(), "odd");
}

TEST(ResultMacros, ReturnIfError) {
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(3).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright
