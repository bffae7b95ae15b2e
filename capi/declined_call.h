// SPDX-License-Identifier: Apache-2.0
//
// Calls that the ranks of a collective make together. A rank that cannot take part, whatever the
// reason, tells the others in place of its part, so that they fail at once instead of waiting for
// it: arguments that are wrong or missing, memory that runs out while they are read, a queue that
// takes no job. Any thread.
#pragma once

#include <memory>

#include "capi/boundary/collective_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/context/context.h"
#include "core/base/result.h"
#include "core/base/without_exceptions.h"
#include "core/collective/collective.h"

namespace shardwright::capi {

// What is needed to reach the others, as it was given: nothing of it was looked at.
struct Together {
  shw_context* context;
  shw_collective* collective;
  bool asynchronous;  // the call is a job of the context
  Status (*tell)(collective::Collective&, const Status& failure, int64_t deadline_ns);
};

// Tells the other ranks of the failure; without effect where there are none. An asynchronous call
// tells them in its turn among the jobs, in the background; where that is impossible, because there
// is no queue, or it takes no jobs, or the job would wait for one that waits for it, the collective
// is aborted. So it is in a callback, which must not wait, unless a call or job has the collective:
// then nobody waits for this one. In a forked child nobody can be told.
void decline(const Together& call, const Status& failure) noexcept;
void decline_if_in_callback(shw_collective* collective) noexcept;

// Runs a whole exported function. body(&met) sets met when from there on the call itself tells the
// others what becomes of it; a failure before that is told to them here.
template <typename Body>
shw_status guarded_together(shw_error** err, const Together& call, const Body& body) noexcept {
  decline_if_in_callback(call.collective);
  if (err != nullptr && *err != nullptr) {
    decline(call, without_exceptions("the arguments of a call", occupied_error_slot));
  }
  return guarded(err, [&]() -> Status {
    bool met = false;
    Status status = without_exceptions("the arguments of a call", [&] { return body(&met); });
    if (!status.ok() && !met) decline(call, status);
    return status;
  });
}

// Context and collective of a call, which everything else is read with.
template <typename Call, typename Arguments>
Result<Call> read_team(const Arguments& given) {
  Call call;
  SHW_ASSIGN_OR_RETURN(call.runtime.context, need(given.context, "context"));
  SHW_ASSIGN_OR_RETURN(call.collective, read_collective(given.collective));
  if (given.collective != nullptr) {
    SHW_ASSIGN_OR_RETURN(auto member, need(given.collective, "collective"));
    call.use = CollectiveUse(std::move(member));
  }
  return call;
}

}  // namespace shardwright::capi
