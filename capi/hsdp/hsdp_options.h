// SPDX-License-Identifier: Apache-2.0
//
// Options of a context as the core takes them: in C, 0 stands for the library's default and -1 for
// none. Pure.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "core/hsdp/options.h"
#include "shardwright/hsdp.h"

namespace shardwright::capi {

// The struct has our size. Mesh and device are read by whoever needs them.
Result<hsdp::HsdpOptions> read_hsdp_options(const shw_hsdp_options& options);

int32_t prefetch_depth(int32_t given);
int32_t max_inflight(int32_t given);

}  // namespace shardwright::capi
