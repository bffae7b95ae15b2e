// SPDX-License-Identifier: Apache-2.0
//
// Gathered buffers: the states of Megatron's distributed optimizer as dp_zero_gather_scatter stores
// them. One object for each model-parallel place is an archive of torch.save with a tensor for each
// buffer and state: what is in its buckets, one after the other without the pads at their ends.
#pragma once

#include <memory>

#include "core/exec/checkpoint.h"

namespace shardwright::reshard {

// A view of the source that has these tensors, too, under the names of a bucket for each buffer
// (buckets.h); the source itself where no optimizer is stored like that. The checksums of the
// archives are compared. DATA_LOSS for damaged archives; FAILED_PRECONDITION naming the object that
// holds something else.
Result<std::shared_ptr<const exec::Checkpoint>> with_gathered_buffers(
    exec::Runtime& runtime, std::shared_ptr<const exec::Checkpoint> source,
    const exec::CallContext& call);

// Whether a name is of an object that holds gathered buffers.
bool holds_gathered_buffers(std::string_view object);

}  // namespace shardwright::reshard
