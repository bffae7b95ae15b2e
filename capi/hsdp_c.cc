// SPDX-License-Identifier: Apache-2.0
//
// hsdp.h: meshes and contexts of sharded training.
#include "shardwright/hsdp.h"

#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/communicator_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/hsdp/hsdp_handles.h"
#include "capi/hsdp/hsdp_options.h"
#include "capi/hsdp/settings.h"
#include "capi/layout_spec.h"
#include "core/base/limits.h"
#include "core/hsdp/state_entries.h"
#include "shardwright/hsdp_phases.h"

namespace shardwright::capi {
namespace {

// The number as in options: 0 = the library's default, -1 = none.
Result<int32_t> depth_of(int64_t value) {
  if (value < -1 || value > INT32_MAX)
    return bad_argument("value", fmt::format("prefetch_depth is {}, not -1 or above", value));
  return prefetch_depth(static_cast<int32_t>(value));
}

Result<int32_t> inflight_of(int64_t value) {
  if (value < 0 || value > INT32_MAX)
    return bad_argument("value", fmt::format("max_inflight_reduce is {}, below 0", value));
  return max_inflight(static_cast<int32_t>(value));
}

// Keys of the context itself.
Status set_of_context(hsdp::Hsdp& context, int32_t key, int64_t value) {
  if (key == SHW_HSDP_MAX_INFLIGHT_REDUCE) {
    SHW_ASSIGN_OR_RETURN(const int32_t count, inflight_of(value));
    return context.set_max_inflight_reduce(count);
  }
  if (key == SHW_HSDP_PREFETCH_DEPTH) {
    SHW_ASSIGN_OR_RETURN(const int32_t depth, depth_of(value));
    return context.set_prefetch_depth(depth);
  }
  SHW_ASSIGN_OR_RETURN(const bool is_last, switch_value("is_last_backward", value));
  context.set_is_last_backward(is_last);
  return {};
}

int64_t context_setting(const hsdp::Hsdp& context, int32_t key) {
  if (key == SHW_HSDP_MAX_INFLIGHT_REDUCE) return context.options().max_inflight_reduce;
  if (key == SHW_HSDP_PREFETCH_DEPTH) return context.options().prefetch_depth;
  return context.is_last_backward() ? 1 : 0;
}

// In all units or none.
template <typename Value>
Status set_in_units(hsdp::Hsdp& context, int32_t key, Value value) {
  for (const bool for_good : {false, true}) {
    for (const auto& unit : context.units()) {
      hsdp::UnitSettings settings = unit->settings();
      SHW_RETURN_IF_ERROR(set_unit_setting(key, value, &settings));
      SHW_RETURN_IF_ERROR(for_good ? unit->set_settings(settings) : unit->check_settings(settings));
    }
  }
  // A key that is none is refused where there is no unit, too.
  hsdp::UnitSettings unused;
  return set_unit_setting(key, value, &unused);
}

bool is_of_context(int32_t key) {
  return key == SHW_HSDP_MAX_INFLIGHT_REDUCE || key == SHW_HSDP_PREFETCH_DEPTH ||
         key == SHW_HSDP_IS_LAST_BACKWARD;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace hsdp_ns = shardwright::hsdp;
using shardwright::Status;

extern "C" {

void shw_hsdp_options_init(shw_hsdp_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_hsdp_mesh_create(const shw_layout_spec* spec, int32_t rank, shw_hsdp_mesh** out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_layout_spec copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(spec, "spec", &copy));
    SHW_ASSIGN_OR_RETURN(auto mesh, capi::read_mesh_only(copy));
    auto impl = std::make_shared<capi::HsdpMeshImpl>();
    SHW_ASSIGN_OR_RETURN(impl->mesh, hsdp_ns::HsdpMesh::create(std::move(mesh), rank));
    *out = capi::make_handle<shw_hsdp_mesh>(std::move(impl));
    return {};
  });
}

shw_status shw_hsdp_mesh_set_communicator(shw_hsdp_mesh* mesh, int32_t axis, int32_t lane,
                                          shw_communicator* communicator,
                                          shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(mesh, "mesh"));
    SHW_ASSIGN_OR_RETURN(auto made, capi::read_communicator(communicator));
    SHW_RETURN_IF_ERROR(capi::option_in_range(lane, SHW_HSDP_LANE_SECONDARY, "lane"));
    if (lane == SHW_HSDP_LANE_SECONDARY)
      return impl->mesh->set_secondary_communicator(axis, std::move(made));
    return impl->mesh->set_communicator(axis, static_cast<hsdp_ns::CommunicatorLane>(lane),
                                        std::move(made));
  });
}

void shw_hsdp_mesh_release(shw_hsdp_mesh* mesh) noexcept {
  capi::release_handle(mesh);
}

shw_status shw_hsdp_create(shw_context* context, const shw_hsdp_options* options, shw_hsdp** out,
                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto home, capi::need(context, "context"));
    shw_hsdp_options copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(options, "options", &copy));
    SHW_ASSIGN_OR_RETURN(const auto mesh, capi::need(copy.mesh, "options.mesh"));
    SHW_ASSIGN_OR_RETURN(auto device, capi::read_device(copy.device));
    SHW_ASSIGN_OR_RETURN(const auto chosen, capi::read_hsdp_options(copy));
    auto impl = std::make_shared<capi::HsdpImpl>();
    impl->context = std::move(home);
    SHW_ASSIGN_OR_RETURN(impl->hsdp, hsdp_ns::Hsdp::create(chosen, mesh->mesh, std::move(device)));
    *out = capi::make_handle<shw_hsdp>(std::move(impl));
    return {};
  });
}

shw_status shw_hsdp_finalize_backward(shw_hsdp* hsdp, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return impl->hsdp->finalize_backward();
  });
}

shw_status shw_hsdp_step_event(shw_hsdp* hsdp, uint64_t event, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    if (event != 0)
      return shardwright::unimplemented(
                 fmt::format("event is {}: events are not waited for, wait for it and give 0",
                             event))
          .with_detail("parameter", "event");
    return impl->hsdp->step_event();
  });
}

shw_status shw_hsdp_reset(shw_hsdp* hsdp, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return impl->hsdp->reset();
  });
}

shw_status shw_hsdp_global_norm(shw_hsdp* hsdp, double p, double* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, impl->hsdp->global_norm(p));
    return {};
  });
}

shw_status shw_hsdp_scale_grads(shw_hsdp* hsdp, double factor, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return impl->hsdp->scale_gradients(factor);
  });
}

shw_status shw_hsdp_zero_grads(shw_hsdp* hsdp, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return impl->hsdp->zero_gradients();
  });
}

shw_status shw_hsdp_set_i64(shw_hsdp* hsdp, int32_t key, int64_t value, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return capi::is_of_context(key) ? capi::set_of_context(*impl->hsdp, key, value)
                                    : capi::set_in_units(*impl->hsdp, key, value);
  });
}

shw_status shw_hsdp_set_f64(shw_hsdp* hsdp, int32_t key, double value, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    return capi::set_in_units(*impl->hsdp, key, value);
  });
}

shw_status shw_hsdp_get_i64(const shw_hsdp* hsdp, int32_t key, int64_t* out,
                            shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    if (!capi::is_of_context(key))
      return capi::bad_argument("key", fmt::format("{} is no value of a context", key));
    *out = capi::context_setting(*impl->hsdp, key);
    return {};
  });
}

shw_status shw_hsdp_add_to_state(shw_hsdp* hsdp, const char* prefix, uint64_t prefix_size,
                                 int32_t what, shw_state* state, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(hsdp, "hsdp"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(prefix, prefix_size, "prefix"));
    SHW_RETURN_IF_ERROR(capi::option_in_range(what, SHW_HSDP_GRADS, "what"));
    SHW_ASSIGN_OR_RETURN(const auto target, capi::need(state, "state"));
    target->state->add_keepalive(impl);
    return hsdp_ns::add_to_state(*impl->hsdp, text, static_cast<hsdp_ns::StateContent>(what),
                                 target->state.get());
  });
}

void shw_hsdp_release(shw_hsdp* hsdp) noexcept {
  capi::release_handle(hsdp);
}

}  // extern "C"
