// SPDX-License-Identifier: Apache-2.0
//
// simulate.h: described jobs, and what a save or load of them costs.
#include "shardwright/simulate.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/plan/price/price.h"
#include "core/plan/wire/wire.h"

namespace shardwright::capi {
namespace {

constexpr uint64_t kMaxPlanBytes = uint64_t{4} << 30;  // of the load plans of one job

shw_world* world_handle(plan::World world) {
  auto impl = std::make_shared<WorldImpl>();
  impl->world = std::move(world);
  return make_handle<shw_world>(std::move(impl));
}

Result<plan::PriceOptions> read_price_options(const shw_price_options* given, bool* with_plan) {
  shw_price_options copy;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &copy));
  SHW_RETURN_IF_ERROR(option_in_range(copy.owner, SHW_OWNER_ALL, "owner"));
  SHW_RETURN_IF_ERROR(option_in_range(copy.preset, SHW_PRESET_MEGATRON, "preset"));
  plan::PriceOptions options;
  options.owner = static_cast<plan::OwnerRule>(copy.owner);
  options.preset = static_cast<plan::Preset>(copy.preset);
  if (copy.memory_budget != 0) options.memory_budget_bytes = copy.memory_budget;
  options.rank_bytes_per_second = copy.rank_bytes_per_second;
  options.total_bytes_per_second = copy.total_bytes_per_second;
  *with_plan = (copy.flags & SHW_PRICE_WITH_PLAN) != 0;
  return options;
}

std::shared_ptr<const plan::StoredCheckpoint> stored_of(const CheckpointImpl& impl) {
  const format::OpenedCheckpoint& opened = impl.checkpoint->opened();
  auto stored = std::make_shared<plan::StoredCheckpoint>();
  stored->catalog = opened.catalog();
  stored->file_count = opened.files().size();
  stored->generation = opened.generation();
  stored->digest_block_bytes = opened.digest_block_bytes();
  return stored;
}

plan::Bytes price_part(const plan::Price& price) {
  const std::string json = plan::price_json(price);
  const auto bytes = std::as_bytes(std::span(json.data(), json.size()));
  return {bytes.begin(), bytes.end()};
}

Result<shw_buffer*> priced_save(const plan::World& world, const plan::PriceOptions& options,
                                bool with_plan) {
  SHW_ASSIGN_OR_RETURN(const plan::SimulatedSave save, plan::simulate_save(world, options));
  std::vector<plan::Bytes> parts{price_part(save.price)};
  if (with_plan) {
    SHW_ASSIGN_OR_RETURN(plan::Bytes bytes, plan::encode(save.plan));
    parts.push_back(std::move(bytes));
  }
  return buffer_of_parts(parts);
}

// The price, then the plan of each rank when plans are wanted.
Result<shw_buffer*> priced_load(const plan::World& source, const plan::World& target,
                                const plan::PriceOptions& options, bool with_plans) {
  SHW_ASSIGN_OR_RETURN(const auto stored, plan::stored_checkpoint(source, options));
  SHW_ASSIGN_OR_RETURN(const plan::Price price, plan::price_load(*stored, target, options));
  std::vector<plan::Bytes> parts{price_part(price)};
  uint64_t left = kMaxPlanBytes;
  if (with_plans) {
    SHW_RETURN_IF_ERROR(plan::simulate_load(*stored, target, [&](const plan::LoadPlan& load) {
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
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

void shw_price_options_init(shw_price_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_world_create(const void* data, uint64_t size, shw_world** out,
                            shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SHW_ASSIGN_OR_RETURN(plan::World world, plan::read_world(text));
    *out = capi::world_handle(std::move(world));
    return {};
  });
}

shw_status shw_world_from_checkpoint(const shw_checkpoint* checkpoint, shw_world** out,
                                     shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(
        plan::World world,
        plan::world_of_checkpoint(capi::stored_of(*impl), impl->checkpoint->opened().world_size()));
    *out = capi::world_handle(std::move(world));
    return {};
  });
}

shw_status shw_world_lay_out(const shw_world* source, const shw_world* target, shw_world** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto from, capi::need(source, "source"));
    SHW_ASSIGN_OR_RETURN(const auto onto, capi::need(target, "target"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(plan::World world, plan::lay_out(from->world, onto->world));
    *out = capi::world_handle(std::move(world));
    return {};
  });
}

int32_t shw_world_rank_count(const shw_world* world) noexcept {
  const auto* impl = capi::peek(world);
  return impl == nullptr ? 0 : impl->world.rank_count;
}

shw_status shw_world_json(const shw_world* world, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(world, "world"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(plan::world_json(impl->world))));
    return {};
  });
}

shw_status shw_world_price_save(const shw_world* world, const shw_price_options* options,
                                shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(world, "world"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    bool with_plan = false;
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_price_options(options, &with_plan));
    SHW_ASSIGN_OR_RETURN(*out, capi::priced_save(impl->world, chosen, with_plan));
    return {};
  });
}

shw_status shw_world_price_load(const shw_world* stored, const shw_world* wanted,
                                const shw_price_options* options, shw_buffer** out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto source, capi::need(stored, "stored"));
    auto target = source;
    if (wanted != nullptr) {
      SHW_ASSIGN_OR_RETURN(target, capi::need(wanted, "wanted"));
    }
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    bool with_plan = false;
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_price_options(options, &with_plan));
    SHW_ASSIGN_OR_RETURN(*out, capi::priced_load(source->world, target->world, chosen, with_plan));
    return {};
  });
}

void shw_world_release(shw_world* world) noexcept {
  capi::release_handle(world);
}

}  // extern "C"
