// SPDX-License-Identifier: Apache-2.0
//
// job.h: jobs of the context's queue, and cancellations. The error object of a failed job is made
// when it is asked for.
#include "shardwright/job.h"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/error_factory.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/struct_reader.h"
#include "capi/job_handle.h"
#include "core/concurrency/cancellation.h"

namespace shardwright::capi {
namespace {

using exec::JobState;

bool is_terminal(JobState state) {
  return state >= JobState::kSucceeded;
}

const char* stage_name(int32_t stage) {
  switch (static_cast<exec::Stage>(stage)) {
    case exec::Stage::kQueued:
      return "queue";
    case exec::Stage::kPlanning:
      return "plan";
    case exec::Stage::kStaging:
      return "stage";
    case exec::Stage::kWriting:
      return "write";
    case exec::Stage::kCommitting:
      return "commit";
    case exec::Stage::kReading:
      return "read";
    case exec::Stage::kDone:
      return "done";
  }
  return "";
}

shw_progress progress_of(const exec::ProgressSnapshot& snapshot, JobState state) {
  shw_progress made = SHW_PROGRESS_INIT;
  made.state = static_cast<int32_t>(state);
  made.stage = stage_name(snapshot.stage);
  made.bytes_done = snapshot.bytes_done;
  made.bytes_total = snapshot.bytes_total;
  made.items_done = snapshot.items_done;
  made.items_total = snapshot.items_total;
  made.elapsed_ns = snapshot.elapsed_ns;
  return made;
}

}  // namespace

void ProgressCallback::listen(exec::Progress* progress) const {
  if (call == nullptr || progress == nullptr) return;
  const auto listener = [*this](const exec::ProgressSnapshot& snapshot) {
    const bool done = snapshot.stage == static_cast<int32_t>(exec::Stage::kDone);
    const shw_progress told =
        progress_of(snapshot, done ? JobState::kSucceeded : JobState::kRunning);
    const CallbackScope scope;
    call(user, &told);
  };
  progress->tell(listener, real_clock(), begin_ns);
}

JobImpl::~JobImpl() {
  free_error(error);
}

Result<shw_job*> submit_job(std::shared_ptr<Context> context, exec::JobQueue::Work work,
                            std::shared_ptr<void> keepalive, collective::Collective& collective) {
  const exec::JobQueue::GroupRank group_rank{collective.group(), collective.rank()};
  const int32_t other = context->jobs().rank_in_the_way(group_rank);
  if (other >= 0) {
    Status failure = failed_precondition(fmt::format(
        "rank {} cannot have a job in the context in which rank {} of its group has one: the jobs "
        "of a context run one after another; give each rank a context of its own",
        group_rank.rank, other));
    collective.abort(failure);
    return failure;
  }
  auto impl = std::make_shared<JobImpl>();
  auto handle = std::make_unique<shw_job>();
  impl->job = context->jobs().submit(std::move(work), std::move(keepalive), group_rank);
  if (impl->job == nullptr) {
    return failed_precondition("the context was shut down and takes no more jobs");
  }
  impl->context = std::move(context);
  handle->impl = std::move(impl);
  return handle.release();
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;

extern "C" {

void shw_progress_init(shw_progress* progress, uint32_t struct_size) noexcept {
  capi::init_struct(progress, struct_size);
}

shw_status shw_job_wait(shw_job* job, int64_t timeout_ns, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(job, "job"));
    if (!impl->job->wait(timeout_ns)) {
      *answer = SHW_PENDING;
      return {};
    }
    return impl->job->status();
  });
}

shw_status shw_job_wait_staged(shw_job* job, int64_t timeout_ns, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(job, "job"));
    if (!impl->job->wait_staged(timeout_ns)) {
      *answer = SHW_PENDING;
      return {};
    }
    return capi::is_terminal(impl->job->state()) ? impl->job->status() : Status();
  });
}

int32_t shw_job_poll(const shw_job* job) noexcept {
  const auto* impl = capi::peek(job);
  return impl == nullptr ? 0 : static_cast<int32_t>(impl->job->state());
}

shw_status shw_job_progress(const shw_job* job, shw_progress* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(job, "job"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    capi::write_out(capi::progress_of(impl->job->progress(), impl->job->state()), out);
    return {};
  });
}

void shw_job_cancel(shw_job* job) noexcept {
  const auto* impl = capi::peek(job);
  if (impl != nullptr) impl->job->cancel();
}

shw_status shw_job_on_done(shw_job* job, shw_job_done_fn on_done, void* user,
                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(job, "job"));
    if (on_done == nullptr) return capi::bad_argument("on_done", "must not be NULL");
    return impl->job->on_done([on_done, user] {
      const capi::CallbackScope scope;
      on_done(user);
    });
  });
}

const shw_error* shw_job_error(const shw_job* job) noexcept {
  const auto* impl = capi::peek(job);
  if (impl == nullptr || !capi::is_terminal(impl->job->state())) return nullptr;
  const std::lock_guard<std::mutex> lock(impl->mutex);
  if (impl->error == nullptr) {
    const Status status = impl->job->status();
    if (!status.ok()) impl->error = capi::error_from_status(status);
  }
  return impl->error;
}

shw_status shw_job_report(const shw_job* job, shw_report** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(job, "job"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const auto report = impl->job->report();
    if (report == nullptr) {
      return shardwright::failed_precondition("the job has no report: it did not succeed (yet)");
    }
    *out = capi::report_of(*report);
    return {};
  });
}

void shw_job_release(shw_job* job) noexcept {
  capi::release_handle(job);
  if (!capi::in_forked_child()) capi::sweep_contexts();
}

shw_status shw_cancellation_create(shw_cancellation** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    *out = capi::make_handle<shw_cancellation>(std::make_shared<capi::CancellationImpl>());
    return {};
  });
}

void shw_cancellation_cancel(shw_cancellation* cancellation) noexcept {
  auto* impl = capi::peek(cancellation);
  if (impl != nullptr) impl->flag.cancel();
}

void shw_cancellation_release(shw_cancellation* cancellation) noexcept {
  capi::release_handle(cancellation);
}

}  // extern "C"
