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

std::string config_with(const std::string& id, const std::string& rest) {
  return R"({"id": ")" + id + R"(", "rank": 1, "size": 4)" + rest + "}";
}

TEST(CudaConfig, ReadsACommunicator) {
  const std::string id = "00ff" + std::string(252, 'A');
  const auto request =
      read_communicator_config(
          config_with(id, R"(, "device": 2, "library": "/x/libnccl.so.2", "seconds": 1.5)"))
          .value();
  EXPECT_EQ(request.id[0], std::byte{0});
  EXPECT_EQ(request.id[1], std::byte{0xff});
  EXPECT_EQ(request.id[127], std::byte{0xaa});
  EXPECT_EQ(request.rank, 1);
  EXPECT_EQ(request.size, 4);
  EXPECT_EQ(request.device, 2);
  EXPECT_EQ(request.library, "/x/libnccl.so.2");
  EXPECT_EQ(request.timeout_ns, 1'500'000'000);
  EXPECT_EQ(read_communicator_config(config_with(id, "")).value().library, "libnccl.so.2");
}

TEST(CudaConfig, RefusesWhatIsNoCommunicator) {
  const std::string id(256, '0');
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string(R"({"rank": 0, "size": 1})"),
        R"({"id": ")" + id + R"(", "rank": 0})", config_with(std::string(255, '0'), ""),
        config_with(std::string(255, '0') + "g", ""), config_with(id, R"(, "seconds": 0)"),
        config_with(id, R"(, "library": "")"), config_with(id, R"(, "rank": -1)"),
        config_with(id, R"(, "world": 4)")}) {
    EXPECT_EQ(read_communicator_config(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(CudaConfig, KnowsOneQuestion) {
  EXPECT_EQ(read_question(R"({"ask": "nccl_id"})").value(), "libnccl.so.2");
  EXPECT_EQ(read_question(R"({"ask": "nccl_id", "library": "x"})").value(), "x");
  for (const std::string text : {"", "{}", R"({"ask": "weather"})", R"({"nccl_id": 1})"})
    EXPECT_EQ(read_question(text).status().code(), StatusCode::kInvalidArgument) << text;
}

}  // namespace
}  // namespace shardwright::cuda_plugin
