// SPDX-License-Identifier: Apache-2.0
//
// Makes shw_job handles. Any thread.
#pragma once

#include <memory>

#include "capi/boundary/handles.h"
#include "core/base/result.h"
#include "core/collective/collective.h"
#include "core/exec/job.h"

namespace shardwright::capi {

// Submits the work to the context's queue. `keepalive` holds what the work uses; it is dropped on a
// thread of the host. FAILED_PRECONDITION after a shutdown, and when a job of this context that has
// not ended is that of another rank of the same group: the two would wait for each other.
Result<shw_job*> submit_job(std::shared_ptr<Context> context, exec::JobQueue::Work work,
                            std::shared_ptr<void> keepalive, collective::Collective& collective);

}  // namespace shardwright::capi
