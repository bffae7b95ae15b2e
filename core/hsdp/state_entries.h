// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint says of sharded parameters: entries of a state with the layout of their shards,
// so that saves plan by arithmetic and replicas are told apart. Nothing is communicated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/result.h"
#include "core/hsdp/hsdp.h"
#include "core/layout/layout.h"
#include "core/state/state.h"

namespace shardwright::hsdp {

// Numbers are those of the C surface.
enum class StateContent : int32_t { kParameters = 0, kGradients = 1 };

// How a parameter of a sealed unit lies over the mesh of its context; replicated over all axes but
// the one that shards. Null where rows of a ragged unit are no rule of a mesh. OUT_OF_RANGE for a
// parameter that is not there.
Result<Layout::Ptr> parameter_layout(const Hsdp& context, Unit& unit, size_t parameter);

// Adds what this rank holds of all sealed units, all or none, under prefix and their first names;
// empty shards, too. The state borrows the memory, and gets an access to that of the device, by
// which it also reaches other tensors there; the caller keeps the context alive with it.
// Gradients: of parameters that have one; FAILED_PRECONDITION naming a unit whose gradients are not
// all in the gradient of the shard. ALREADY_EXISTS for a name that the state has.
Status add_to_state(Hsdp& context, std::string_view prefix, StateContent content, State* state);

}  // namespace shardwright::hsdp
