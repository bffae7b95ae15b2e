// SPDX-License-Identifier: Apache-2.0
#include "plugins/torch/torch_version.h"

#include <gtest/gtest.h>

namespace shardwright::torch_plugin {
namespace {

constexpr uint64_t packed(uint64_t major, uint64_t minor, uint64_t patch) {
  return major << 56U | minor << 48U | patch << 40U;
}

TEST(TorchVersion, OnlyMajorAndMinorCount) {
  EXPECT_TRUE(check_torch_version(packed(2, 15, 0), packed(2, 15, 1) + 7).ok());
  EXPECT_FALSE(check_torch_version(packed(2, 15, 0), packed(2, 16, 0)).ok());
  EXPECT_FALSE(check_torch_version(packed(2, 15, 0), packed(3, 15, 0)).ok());
}

TEST(TorchVersion, ARefusalNamesBoth) {
  const Status status = check_torch_version(packed(2, 15, 0), packed(2, 14, 1));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.to_string().find("2.15.0"), std::string::npos);
  EXPECT_NE(status.to_string().find("2.14.1"), std::string::npos);
}

TEST(TorchVersion, ThisProcessHasTheTorchThatItWasCompiledFor) {
  EXPECT_TRUE(check_running_torch().ok()) << check_running_torch().to_string();
}

}  // namespace
}  // namespace shardwright::torch_plugin
