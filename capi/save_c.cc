// SPDX-License-Identifier: Apache-2.0
//
// save.h: one call, job and planner over the save pipeline of the core.
#include "shardwright/save.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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
#include "core/state/mapped_state.h"

namespace shardwright::capi {
namespace {

// Everything that a save call was given, converted.
struct SaveCall {
  CallRuntime runtime;
  std::shared_ptr<const State> state;
  format::Location location;
  std::shared_ptr<collective::Collective> collective;
  CollectiveUse use;
  exec::SaveOptions options;
  std::shared_ptr<CancellationImpl> cancellation;  // co-owned with the host's handle; may be null
  ProgressCallback progress;
  uint64_t staging_limit = 0;  // jobs: bytes that may be copied before writing; 0 = no limit
  std::string shown_path;      // as the host wrote it, for the report
};

struct SaveArguments {
  shw_context* context;
  const shw_state* state;
  shw_storage* storage;
  const char* path;
  shw_collective* collective;
  const shw_save_options* options;
};

// All but context and collective, which read_call has.
Status read_rest(const SaveArguments& given, bool asynchronous, SaveCall* call) {
  SHW_ASSIGN_OR_RETURN(const auto state, need(given.state, "state"));
  SHW_ASSIGN_OR_RETURN(call->state, without_replicas(state->state));
  shw_save_options options;
  SHW_RETURN_IF_ERROR(read_options(given.options, "options", &options));
  SHW_ASSIGN_OR_RETURN(call->options, read_save_options(options));
  if (asynchronous) SHW_RETURN_IF_ERROR(no_cancellation(options.cancellation));
  SHW_ASSIGN_OR_RETURN(call->cancellation, read_cancellation(options.cancellation));
  call->progress = {options.progress, options.progress_user, real_clock().monotonic_ns()};
  SHW_ASSIGN_OR_RETURN(call->location, read_location(given.storage, given.path, "path"));
  call->shown_path = given.path;
  // The memory of a job holds the staged state; blocks in flight come on top, from the context.
  call->staging_limit = options.memory_budget;
  SHW_ASSIGN_OR_RETURN(call->runtime.own,
                       call->runtime.context->call_runtime(
                           options.threads, asynchronous ? 0 : options.memory_budget));
  return {};
}

Result<SaveCall> read_call(const SaveArguments& given, bool asynchronous) {
  SHW_ASSIGN_OR_RETURN(SaveCall call, read_team<SaveCall>(given));
  SHW_RETURN_IF_ERROR(read_rest(given, asynchronous, &call));
  return call;
}

// A report with the path as the host wrote it. The save has succeeded, with or without memory for
// that.
Result<exec::Report> shown(Result<exec::Report> report, const SaveCall& call) noexcept {
  if (!report.ok()) return report;
  static_cast<void>(without_exceptions("a report", [&] {
    report->path = call.shown_path;
    return Status();
  }));
  return report;
}

Result<std::vector<plan::Bytes>> read_parts(const void* data, const uint64_t* offsets,
                                            uint64_t count, const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const auto list, text_list_argument(data, offsets, count, parameter));
  std::vector<plan::Bytes> parts(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto bytes = std::as_bytes(std::span(list.at(i).data(), list.at(i).size()));
    parts[i].assign(bytes.begin(), bytes.end());
  }
  return parts;
}

Status check_part_count(const SavePlannerImpl& planner, uint64_t count, const char* parameter) {
  if (count == static_cast<uint64_t>(planner.world_size)) return {};
  return bad_argument(parameter, fmt::format("{} parts for {} ranks", count, planner.world_size));
}

Result<std::shared_ptr<SavePlannerImpl>> make_planner(const SaveArguments& given,
                                                      plan::RankPosition position) {
  auto impl = std::make_shared<SavePlannerImpl>();
  SHW_ASSIGN_OR_RETURN(impl->runtime.context, need(given.context, "context"));
  SHW_ASSIGN_OR_RETURN(const auto state, need(given.state, "state"));
  if (position.world_size < 1 || position.world_size > kMaxWorldSize || position.rank < 0 ||
      position.rank >= position.world_size) {
    return bad_argument("rank", fmt::format("rank {} of {} ranks does not exist", position.rank,
                                            position.world_size));
  }
  shw_save_options options;
  SHW_RETURN_IF_ERROR(read_options(given.options, "options", &options));
  SHW_ASSIGN_OR_RETURN(auto core_options, read_save_options(options));
  SHW_ASSIGN_OR_RETURN(impl->runtime.own,
                       impl->runtime.context->call_runtime(options.threads, options.memory_budget));
  impl->world_size = position.world_size;
  impl->deadline_ns = options.deadline_ns;
  SHW_ASSIGN_OR_RETURN(impl->cancellation, read_cancellation(options.cancellation));
  SHW_ASSIGN_OR_RETURN(auto saved, without_replicas(state->state));
  SHW_ASSIGN_OR_RETURN(impl->planner,
                       exec::SavePlanner::create(impl->runtime.get(), std::move(saved),
                                                 std::move(core_options), position));
  return impl;
}

exec::CallContext call_of(const SavePlannerImpl& planner) {
  return call_context(planner.deadline_ns, planner.cancellation.get());
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;

extern "C" {

void shw_save_options_init(shw_save_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_save_options_set_metadata(shw_save_options* options, const char* key,
                                         const char* value, shw_buffer** out,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(key, "key"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(value, "value"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_save_options copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(options, "options", &copy));
    SHW_ASSIGN_OR_RETURN(shw_buffer * made, capi::with_metadata(copy, key, value));
    options->metadata = static_cast<const char*>(shw_buffer_data(made));
    options->metadata_offsets = shw_buffer_part_offsets(made);
    options->metadata_count = shw_buffer_part_count(made) / 2;
    *out = made;
    return {};
  });
}

shw_status shw_save(shw_context* context, const shw_state* state, shw_storage* storage,
                    const char* path, shw_collective* collective, const shw_save_options* options,
                    shw_report** out, shw_error** err) noexcept {
  const capi::Together together{context, collective, /*asynchronous=*/false, exec::decline_save};
  return capi::guarded_together(err, together, [&](bool* met) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto call,
                         capi::read_call({context, state, storage, path, collective, options},
                                         /*asynchronous=*/false));
    capi::ReportHandle made;
    const auto control = capi::call_context(call.options.deadline_ns, call.cancellation.get());
    *met = true;
    const auto save = [&](const exec::CallContext& within) {
      return exec::save(call.runtime.get(), call.state, call.location, *call.collective,
                        call.options, within);
    };
    SHW_ASSIGN_OR_RETURN(auto report, capi::with_progress(call.progress, control, save));
    *out = made.fill(std::move(report), call.shown_path);
    return {};
  });
}

shw_status shw_save_async(shw_context* context, const shw_state* state, shw_storage* storage,
                          const char* path, shw_collective* collective,
                          const shw_save_options* options, shw_job** out,
                          shw_error** err) noexcept {
  const capi::Together together{context, collective, /*asynchronous=*/true, exec::decline_save};
  return capi::guarded_together(err, together, [&](bool* met) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto call,
                         capi::read_call({context, state, storage, path, collective, options},
                                         /*asynchronous=*/true));
    auto shared = call.runtime.context;
    exec::Runtime* runtime = &call.runtime.get();
    call.runtime.context = nullptr;  // the queue runs the job, so the context outlives it
    auto& members = *call.collective;
    auto kept = std::make_shared<capi::SaveCall>(std::move(call));
    exec::JobQueue::Work work = [runtime, given = kept.get()](const exec::CallContext& control) {
      const auto save = [&](const exec::CallContext& within) {
        return exec::save_in_background(*runtime, given->state, given->location, *given->collective,
                                        given->options, given->staging_limit, within);
      };
      auto report = capi::shown(capi::with_progress(given->progress, control, save), *given);
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

shw_status shw_prepare(shw_context* context, const shw_state* state, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_ASSIGN_OR_RETURN(const auto given, capi::need(state, "state"));
    return exec::prepare_staging(shared->runtime(), *given->state, {});
  });
}

shw_status shw_save_planner_create(shw_context* context, const shw_state* state, int32_t rank,
                                   int32_t world_size, const shw_save_options* options,
                                   shw_save_planner** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto impl,
                         capi::make_planner({context, state, nullptr, nullptr, nullptr, options},
                                            {rank, world_size}));
    *out = capi::make_handle<shw_save_planner>(std::move(impl));
    return {};
  });
}

shw_status shw_save_planner_local_plan(shw_save_planner* planner, shw_buffer** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, impl->planner->local_plan(capi::call_of(*impl)));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(bytes)));
    return {};
  });
}

shw_status shw_save_planner_global_plan(shw_save_planner* planner, shw_storage* storage,
                                        const char* path, const void* plans,
                                        const uint64_t* plan_offsets, uint64_t plan_count,
                                        shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plans, "plans"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plan_offsets, "plan_offsets"));
    SHW_RETURN_IF_ERROR(capi::check_part_count(*impl, plan_count, "plans"));
    SHW_ASSIGN_OR_RETURN(const auto locals,
                         capi::read_parts(plans, plan_offsets, plan_count, "plans"));
    SHW_ASSIGN_OR_RETURN(auto target, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(const auto lists,
                         impl->planner->global_plan(locals, target, capi::call_of(*impl)));
    SHW_ASSIGN_OR_RETURN(const auto first,
                         shardwright::plan::decode<shardwright::plan::WriteList>(lists.front()));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(lists));
    impl->generation = first.generation;
    impl->plan_digest = first.plan_digest;
    impl->target = std::move(target);
    impl->shown_path = path;
    return {};
  });
}

shw_status shw_save_planner_finish(shw_save_planner* planner, const void* plan, uint64_t plan_size,
                                   shw_plan** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plan, "plan"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(plan, plan_size, "plan"));
    shardwright::plan::Bytes kept(bytes.begin(), bytes.end());
    SHW_ASSIGN_OR_RETURN(shw_plan * made, capi::plan_of(kept));
    const Status status = impl->planner->finish(bytes);
    if (!status.ok()) {
      capi::release_handle(made);
      return status;
    }
    impl->finished = std::move(kept);
    *out = made;
    return {};
  });
}

shw_status shw_save_execute(shw_save_planner* planner, const shw_plan* plan, shw_storage* storage,
                            const char* path, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_ASSIGN_OR_RETURN(const auto given, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    if (impl->finished.empty() || given->bytes != impl->finished) {
      return shardwright::failed_precondition(
          "the plan is not the one that this planner has finished");
    }
    SHW_ASSIGN_OR_RETURN(const auto result, impl->planner->execute(location, capi::call_of(*impl)));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(result)));
    return {};
  });
}

shw_status shw_save_commit(shw_save_planner* planner, const void* results,
                           const uint64_t* result_offsets, uint64_t result_count, shw_report** out,
                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(results, "results"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(result_offsets, "result_offsets"));
    SHW_RETURN_IF_ERROR(capi::check_part_count(*impl, result_count, "results"));
    if (impl->target.storage == nullptr) {
      return shardwright::failed_precondition(
          "commit comes after global_plan, on the same planner");
    }
    SHW_ASSIGN_OR_RETURN(const auto parts,
                         capi::read_parts(results, result_offsets, result_count, "results"));
    capi::ReportHandle made;
    SHW_ASSIGN_OR_RETURN(auto report,
                         impl->planner->commit(parts, impl->target, capi::call_of(*impl)));
    *out = made.fill(std::move(report), impl->shown_path);
    return {};
  });
}

void shw_save_planner_release(shw_save_planner* planner) noexcept {
  capi::release_handle(planner);
}

}  // extern "C"
