// SPDX-License-Identifier: Apache-2.0
//
// Shapes and boxes of the parameters of a sealed unit, which the C surface lends to hosts until the
// unit is released. Thread-compatible.
#pragma once

#include <cstdint>

#include "capi/hsdp/hsdp_handles.h"
#include "core/base/result.h"

namespace shardwright::capi {

// Makes them where they are not there yet, and checks that [first, first + count) are some of them.
// FAILED_PRECONDITION before the unit is sealed, OUT_OF_RANGE.
Status check_parameters(HsdpUnitImpl& unit, uint64_t first, uint64_t count);

}  // namespace shardwright::capi
