// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of devices that work is put on. A device passes it by instantiating
// LaneDeviceConformance with a maker. Memory of a device that is not the host's is reached by
// copies only; tasks are code of the host that runs in the order of their lane.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "core/device/lane_device.h"

namespace shardwright::device {

struct LaneDeviceMaker {
  std::string name;
  // Tasks run beside the thread that submits them.
  bool has_own_threads = true;
  std::function<std::shared_ptr<LaneDevice>()> make;
  // What this machine lacks for it; none = "".
  std::function<std::string()> missing = [] { return std::string(); };
};
inline void PrintTo(const LaneDeviceMaker& maker, std::ostream* out) {
  *out << maker.name;
}

class LaneDeviceConformance : public testing::TestWithParam<LaneDeviceMaker> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    device_ = GetParam().make();
  }
  LanePtr lane() {
    Result<LanePtr> made = device_->make_lane(0);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(*made);
  }
  EventPtr event() {
    Result<EventPtr> made = device_->make_event();
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return std::move(*made);
  }

  std::shared_ptr<LaneDevice> device_;  // co-owned with whoever made it
};

}  // namespace shardwright::device
