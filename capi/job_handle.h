// SPDX-License-Identifier: Apache-2.0
//
// Makes shw_job handles. Any thread.
#pragma once

#include <memory>

#include "capi/boundary/handles.h"
#include "core/base/result.h"
#include "core/collective/collective.h"
#include "core/exec/job.h"
#include "shardwright/job.h"

namespace shardwright::capi {

// Whom the host wants to be told how far a call is; empty when nobody.
struct ProgressCallback {
  shw_progress_fn call = nullptr;
  void* user = nullptr;
  int64_t begin_ns = 0;  // of real_clock(): what the host sees elapse is since then

  // Has it called by progress, which may be null, until tell_the_end.
  void listen(exec::Progress* progress) const;
};

// Does the work of a call, told to the callback.
template <typename Work>
Result<exec::Report> with_progress(const ProgressCallback& callback, exec::CallContext context,
                                   const Work& work) {
  exec::Progress own;
  if (context.progress == nullptr && callback.call != nullptr) context.progress = &own;
  callback.listen(context.progress);
  Result<exec::Report> report = work(static_cast<const exec::CallContext&>(context));
  if (report.ok() && callback.call != nullptr) context.progress->tell_the_end();
  return report;
}

// Submits the work to the context's queue. `keepalive` holds what the work uses; it is dropped on a
// thread of the host. FAILED_PRECONDITION after a shutdown, and when a job of this context that has
// not ended is that of another rank of the same group: the two would wait for each other.
Result<shw_job*> submit_job(std::shared_ptr<Context> context, exec::JobQueue::Work work,
                            std::shared_ptr<void> keepalive, collective::Collective& collective);

}  // namespace shardwright::capi
