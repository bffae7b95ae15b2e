// SPDX-License-Identifier: Apache-2.0
#include "plugins/torch/config.h"

#include <gtest/gtest.h>

namespace shardwright::torch_plugin {
namespace {

TEST(TorchConfig, HasDefaultsForAllButTheGroup) {
  const auto request = read_config(R"({"group": "0"})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->name, "0");
  EXPECT_EQ(request->use, "calls");
  EXPECT_EQ(request->gloo, "");
  EXPECT_TRUE(request->keep);
  EXPECT_EQ(request->limit_ms, 1'800'000);
  EXPECT_EQ(request->poll_ms, 500);
}

TEST(TorchConfig, TakesEveryKey) {
  const auto request = read_config(
      R"({"group": "a", "use": "b", "gloo": "c", "keep": false, "seconds": 1.5, "poll_seconds": 2})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->name + request->use + request->gloo, "abc");
  EXPECT_FALSE(request->keep);
  EXPECT_EQ(request->limit_ms, 1500);
  EXPECT_EQ(request->poll_ms, 2000);
}

TEST(TorchConfig, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"", "0", "[]", "{", "{}", R"({"group": ""})", R"({"group": 0})", R"({"groups": "0"})",
        R"({"group": "0", "seconds": 0})", R"({"group": "0", "seconds": "1"})",
        R"({"group": "0", "seconds": 1e300})", R"({"group": "0", "poll_seconds": -1})",
        R"({"group": "0", "keep": 1})", R"({"group": "0", "use": null})"}) {
    const Status status = read_config(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.detail("parameter"), "config") << text;
  }
}

}  // namespace
}  // namespace shardwright::torch_plugin
