// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/config.h"

#include <string>

#include <gtest/gtest.h>

namespace shardwright::cuda_plugin {
namespace {

TEST(CudaConfig, NamesADeviceOrTheFirst) {
  EXPECT_EQ(read_device_config("").value().device, 0);
  EXPECT_EQ(read_device_config("{}").value().device, 0);
  EXPECT_EQ(read_device_config(R"({"device": 3})").value().device, 3);
}

TEST(CudaConfig, RefusesWhatItDoesNotKnow) {
  for (const std::string text :
       {"[]", "no JSON", R"({"device": -1})", R"({"device": 1.5})", R"({"device": "0"})",
        R"({"device": 1025})", R"({"device": 18446744073709551615})", R"({"gpu": 0})"}) {
    const Status refused = read_device_config(text).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(refused.detail("parameter"), "config") << text;
    EXPECT_NE(refused.to_string().find(R"({"device": 0})"), std::string::npos)
        << refused.to_string();
  }
}

}  // namespace
}  // namespace shardwright::cuda_plugin
