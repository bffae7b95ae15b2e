// SPDX-License-Identifier: Apache-2.0
//
// Makes shw_plan handles, for the plan functions and the planners.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/result.h"
#include "core/plan/wire/wire.h"
#include "shardwright/plan.h"

namespace shardwright::capi {

// Decodes the bytes by their kind; INVALID_ARGUMENT, DATA_LOSS or UNIMPLEMENTED as the decoders
// say.
Result<shw_plan*> plan_of(plan::Bytes bytes);

}  // namespace shardwright::capi
