// SPDX-License-Identifier: Apache-2.0
//
// Makes shw_job handles. Any thread.
#pragma once

#include <memory>

#include "capi/boundary/handles.h"
#include "core/base/result.h"
#include "core/exec/job.h"

namespace shardwright::capi {

// Submits the work to the context's queue. `keepalive` holds what the work uses; it is dropped on a
// thread of the host. FAILED_PRECONDITION after a shutdown.
Result<shw_job*> submit_job(std::shared_ptr<Context> context, exec::JobQueue::Work work,
                            std::shared_ptr<void> keepalive);

}  // namespace shardwright::capi
