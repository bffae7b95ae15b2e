// SPDX-License-Identifier: Apache-2.0
//
// checkpoint.h: checkpoints as a whole.
#include "shardwright/checkpoint.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "core/base/json_writer.h"
#include "core/exec/housekeeping.h"
#include "core/exec/remove_entries.h"

namespace shardwright::capi {
namespace {

Result<std::shared_ptr<CheckpointImpl>> open(std::shared_ptr<Context> context,
                                             const format::Location& location,
                                             const shw_checkpoint_options& options) {
  SHW_RETURN_IF_ERROR(option_in_range(options.verify, SHW_VERIFY_OFF, "verify"));
  SHW_RETURN_IF_ERROR(option_in_range(options.read_path, SHW_READ_PATH_BUFFERED, "read_path"));
  SHW_RETURN_IF_ERROR(option_in_range(options.format, SHW_FORMAT_MEGATRON, "format"));
  auto impl = std::make_shared<CheckpointImpl>();
  SHW_ASSIGN_OR_RETURN(impl->runtime.own,
                       context->call_runtime(options.threads, options.memory_budget));
  impl->runtime.context = std::move(context);
  impl->reading = {static_cast<exec::VerifyRule>(options.verify),
                   static_cast<exec::ReadPath>(options.read_path)};
  impl->deadline_ns = options.deadline_ns;
  SHW_ASSIGN_OR_RETURN(impl->cancellation, read_cancellation(options.cancellation));
  SHW_ASSIGN_OR_RETURN(const std::string as, wanted_format(options.format));
  SHW_ASSIGN_OR_RETURN(impl->checkpoint, exec::Checkpoint::open(impl->runtime.get(), location, as));
  const format::OpenedCheckpoint& opened = impl->checkpoint->opened();
  impl->format = opened.format_name();
  impl->generation = opened.generation();
  impl->metadata.assign(opened.metadata().begin(), opened.metadata().end());
  const plan::TextTable& texts = opened.catalog().texts;
  impl->texts.reserve_more(texts.size(), texts.blob().size());
  for (plan::TextId id = 0; id < texts.size(); ++id) impl->texts.append(texts.at(id));
  impl->payload_bytes = opened.catalog().payload_bytes();
  SHW_RETURN_IF_ERROR(check_format(options.format, impl->format));
  return impl;
}

std::string run_json(const exec::RunInfo& run) {
  JsonWriter json;
  json.begin_object().key("schema").number(1).key("steps").begin_array();
  for (const exec::StepInfo& step : run.steps) {
    json.begin_object().key("name").text(step.name).key("step").number(step.step);
    json.key("state").text(step.state).key("message").text(step.message).end_object();
  }
  json.end_array().key("newest_whole").text(run.newest_whole);
  json.key("tracker").text(run.tracker).key("tracked").text(run.tracked).end_object();
  return json.take();
}

// What opens a step of a run: the path as the host wrote it, or a key of its storage.
std::string step_path(const format::Location& run, std::string_view name) {
  std::string_view parent = run.display.empty() ? run.prefix : run.display;
  while (parent.ends_with('/')) parent.remove_suffix(1);
  const bool below = !parent.empty() || !run.display.empty();
  return fmt::format("{}{}{}", parent, below ? "/" : "", name);
}

// look is Checkpoint::verify or find_damage.
template <typename Look>
Status looked_for_damage(const shw_checkpoint* checkpoint, Look look, uint64_t flags,
                         shw_report** out) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(checkpoint, "checkpoint"));
  SHW_RETURN_IF_ERROR(need_pointer(out, "out"));
  SHW_RETURN_IF_ERROR(known_flags(flags, SHW_VERIFY_DEEP));
  const bool deep = (flags & SHW_VERIFY_DEEP) != 0;
  SHW_ASSIGN_OR_RETURN(auto report, (*impl->checkpoint.*look)(deep, call_on(*impl)));
  *out = report_of(std::move(report));
  return {};
}

const std::pair<std::string, std::string>* metadata_at(const shw_checkpoint* checkpoint,
                                                       uint64_t index) {
  const auto* impl = peek(checkpoint);
  if (impl == nullptr || index >= impl->metadata.size()) return nullptr;
  return &impl->metadata[index];
}

}  // namespace

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;
using shardwright::exec::Checkpoint;

extern "C" {

void shw_checkpoint_options_init(shw_checkpoint_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_checkpoint_open(shw_context* context, shw_storage* storage, const char* path,
                               const shw_checkpoint_options* options, shw_checkpoint** out,
                               shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_checkpoint_options copy;
    SHW_RETURN_IF_ERROR(capi::read_options(options, "options", &copy));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(auto impl, capi::open(std::move(shared), location, copy));
    *out = capi::make_handle<shw_checkpoint>(std::move(impl));
    return {};
  });
}

const char* shw_checkpoint_format(const shw_checkpoint* checkpoint, uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->format), size);
}

const char* shw_checkpoint_generation(const shw_checkpoint* checkpoint, uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->generation), size);
}

int32_t shw_checkpoint_world_size(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : impl->checkpoint->opened().world_size();
}

int64_t shw_checkpoint_created_ns(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : impl->checkpoint->opened().created_unix_ns();
}

uint64_t shw_checkpoint_metadata_count(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : impl->metadata.size();
}

const char* shw_checkpoint_metadata_key(const shw_checkpoint* checkpoint, uint64_t index,
                                        uint64_t* size) noexcept {
  const auto* pair = capi::metadata_at(checkpoint, index);
  return capi::text_out(pair == nullptr ? "" : std::string_view(pair->first), size);
}

const char* shw_checkpoint_metadata_value(const shw_checkpoint* checkpoint, uint64_t index,
                                          uint64_t* size) noexcept {
  const auto* pair = capi::metadata_at(checkpoint, index);
  return capi::text_out(pair == nullptr ? "" : std::string_view(pair->second), size);
}

shw_status shw_checkpoint_info(const shw_checkpoint* checkpoint, shw_buffer** out,
                               shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const std::string text = impl->checkpoint->info_json(/*with_entries=*/true);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(text)));
    return {};
  });
}

shw_status shw_checkpoint_verify(const shw_checkpoint* checkpoint, uint64_t flags, shw_report** out,
                                 shw_error** err) noexcept {
  return capi::guarded(
      err, [&] { return capi::looked_for_damage(checkpoint, &Checkpoint::verify, flags, out); });
}

shw_status shw_checkpoint_find_damage(const shw_checkpoint* checkpoint, uint64_t flags,
                                      shw_report** out, shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::looked_for_damage(checkpoint, &Checkpoint::find_damage, flags, out);
  });
}

shw_status shw_checkpoint_gc(shw_context* context, shw_storage* storage, const char* path,
                             int64_t grace_ns, uint64_t flags, shw_report** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::known_flags(flags, SHW_GC_APPLY));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    exec::GcOptions options;
    options.apply = (flags & SHW_GC_APPLY) != 0;
    options.grace_ns = grace_ns;
    SHW_ASSIGN_OR_RETURN(auto report, exec::collect_garbage(shared->runtime(), location, options));
    *out = capi::report_of(std::move(report));
    return {};
  });
}

shw_status shw_checkpoint_remove(shw_context* context, shw_storage* storage, const char* path,
                                 const char* prefix, uint64_t flags, shw_report** out,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(prefix, "prefix"));
    SHW_RETURN_IF_ERROR(capi::known_flags(flags, SHW_REMOVE_APPLY | SHW_REMOVE_WHOLE_PARTS));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    exec::RemoveOptions options;
    options.prefix = prefix;
    options.whole_parts = (flags & SHW_REMOVE_WHOLE_PARTS) != 0;
    options.apply = (flags & SHW_REMOVE_APPLY) != 0;
    SHW_ASSIGN_OR_RETURN(auto report, exec::remove_entries(shared->runtime(), location, options));
    *out = capi::report_of(std::move(report));
    return {};
  });
}

shw_status shw_checkpoint_list_steps(shw_context* context, shw_storage* storage, const char* path,
                                     shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(const auto run, exec::list_run(shared->runtime(), location));
    const std::string text = capi::run_json(run);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(text)));
    return {};
  });
}

shw_status shw_checkpoint_latest(shw_context* context, shw_storage* storage, const char* path,
                                 shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(const auto name, exec::newest_whole_step(shared->runtime(), location));
    const std::string found = capi::step_path(location, name);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(found)));
    return {};
  });
}

void shw_checkpoint_release(shw_checkpoint* checkpoint) noexcept {
  capi::release_handle(checkpoint);
}

}  // extern "C"
