// SPDX-License-Identifier: Apache-2.0
//
// hsdp_estimate.h: memory of units, measured and foretold.
#include "shardwright/hsdp_estimate.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/struct_reader.h"
#include "capi/hsdp/hsdp_handles.h"
#include "capi/hsdp/hsdp_options.h"
#include "capi/hsdp/param_batch.h"
#include "core/base/limits.h"
#include "core/hsdp/estimate.h"

namespace shardwright::capi {
namespace {

Status check_kind(int32_t kind) {
  if (kind >= SHW_HSDP_MEMORY_ALL && kind <= SHW_HSDP_MEMORY_SHARD_GRADS) return {};
  return bad_argument("kind", fmt::format("{} is no kind of memory", kind));
}

shw_hsdp_memory memory_of(const hsdp::MemoryUse& use) {
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  memory.current_bytes = use.current_bytes;
  memory.peak_bytes = use.peak_bytes;
  memory.current_buffers = use.current_count;
  memory.total_buffers = use.total_count;
  return memory;
}

shw_hsdp_memory memory_of(const hsdp::MemoryStats& stats, int32_t kind) {
  return memory_of(kind == SHW_HSDP_MEMORY_ALL ? stats.total
                                               : stats.of(static_cast<hsdp::BufferKind>(kind)));
}

Result<hsdp::EstimatedUnit> read_unit(const shw_hsdp_estimate_unit& given, int32_t shard_size) {
  SHW_RETURN_IF_ERROR(need_pointer(given.params, "params"));
  shw_hsdp_param_batch batch;
  SHW_RETURN_IF_ERROR(read_struct(given.params, "params", &batch));
  const auto host = device::make_host_lane_device(true);
  SHW_ASSIGN_OR_RETURN(const auto inputs, read_param_batch(batch, {}, *host));
  std::vector<hsdp::ParameterSpec> specs;
  for (const hsdp::ParameterInput& each : inputs) specs.push_back(each.spec);
  SHW_ASSIGN_OR_RETURN(const UnitDescription description, read_unit_options(given.options));
  hsdp::EstimatedUnit unit;
  SHW_ASSIGN_OR_RETURN(unit.groups, hsdp::estimated_groups(specs, description.options, shard_size));
  unit.settings = description.settings;
  unit.is_root = (given.flags & SHW_HSDP_ESTIMATE_ROOT) != 0;
  unit.adds_gradients = (given.flags & SHW_HSDP_ESTIMATE_ADDS_GRADS) != 0;
  unit.has_allocator =
      description.host_memory || (given.flags & SHW_HSDP_ESTIMATE_HOST_MEMORY) != 0;
  return unit;
}

Result<std::vector<hsdp::EstimatedUnit>> read_units(const shw_hsdp_estimate_unit* units,
                                                    uint64_t count, int32_t shard_size) {
  SHW_RETURN_IF_ERROR(list_argument(units, count, "units").status());
  std::vector<hsdp::EstimatedUnit> made;
  for (uint64_t each = 0; each < count; ++each) {
    shw_hsdp_estimate_unit copy;
    SHW_RETURN_IF_ERROR(read_element(units, each, "units", &copy));
    auto unit = read_unit(copy, shard_size);
    if (!unit.ok()) return unit.status().annotated(fmt::format("units[{}]", each));
    if (unit->is_root && each != 0)
      return bad_argument("units", fmt::format("units[{}] cannot be the root: the first is", each));
    made.push_back(std::move(*unit));
  }
  return made;
}

Result<int32_t> axis_size(int64_t size, const char* name) {
  if (size >= 1 && size <= kMaxWorldSize) return static_cast<int32_t>(size);
  return bad_argument("world", fmt::format("{} is {}, not 1 to {}", name, size, kMaxWorldSize));
}

Result<hsdp::EstimatedWorld> read_world(const shw_hsdp_estimate_world* given) {
  shw_hsdp_estimate_world copy;
  SHW_RETURN_IF_ERROR(read_struct(given, "world", &copy));
  hsdp::EstimatedWorld world;
  SHW_ASSIGN_OR_RETURN(world.shard_size, axis_size(copy.shard_size, "shard_size"));
  SHW_ASSIGN_OR_RETURN(world.replicate_size, axis_size(copy.replicate_size, "replicate_size"));
  world.gradients_land = (copy.flags & SHW_HSDP_ESTIMATE_ORDERED_SUMS) == 0;
  return world;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_hsdp_memory_init(shw_hsdp_memory* memory, uint32_t struct_size) noexcept {
  capi::init_struct(memory, struct_size);
}

void shw_hsdp_estimate_unit_init(shw_hsdp_estimate_unit* unit, uint32_t struct_size) noexcept {
  capi::init_struct(unit, struct_size);
}

void shw_hsdp_estimate_world_init(shw_hsdp_estimate_world* world, uint32_t struct_size) noexcept {
  capi::init_struct(world, struct_size);
}

shw_status shw_hsdp_estimate(const shw_hsdp_estimate_unit* units, uint64_t count,
                             const shw_hsdp_estimate_world* world, const shw_hsdp_options* options,
                             int32_t kind, shw_hsdp_memory* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_RETURN_IF_ERROR(capi::check_kind(kind));
    SHW_ASSIGN_OR_RETURN(const auto ranks, capi::read_world(world));
    shw_hsdp_options copy;
    SHW_RETURN_IF_ERROR(capi::read_options(options, "options", &copy));
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_hsdp_options(copy));
    SHW_ASSIGN_OR_RETURN(const auto made, capi::read_units(units, count, ranks.shard_size));
    shw_hsdp_memory memory =
        capi::memory_of(shardwright::hsdp::estimate_memory(made, chosen, ranks), kind);
    capi::write_out(memory, out);
    return {};
  });
}

shw_status shw_hsdp_stats(const shw_hsdp* hsdp, int32_t kind, shw_hsdp_memory* out,
                          shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    SHW_RETURN_IF_ERROR(capi::check_kind(kind));
    const auto stats = impl->hsdp->stats();
    shw_hsdp_memory memory = capi::memory_of(stats.memory, kind);
    if (kind == SHW_HSDP_MEMORY_ALL) {
      memory.padding_bytes = static_cast<uint64_t>(stats.padding_bytes);
      memory.unsharded_units = stats.unsharded.size();
    }
    capi::write_out(memory, out);
    return {};
  });
}

shw_status shw_hsdp_unit_stats(const shw_hsdp_unit* unit, shw_hsdp_memory* out,
                               shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(unit, "unit"));
    const auto stats = impl->owner->hsdp->stats();
    const auto found = stats.memory.by_unit.find(impl->unit->id());
    shw_hsdp_memory memory = found == stats.memory.by_unit.end()
                                 ? shw_hsdp_memory SHW_HSDP_MEMORY_INIT
                                 : capi::memory_of(found->second);
    memory.padding_bytes = static_cast<uint64_t>(impl->unit->padding_bytes());
    memory.unsharded_units = impl->unit->state() == shardwright::hsdp::UnitState::kSharded ? 0 : 1;
    capi::write_out(memory, out);
    return {};
  });
}

}  // extern "C"
