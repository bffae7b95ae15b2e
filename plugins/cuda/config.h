// SPDX-License-Identifier: Apache-2.0
//
// The config texts of devices and communicators of this plugin: JSON objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/collective/nccl/nccl_communicator.h"

namespace shardwright::cuda_plugin {

struct DeviceConfig {
  int32_t device = 0;
};

//   {"device": 0}  its number among those that the process sees
// No text at all is the first device. INVALID_ARGUMENT for other text, an unknown key and a value
// of another type.
Result<DeviceConfig> read_device_config(std::string_view text);

//   {"id": 256 hexadecimal digits, made by rank 0,
//    "rank": 0, "size": 8,
//    "device": 0,                  as above
//    "library": "libnccl.so.2",    a name where the loader looks, or a path
//    "seconds": 1800}              until all ranks have come
// INVALID_ARGUMENT as above, and without id, rank or size.
Result<collective::NcclRequest> read_communicator_config(std::string_view text);

// A question of the host, of which there is one:
//   {"ask": "nccl_id",             a new id, which rank 0 hands to all ranks
//    "library": "libnccl.so.2"}    as above
// Gives the name of the library. INVALID_ARGUMENT for other text.
Result<std::string> read_question(std::string_view text);

}  // namespace shardwright::cuda_plugin
