// SPDX-License-Identifier: Apache-2.0
//
// shw_entry_batch to and from the arrays of the core. Everything is borrowed. Pure, any thread.
#pragma once

#include "core/base/result.h"
#include "core/plan/describe/describe_entries.h"
#include "core/plan/entry_arrays.h"
#include "shardwright/planning.h"

namespace shardwright::capi {

// Offsets ascend and nothing that is needed is NULL; the values themselves are the core's to check.
// batch has our size. Failures name the array.
Result<plan::EntryArrays> read_entry_batch(const shw_entry_batch& batch);
// The same arrays as a batch; those that say nothing are NULL.
shw_entry_batch batch_of(const plan::EntryArrays& arrays);

}  // namespace shardwright::capi
