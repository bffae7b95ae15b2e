// SPDX-License-Identifier: Apache-2.0
//
// How many layers each pipeline stage of the job that saved had, as its buckets prove it. Pure.
#pragma once

#include <vector>

#include "core/reshard/assign_buckets.h"
#include "core/reshard/target_job.h"

namespace shardwright::reshard {

// By stages. Empty where it is not known: layers of a stage that do not follow each other (virtual
// stages), or those of a stage that lie in no bucket. shape: of the job that saved.
std::vector<int64_t> stage_layers_of(const AssignInput& known,
                                     const std::vector<Assigned>& assigned, const JobShape& shape);

}  // namespace shardwright::reshard
