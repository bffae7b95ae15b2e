// SPDX-License-Identifier: Apache-2.0
//
// Failures of the core as what functions of a plugin return, errors that the host makes, and those
// of the host as failures of the core.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "shardwright/plugin.h"

namespace shardwright::plugin_tables {

// Errors are made by this host; before anything else.
void set_host(const shw_host_api* host);
// The failure as what a function of a plugin returns.
shw_status give(const Status& status, shw_error** err) noexcept;
// What a function of the host returned; takes its error, which may be null.
Status taken_from_host(shw_status code, shw_error* error);
// A text as the answer of a plugin, in memory that the host takes over. RESOURCE_EXHAUSTED.
Status give_text(std::string_view text, char** out, uint64_t* out_size);

}  // namespace shardwright::plugin_tables
