// SPDX-License-Identifier: Apache-2.0
//
// Collectives as arguments and results of C functions. Any thread.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/collective/collective.h"
#include "shardwright/collective.h"

namespace shardwright::capi {

// NULL gives the collective of one rank.
Result<std::shared_ptr<collective::Collective>> read_collective(const shw_collective* collective);

Result<shw_collective*> collective_of(std::shared_ptr<collective::Collective> collective);

}  // namespace shardwright::capi
