// SPDX-License-Identifier: Apache-2.0
//
// convert.h: conversions of checkpoints.
#include "shardwright/convert.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "capi/context/context.h"
#include "core/exec/convert.h"

namespace shardwright::capi {
namespace {

// The options of a save have the same words.
Result<exec::ConvertOptions> read_convert_options(const shw_convert_options& given) {
  SHW_RETURN_IF_ERROR(known_flags(given.flags, SHW_CONVERT_WITHOUT_COMPARISON));
  shw_save_options save = SHW_SAVE_OPTIONS_INIT;
  save.format = given.format;
  save.overwrite = given.overwrite;
  save.durability = given.durability;
  save.file_mode = given.file_mode;
  save.common = given.common;
  save.integrity = given.integrity;
  save.max_shard_size = given.max_shard_size;
  save.deadline_ns = given.deadline_ns;
  SHW_ASSIGN_OR_RETURN(const exec::SaveOptions checked, read_save_options(save));
  exec::ConvertOptions options;
  options.format = checked.format;
  options.overwrite = checked.overwrite;
  options.durability = checked.durability;
  options.file_mode = checked.file_mode;
  options.common_as_object = checked.common_as_object;
  options.lists_digests = checked.lists_digests;
  options.max_shard_bytes = checked.max_shard_bytes;
  options.compare = (given.flags & SHW_CONVERT_WITHOUT_COMPARISON) == 0;
  return options;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

void shw_convert_options_init(shw_convert_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_convert(shw_context* context, shw_storage* source_storage, const char* source,
                       shw_storage* target_storage, const char* target,
                       const shw_convert_options* given, shw_report** out,
                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_convert_options raw;
    SHW_RETURN_IF_ERROR(capi::read_options(given, "options", &raw));
    SHW_ASSIGN_OR_RETURN(const auto options, capi::read_convert_options(raw));
    SHW_ASSIGN_OR_RETURN(const auto from, capi::read_location(source_storage, source, "source"));
    SHW_ASSIGN_OR_RETURN(const auto to, capi::read_location(target_storage, target, "target"));
    SHW_ASSIGN_OR_RETURN(const auto cancellation, capi::read_cancellation(raw.cancellation));
    const uint64_t budget =
        raw.memory_budget != 0 ? raw.memory_budget : shared->runtime().staging().budget_bytes();
    SHW_ASSIGN_OR_RETURN(const auto reading, shared->call_runtime(raw.threads, budget / 2));
    SHW_ASSIGN_OR_RETURN(const auto writing, shared->call_runtime(raw.threads, budget / 2));
    SHW_ASSIGN_OR_RETURN(auto report, shardwright::exec::convert(
                                          *reading, *writing, from, to, options,
                                          capi::call_context(raw.deadline_ns, cancellation.get())));
    *out = capi::report_of(std::move(report));
    return {};
  });
}
