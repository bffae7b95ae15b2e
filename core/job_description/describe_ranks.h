// SPDX-License-Identifier: Apache-2.0
//
// A described job as the descriptions that its ranks would make of their states. Pure
// function.
#pragma once

#include <string>

#include "core/job_description/job_description.h"
#include "core/plan/rank_plans.h"

namespace shardwright::job_description {

// agreement: the text that all ranks must have alike. Ranks are told apart by their places in the
// meshes, so that a description is made for each distinct one; ranks that hold boxes and those
// whose layouts are strided or flat are described one by one.
// RESOURCE_EXHAUSTED and INVALID_ARGUMENT as Layout::pieces.
Result<plan::RankPlans> describe_ranks(const JobDescription& job, const std::string& agreement);

}  // namespace shardwright::job_description
