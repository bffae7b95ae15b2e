// SPDX-License-Identifier: Apache-2.0
//
// Content digests by which replicas are compared (verify_replicas): XXH3-128 of the row-major bytes
// of the whole tensor, whatever its strides and pieces, or of the bytes of an object.
#pragma once

#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/plan/describe/replica_digests.h"
#include "core/plan/save_plan.h"

namespace shardwright::exec::internal {

// Reads all tensors that the rules name, on the pool. A replicated tensor in several pieces is put
// together in memory of its own size.
Result<plan::ReplicaDigests> content_digests(Runtime& runtime, const State& state,
                                             const plan::SaveRules& rules,
                                             const CallControl& control);

}  // namespace shardwright::exec::internal
