// SPDX-License-Identifier: Apache-2.0
//
// A described world as the symbolic descriptions that its ranks would make of their states. Pure
// function.
#pragma once

#include <string>

#include "core/plan/symbolic/rank_descriptions.h"
#include "core/plan/world/world.h"

namespace shardwright::plan {

// Whether all tensors are held by layouts.
bool has_layouts_only(const World& world);

// What the ranks of a world whose tensors have layouts describe. agreement: the text that all ranks
// must have alike. Ranks are told apart by their places in the meshes, so that a description is made
// for each distinct one; ranks whose layouts are strided or flat are described one by one.
// RESOURCE_EXHAUSTED and INVALID_ARGUMENT as Layout::pieces.
Result<RankDescriptions> describe_world(const World& world, const std::string& agreement);

}  // namespace shardwright::plan
