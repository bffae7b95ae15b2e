// SPDX-License-Identifier: Apache-2.0
//
// reshard.h: checkpoints of Megatron for jobs of another shape.
#include "shardwright/reshard.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "capi/context/context.h"
#include "core/reshard/reshard.h"

namespace shardwright::capi {
namespace {

using reshard::OptimizerLayout;

Status read_target(const shw_reshard_options& given, reshard::TargetJob* target) {
  if (given.optimizer != SHW_OPTIMIZER_FULLY_RESHARDABLE &&
      given.optimizer != SHW_OPTIMIZER_DP_RESHARDABLE)
    return invalid_argument("options.optimizer is no SHW_OPTIMIZER_ value")
        .with_detail("parameter", "optimizer");
  if (given.job != nullptr) SHW_RETURN_IF_ERROR(reshard::read_target_job(given.job, target));
  const auto take = [](uint32_t size, int64_t* into) {
    if (size != 0) *into = size;
  };
  take(given.tensor_parallel, &target->shape.tensor);
  take(given.pipeline_parallel, &target->shape.pipeline);
  take(given.expert_parallel, &target->shape.expert);
  take(given.data_parallel, &target->shape.data);
  take(given.expert_tensor_parallel, &target->shape.expert_tensor);
  SHW_ASSIGN_OR_RETURN(
      const auto layers,
      list_argument(given.pipeline_layers, given.pipeline_layer_count, "pipeline_layers"));
  if (!layers.empty()) target->pipeline_layers.assign(layers.begin(), layers.end());
  if (given.optimizer == SHW_OPTIMIZER_DP_RESHARDABLE)
    target->optimizer = OptimizerLayout::kDpReshardable;
  return {};
}

// The options of a save have the same words.
Result<reshard::ReshardOptions> read_reshard_options(const shw_reshard_options& given) {
  SHW_RETURN_IF_ERROR(
      known_flags(given.flags, SHW_RESHARD_WITHOUT_COMPARISON | SHW_RESHARD_DRY_RUN));
  shw_save_options save = SHW_SAVE_OPTIONS_INIT;
  save.overwrite = given.overwrite;
  save.durability = given.durability;
  save.file_mode = given.file_mode;
  save.deadline_ns = given.deadline_ns;
  SHW_ASSIGN_OR_RETURN(const exec::SaveOptions checked, read_save_options(save));
  reshard::ReshardOptions options;
  SHW_RETURN_IF_ERROR(read_target(given, &options.target));
  if (given.map != nullptr) {
    SHW_ASSIGN_OR_RETURN(options.map, reshard::read_map(given.map));
  }
  options.dry_run = (given.flags & SHW_RESHARD_DRY_RUN) != 0;
  options.convert.overwrite = checked.overwrite;
  options.convert.durability = checked.durability;
  options.convert.file_mode = checked.file_mode;
  options.convert.compare = (given.flags & SHW_RESHARD_WITHOUT_COMPARISON) == 0;
  return options;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

void shw_reshard_options_init(shw_reshard_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_reshard(shw_context* context, shw_storage* source_storage, const char* source,
                       shw_storage* target_storage, const char* target,
                       const shw_reshard_options* given, shw_report** out,
                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto shared, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_reshard_options raw;
    SHW_RETURN_IF_ERROR(capi::read_options(given, "options", &raw));
    SHW_ASSIGN_OR_RETURN(const auto options, capi::read_reshard_options(raw));
    SHW_ASSIGN_OR_RETURN(const auto from, capi::read_location(source_storage, source, "source"));
    SHW_ASSIGN_OR_RETURN(const auto to, capi::read_location(target_storage, target, "target"));
    SHW_ASSIGN_OR_RETURN(const auto cancellation, capi::read_cancellation(raw.cancellation));
    const uint64_t budget =
        raw.memory_budget != 0 ? raw.memory_budget : shared->runtime().staging().budget_bytes();
    SHW_ASSIGN_OR_RETURN(const auto reading, shared->call_runtime(raw.threads, budget / 2));
    SHW_ASSIGN_OR_RETURN(const auto writing, shared->call_runtime(raw.threads, budget / 2));
    SHW_ASSIGN_OR_RETURN(auto report, shardwright::reshard::reshard(
                                          *reading, *writing, from, to, options,
                                          capi::call_context(raw.deadline_ns, cancellation.get())));
    *out = capi::report_of(std::move(report));
    return {};
  });
}
