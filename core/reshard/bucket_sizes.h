// SPDX-License-Identifier: Apache-2.0
//
// The objects in which Megatron says the sizes of the buckets of a group: for each of its buffers a
// dict {(param dtype, grad dtype): [sizes]}, as a pickle with dtypes of torch, which its loads
// compare with their own. Pure.
#pragma once

#include <span>
#include <vector>

#include "core/exec/checkpoint_view.h"
#include "core/reshard/buckets.h"

namespace shardwright::reshard {

// Two for each group. Of the buckets, in their order, the names, `elements` and `padded` count.
std::vector<exec::ViewObject> bucket_size_objects(std::span<const Bucket> buckets);

}  // namespace shardwright::reshard
