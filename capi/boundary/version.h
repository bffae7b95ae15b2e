// SPDX-License-Identifier: Apache-2.0
//
// Version texts of the library. Static, any thread.
#pragma once

namespace shardwright::capi {

const char* library_version() noexcept;  // "0.1.0"
const char* build_info() noexcept;       // JSON text

}  // namespace shardwright::capi
