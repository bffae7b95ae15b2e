// SPDX-License-Identifier: Apache-2.0
//
// Load in numbered steps: 1 open (the coordinator; it reads and proves what the checkpoint says of
// itself), 2 what it has opened comes to all ranks, 3 local load plan (proved to fill each wanted
// element once), 4 read, check, cast, scatter, 5 agree on the outcome. Ranks that each bring an
// open checkpoint agree on its generation instead of 1 and 2. Nothing is cast, skipped or left
// unfilled in silence: the report lists it. When a rank fails every rank returns that rank's cause.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/collective/collective.h"
#include "core/exec/checkpoint.h"

namespace shardwright::exec {

// Height 1. execute refuses a plan of another state or generation (FAILED_PRECONDITION).
Result<plan::LoadPlan> plan_load(const Checkpoint& checkpoint, const State& state,
                                 const LoadOptions& options, int32_t rank);
Result<Report> execute_load(Runtime& runtime, const Checkpoint& checkpoint,
                            const plan::LoadPlan& plan, State& state, const LoadOptions& options,
                            const CallContext& call);

// Height 2.
Result<Report> load(Runtime& runtime, const Checkpoint& checkpoint, State& state,
                    collective::Collective& collective, const LoadOptions& options,
                    const CallContext& call);
// accepts: says of the name of the format that was found whether the caller takes it; may be empty.
Result<Report> load(Runtime& runtime, const format::Location& location, State& state,
                    collective::Collective& collective, const LoadOptions& options,
                    const CallContext& call,
                    const std::function<Status(std::string_view format)>& accepts = {});

// What a rank calls that cannot take part in the load of the others: they fail at once with its
// cause instead of waiting for it. Returns the failure that all ranks get.
Status decline_load(collective::Collective& collective, const Status& failure, int64_t deadline_ns);

}  // namespace shardwright::exec
