// SPDX-License-Identifier: Apache-2.0
//
// estimate.h: described jobs, and what a save or load of them costs.
#include "shardwright/estimate.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/estimate/estimate.h"
#include "core/plan/wire/wire.h"

namespace shardwright::capi {
namespace {

using estimate::EstimateOptions;
using job_description::JobDescription;

constexpr uint64_t kMaxPlanBytes = uint64_t{4} << 30;  // of the load plans of one job

shw_job_description* job_handle(JobDescription job) {
  auto impl = std::make_shared<JobDescriptionImpl>();
  impl->job = std::move(job);
  return make_handle<shw_job_description>(std::move(impl));
}

Result<EstimateOptions> read_estimate_options(const shw_estimate_options* given, bool* with_plan) {
  shw_estimate_options copy;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &copy));
  SHW_RETURN_IF_ERROR(option_in_range(copy.owner, SHW_OWNER_ALL, "owner"));
  SHW_RETURN_IF_ERROR(option_in_range(copy.preset, SHW_PRESET_MEGATRON, "preset"));
  EstimateOptions options;
  options.owner = static_cast<plan::OwnerRule>(copy.owner);
  options.preset = static_cast<plan::Preset>(copy.preset);
  if (copy.memory_budget != 0) options.memory_budget_bytes = copy.memory_budget;
  options.rank_bytes_per_second = copy.rank_bytes_per_second;
  options.total_bytes_per_second = copy.total_bytes_per_second;
  if (copy.ranks_per_node > estimate::kMostRanksPerNode) {
    return bad_argument("ranks_per_node",
                        fmt::format("{} is more than the {} that share reads", copy.ranks_per_node,
                                    estimate::kMostRanksPerNode));
  }
  options.ranks_per_node = copy.ranks_per_node;
  SHW_RETURN_IF_ERROR(option_in_range(copy.exchange, SHW_ESTIMATE_EXCHANGE_ALWAYS, "exchange"));
  if (copy.exchange != SHW_ESTIMATE_EXCHANGE_OFF && copy.ranks_per_node == 0)
    return bad_argument("exchange", "needs ranks_per_node: nodes exchange, not ranks");
  options.exchange = static_cast<estimate::NodeExchange>(copy.exchange);
  if ((copy.flags & SHW_ESTIMATE_WITH_CHUNKS) != 0)
    options.listed_chunks = estimate::kMaxListedChunks;
  *with_plan = (copy.flags & SHW_ESTIMATE_WITH_PLAN) != 0;
  return options;
}

std::shared_ptr<const job_description::StoredCheckpoint> stored_of(const CheckpointImpl& impl) {
  const format::OpenedCheckpoint& opened = impl.checkpoint->opened();
  auto stored = std::make_shared<job_description::StoredCheckpoint>();
  stored->catalog = opened.catalog();
  stored->file_count = opened.files().size();
  stored->generation = opened.generation();
  stored->digest_block_bytes = opened.digest_block_bytes();
  return stored;
}

plan::Bytes estimate_part(const estimate::Estimate& estimate) {
  const std::string json = estimate::estimate_json(estimate);
  const auto bytes = std::as_bytes(std::span(json.data(), json.size()));
  return {bytes.begin(), bytes.end()};
}

Result<shw_buffer*> estimated_save(const JobDescription& job, const EstimateOptions& options,
                                   bool with_plan) {
  SHW_ASSIGN_OR_RETURN(const estimate::SimulatedSave save, estimate::simulate_save(job, options));
  std::vector<plan::Bytes> parts{estimate_part(save.estimate)};
  if (with_plan) {
    SHW_ASSIGN_OR_RETURN(plan::Bytes bytes, plan::encode(save.plan));
    parts.push_back(std::move(bytes));
  }
  return buffer_of_parts(parts);
}

// The estimate, then the plan of each rank when plans are wanted.
Result<shw_buffer*> estimated_load(const JobDescription& source, const JobDescription& target,
                                   const EstimateOptions& options, bool with_plans) {
  SHW_ASSIGN_OR_RETURN(const auto stored, estimate::stored_checkpoint(source, options));
  SHW_ASSIGN_OR_RETURN(const estimate::Estimate estimate,
                       estimate::estimate_load(*stored, target, options));
  std::vector<plan::Bytes> parts{estimate_part(estimate)};
  uint64_t left = kMaxPlanBytes;
  if (with_plans) {
    SHW_RETURN_IF_ERROR(estimate::simulate_load(*stored, target, [&](const plan::LoadPlan& load) {
      SHW_ASSIGN_OR_RETURN(plan::Bytes bytes, plan::encode(load));
      if (bytes.size() > left) {
        return resource_exhausted("plan_bytes",
                                  fmt::format("the load plans of {} ranks have more than {} bytes",
                                              target.rank_count, kMaxPlanBytes));
      }
      left -= bytes.size();
      parts.push_back(std::move(bytes));
      return Status();
    }));
  }
  return buffer_of_parts(parts);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace job_description = shardwright::job_description;
using job_description::JobDescription;
using shardwright::Status;

extern "C" {

void shw_estimate_options_init(shw_estimate_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_job_description_create(const void* data, uint64_t size, shw_job_description** out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SHW_ASSIGN_OR_RETURN(JobDescription job, job_description::read_job_description(text));
    *out = capi::job_handle(std::move(job));
    return {};
  });
}

shw_status shw_job_description_from_checkpoint(const shw_checkpoint* checkpoint,
                                               shw_job_description** out,
                                               shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(JobDescription job,
                         job_description::job_of_checkpoint(
                             capi::stored_of(*impl), impl->checkpoint->opened().world_size()));
    *out = capi::job_handle(std::move(job));
    return {};
  });
}

shw_status shw_job_description_lay_out(const shw_job_description* source,
                                       const shw_job_description* target, shw_job_description** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto from, capi::need(source, "source"));
    SHW_ASSIGN_OR_RETURN(const auto onto, capi::need(target, "target"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(JobDescription job, job_description::lay_out(from->job, onto->job));
    *out = capi::job_handle(std::move(job));
    return {};
  });
}

int32_t shw_job_description_rank_count(const shw_job_description* description) noexcept {
  const auto* impl = capi::peek(description);
  return impl == nullptr ? 0 : impl->job.rank_count;
}

shw_status shw_job_description_json(const shw_job_description* description, shw_buffer** out,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(description, "description"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(
        *out, capi::buffer_of(std::string_view(job_description::job_description_json(impl->job))));
    return {};
  });
}

shw_status shw_estimate_save(const shw_job_description* description,
                             const shw_estimate_options* options, shw_buffer** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(description, "description"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    bool with_plan = false;
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_estimate_options(options, &with_plan));
    SHW_ASSIGN_OR_RETURN(*out, capi::estimated_save(impl->job, chosen, with_plan));
    return {};
  });
}

shw_status shw_estimate_load(const shw_job_description* stored, const shw_job_description* wanted,
                             const shw_estimate_options* options, shw_buffer** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto source, capi::need(stored, "stored"));
    auto target = source;
    if (wanted != nullptr) {
      SHW_ASSIGN_OR_RETURN(target, capi::need(wanted, "wanted"));
    }
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    bool with_plan = false;
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_estimate_options(options, &with_plan));
    SHW_ASSIGN_OR_RETURN(*out, capi::estimated_load(source->job, target->job, chosen, with_plan));
    return {};
  });
}

void shw_job_description_release(shw_job_description* description) noexcept {
  capi::release_handle(description);
}

}  // extern "C"
