// SPDX-License-Identifier: Apache-2.0
//
// What must be true of plans, said element by element: slow, and written without any of the
// planner's geometry. Each check gives the first thing that is wrong, or an empty text.
#pragma once

#include <string>

#include "core/plan/load_plan.h"
#include "core/plan/local_plan.h"
#include "core/plan/save_plan.h"
#include "tests/property/planning_world.h"

namespace shardwright::plan::test {

// Why no plan can be made of this world: an element of some tensor lies in no box, or in two that
// differ. Empty when all is well.
std::string reason_to_refuse(const World& world);

// Every element of every tensor lies in exactly one chunk, which its writer holds as a box; with
// owner = all every holder writes it. Writers are those of the owner rule (exact: some holder).
// Every object is stored once, or once per rank.
std::string check_save(const World& world, OwnerRule owner, const GlobalSavePlan& plan);

// What each rank keeps of its local plan after a merge, compared with the merged plan: each chunk
// is kept by the rank it names, under its number, and each object by the rank it names (owner =
// all: by all that have it); nothing else is kept.
using Numbers = std::vector<uint32_t>;
std::string check_kept(const World& world, OwnerRule owner, const GlobalSavePlan& merged,
                       const std::vector<LocalPlan>& plans, const std::vector<Numbers>& kept);

// What `rank` of `wanted` loads from a checkpoint of `stored`: each wanted element comes from the
// one chunk that holds it, exactly once, elements that are not stored come from nowhere; names that
// are loaded, missing and unexpected are those of the two worlds.
std::string check_load(const World& stored, const Catalog& catalog, const World& wanted,
                       int32_t rank, const LoadPlan& plan);

}  // namespace shardwright::plan::test
