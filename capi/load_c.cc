// SPDX-License-Identifier: Apache-2.0
//
// load.h: one call, job and planner over the load pipeline of the core.
#include "shardwright/load.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/collective_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "capi/declined_call.h"
#include "capi/job_handle.h"
#include "capi/plan_handle.h"
#include "core/base/limits.h"
#include "core/base/without_exceptions.h"
#include "core/exec/load.h"

namespace shardwright::capi {
namespace {

// Everything that a load call was given, converted.
struct LoadCall {
  CallRuntime runtime;
  std::shared_ptr<State> state;
  format::Location location;
  std::shared_ptr<collective::Collective> collective;
  CollectiveUse use;
  exec::LoadOptions options;
  std::shared_ptr<CancellationImpl> cancellation;  // co-owned with the host's handle; may be null
  ProgressCallback progress;
  int32_t format = SHW_FORMAT_AUTO;
  std::string shown_path;  // as the host wrote it, for the report
};

struct LoadArguments {
  shw_context* context;
  shw_state* state;
  shw_storage* storage;
  const char* path;
  shw_collective* collective;
  const shw_load_options* options;
};

// All but context and collective, which read_call has.
Status read_rest(const LoadArguments& given, bool asynchronous, LoadCall* call) {
  SHW_ASSIGN_OR_RETURN(const auto state, need(given.state, "state"));
  call->state = state->state;
  shw_load_options options;
  SHW_RETURN_IF_ERROR(read_options(given.options, "options", &options));
  SHW_ASSIGN_OR_RETURN(call->options, read_load_options(options));
  if (asynchronous) SHW_RETURN_IF_ERROR(no_cancellation(options.cancellation));
  SHW_ASSIGN_OR_RETURN(call->cancellation, read_cancellation(options.cancellation));
  call->progress = {options.progress, options.progress_user, real_clock().monotonic_ns()};
  call->format = options.format;
  call->shown_path = given.path == nullptr ? "" : given.path;
  SHW_ASSIGN_OR_RETURN(call->location, read_location(given.storage, given.path, "path"));
  SHW_ASSIGN_OR_RETURN(call->runtime.own,
                       call->runtime.context->call_runtime(options.threads, options.memory_budget));
  return {};
}

Result<LoadCall> read_call(const LoadArguments& given, bool asynchronous) {
  SHW_ASSIGN_OR_RETURN(LoadCall call, read_team<LoadCall>(given));
  SHW_RETURN_IF_ERROR(read_rest(given, asynchronous, &call));
  return call;
}

Result<exec::Report> run(exec::Runtime& runtime, const LoadCall& call,
                         const exec::CallContext& context) noexcept {
  auto report =
      exec::load(runtime, call.location, *call.state, *call.collective, call.options, context,
                 [&call](std::string_view found) { return check_format(call.format, found); });
  if (!report.ok()) return report;
  // Other ranks have heard that this one succeeded, with or without memory for the path.
  static_cast<void>(without_exceptions("a report", [&] {
    report->path = call.shown_path;
    return Status();
  }));
  return report;
}

Result<std::shared_ptr<LoadPlannerImpl>> make_planner(const shw_checkpoint* checkpoint,
                                                      shw_state* state, int32_t rank,
                                                      const shw_load_options* given) {
  auto impl = std::make_shared<LoadPlannerImpl>();
  SHW_ASSIGN_OR_RETURN(impl->checkpoint, need(checkpoint, "checkpoint"));
  SHW_ASSIGN_OR_RETURN(const auto target, need(state, "state"));
  if (rank < 0 || rank >= kMaxWorldSize) {
    return bad_argument("rank", fmt::format("{} is not between 0 and {}", rank, kMaxWorldSize - 1));
  }
  shw_load_options options;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &options));
  SHW_ASSIGN_OR_RETURN(impl->options, read_load_options(options));
  SHW_ASSIGN_OR_RETURN(impl->cancellation, read_cancellation(options.cancellation));
  SHW_RETURN_IF_ERROR(check_format(options.format, impl->checkpoint->format));
  impl->runtime = impl->checkpoint->runtime;
  if (options.threads != 0 || options.memory_budget != 0) {
    SHW_ASSIGN_OR_RETURN(impl->runtime.own, impl->runtime.context->call_runtime(
                                                options.threads, options.memory_budget));
  }
  impl->state = target->state;
  impl->rank = rank;
  return impl;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;

extern "C" {

void shw_load_options_init(shw_load_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_load(shw_context* context, shw_state* state, shw_storage* storage, const char* path,
                    shw_collective* collective, const shw_load_options* options, shw_report** out,
                    shw_error** err) noexcept {
  const capi::Together together{context, collective, /*asynchronous=*/false, exec::decline_load};
  return capi::guarded_together(err, together, [&](bool* met) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto call,
                         capi::read_call({context, state, storage, path, collective, options},
                                         /*asynchronous=*/false));
    capi::ReportHandle made;
    const auto control = capi::call_context(call.options.deadline_ns, call.cancellation.get());
    *met = true;
    const auto load = [&](const exec::CallContext& within) {
      return capi::run(call.runtime.get(), call, within);
    };
    SHW_ASSIGN_OR_RETURN(auto report, capi::with_progress(call.progress, control, load));
    *out = made.fill(std::move(report), call.shown_path);
    return {};
  });
}

shw_status shw_load_async(shw_context* context, shw_state* state, shw_storage* storage,
                          const char* path, shw_collective* collective,
                          const shw_load_options* options, shw_job** out,
                          shw_error** err) noexcept {
  const capi::Together together{context, collective, /*asynchronous=*/true, exec::decline_load};
  return capi::guarded_together(err, together, [&](bool* met) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto call,
                         capi::read_call({context, state, storage, path, collective, options},
                                         /*asynchronous=*/true));
    auto shared = call.runtime.context;
    exec::Runtime* runtime = &call.runtime.get();
    call.runtime.context = nullptr;  // the queue runs the job, so the context outlives it
    auto& members = *call.collective;
    auto kept = std::make_shared<capi::LoadCall>(std::move(call));
    exec::JobQueue::Work work = [runtime, given = kept.get()](const exec::CallContext& control) {
      const auto load = [&](const exec::CallContext& within) {
        return capi::run(*runtime, *given, within);
      };
      auto report = capi::with_progress(given->progress, control, load);
      given->use.end();
      given->runtime.own.reset();  // workers and staging memory of this job alone end with it
      return report;
    };
    SHW_ASSIGN_OR_RETURN(
        *out, capi::submit_job(std::move(shared), std::move(work), std::move(kept), members));
    *met = true;
    return {};
  });
}

shw_status shw_load_planner_create(const shw_checkpoint* checkpoint, shw_state* state, int32_t rank,
                                   const shw_load_options* options, shw_load_planner** out,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto impl, capi::make_planner(checkpoint, state, rank, options));
    *out = capi::make_handle<shw_load_planner>(std::move(impl));
    return {};
  });
}

shw_status shw_load_planner_local_plan(shw_load_planner* planner, shw_plan** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto made, exec::plan_load(*impl->checkpoint->checkpoint,
                                                          *impl->state, impl->options, impl->rank));
    SHW_ASSIGN_OR_RETURN(auto bytes, shardwright::plan::encode(made));
    SHW_ASSIGN_OR_RETURN(*out, capi::plan_of(std::move(bytes)));
    return {};
  });
}

shw_status shw_load_execute(shw_load_planner* planner, const shw_plan* plan, shw_report** out,
                            shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_ASSIGN_OR_RETURN(const auto given, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto decoded,
                         shardwright::plan::decode<shardwright::plan::LoadPlan>(given->bytes));
    SHW_ASSIGN_OR_RETURN(
        auto report, exec::execute_load(
                         impl->runtime.get(), *impl->checkpoint->checkpoint, decoded, *impl->state,
                         impl->options,
                         capi::call_context(impl->options.deadline_ns, impl->cancellation.get())));
    *out = capi::report_of(std::move(report));
    return {};
  });
}

void shw_load_planner_release(shw_load_planner* planner) noexcept {
  capi::release_handle(planner);
}

}  // extern "C"
