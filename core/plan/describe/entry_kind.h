// SPDX-License-Identifier: Apache-2.0
//
// Settles who holds an entry: the first kind pattern that matches its name, else its own kind, else
// what it looks like. Pure functions.
#pragma once

#include <span>
#include <string_view>

#include "core/plan/plan_options.h"

namespace shardwright::plan::internal {

// kAuto without a pattern: replicated when the tensor is whole here, else sharded.
EntryKind tensor_kind(std::span<const KindPattern> patterns, std::string_view name, EntryKind own,
                      bool whole);
// Objects are replicated or rank_local; a pattern that says sharded speaks of tensors and passes
// objects by.
EntryKind object_kind(std::span<const KindPattern> patterns, std::string_view name, EntryKind own);

}  // namespace shardwright::plan::internal
