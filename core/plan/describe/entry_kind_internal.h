// SPDX-License-Identifier: Apache-2.0
//
// Settles who holds an entry: the first kind pattern that matches its name, else its own kind, else
// what it looks like. Pure functions.
#pragma once

#include "core/plan/plan_options.h"
#include "core/state/state.h"

namespace shardwright::plan::internal {

// kAuto without a pattern: replicated when one piece covers the whole tensor, else sharded.
EntryKind settle_kind(const TensorRef& entry, const SaveRules& rules);
// Objects are replicated or rank_local; a pattern that says sharded speaks of tensors and passes
// objects by.
EntryKind settle_kind(const ObjectEntry& entry, const SaveRules& rules);

}  // namespace shardwright::plan::internal
