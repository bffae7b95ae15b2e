// SPDX-License-Identifier: Apache-2.0
//
// Version texts of the library. Static, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"

namespace shardwright::capi {

// The one rule for whatever was made for an interface version (hosts, plugins, tables of slots):
// while the major version is 0 the same minor fits and no other; from 1.0 on older minors fit, too.
// UNIMPLEMENTED names `what`, its version and that of the library.
Status check_interface(std::string_view what, uint32_t major, uint32_t minor);

const char* library_version() noexcept;  // "0.1.0"
const char* build_info() noexcept;       // JSON text

}  // namespace shardwright::capi
