// SPDX-License-Identifier: Apache-2.0
#include "capi/declined_call.h"

#include <utility>

#include "core/exec/job.h"

namespace shardwright::capi {

Status decline(const DeclinedCall& call, const Status& failure, bool asynchronous) {
  if (call.collective->size() < 2) return failure;
  if (!asynchronous) {
    (void)call.decline(*call.collective, failure, 0);  // what all are told is our own failure
    return failure;
  }
  exec::JobQueue::Work work = [decline = call.decline, to = call.collective.get(),
                               failure](const exec::CallContext&) -> Result<exec::Report> {
    return decline(*to, failure, 0);
  };
  // The queue keeps the collective until then; nobody waits for this job.
  (void)call.context->jobs().submit(std::move(work), call.collective);
  return failure;
}

}  // namespace shardwright::capi
