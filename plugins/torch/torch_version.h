// SPDX-License-Identifier: Apache-2.0
//
// The version of torch that the plugin was compiled against, and the one that runs. c10d has no
// stable interface, so another minor version is refused instead of being tried.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace shardwright::torch_plugin {

// As libtorch packs its version: major, minor and patch in the three highest bytes.
std::string version_text(uint64_t packed);
// FAILED_PRECONDITION naming both, unless major and minor are equal.
Status check_torch_version(uint64_t compiled, uint64_t running);
// The same for this build and this process.
Status check_running_torch();

}  // namespace shardwright::torch_plugin
