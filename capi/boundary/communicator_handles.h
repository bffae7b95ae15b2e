// SPDX-License-Identifier: Apache-2.0
//
// What the handles of communicators, works and devices hold.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/boundary/handle.h"
#include "core/collective/communicator.h"
#include "core/device/lane_device.h"
#include "shardwright/communicator.h"
#include "shardwright/device.h"

namespace shardwright::capi {

struct CommunicatorImpl {
  static constexpr uint64_t kMagic = 0x7368772d636f6d6d;
  static constexpr const char* kNoun = "communicator";
  collective::CommunicatorPtr communicator;
  std::string name;
};

struct CommunicatorGroupImpl {
  static constexpr uint64_t kMagic = 0x7368772d636d6772;
  static constexpr const char* kNoun = "communicator group";
  std::mutex mutex;
  std::vector<collective::CommunicatorPtr> members;  // null once taken
};

struct WorkImpl {
  static constexpr uint64_t kMagic = 0x7368772d776f726b;
  static constexpr const char* kNoun = "work";
  std::shared_ptr<const void> owner;  // declared first: the work goes before it
  collective::WorkPtr work;
};

struct DeviceImpl {
  static constexpr uint64_t kMagic = 0x7368772d64657669;
  static constexpr const char* kNoun = "device";
  std::shared_ptr<device::LaneDevice> device;
  std::string name;
};

}  // namespace shardwright::capi

struct shw_communicator : shardwright::capi::Handle<shardwright::capi::CommunicatorImpl> {};
struct shw_communicator_group
    : shardwright::capi::Handle<shardwright::capi::CommunicatorGroupImpl> {};
struct shw_work : shardwright::capi::Handle<shardwright::capi::WorkImpl> {};
struct shw_device : shardwright::capi::Handle<shardwright::capi::DeviceImpl> {};
