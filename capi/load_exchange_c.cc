// SPDX-License-Identifier: Apache-2.0
//
// load_exchange.h: exchanges of a load that a host carries out over the load of the core.
#include "shardwright/load_exchange.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "capi/plan_handle.h"
#include "core/base/limits.h"
#include "core/exec/planned_load.h"
#include "core/plan/load/exchange_routes.h"

namespace shardwright::capi {
namespace {

struct ReleasePlan {
  void operator()(shw_plan* plan) const { release_handle(plan); }
};

exec::PlannedInput input_of(const LoadPlannerImpl& planner, const plan::LoadPlan& load_plan) {
  return {planner.runtime.get(), *planner.checkpoint->checkpoint, load_plan, *planner.state,
          planner.options};
}

Result<plan::LoadPlan> load_plan_of(const shw_plan* given) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(given, "load_plan"));
  return plan::decode<plan::LoadPlan>(impl->bytes);
}

Result<std::vector<plan::WantList>> read_want_lists(const shw_plan* const* want_lists,
                                                    uint64_t count) {
  SHW_ASSIGN_OR_RETURN(const auto list, list_argument(want_lists, count, "want_lists"));
  if (list.empty() || list.size() > static_cast<uint64_t>(kMaxWorldSize)) {
    return bad_argument(
        "want_lists", fmt::format("{} ranks are not between 1 and {}", list.size(), kMaxWorldSize));
  }
  std::vector<plan::WantList> wants;
  wants.reserve(list.size());
  for (const shw_plan* each : list) {
    SHW_ASSIGN_OR_RETURN(const auto impl, need(each, "want_lists"));
    SHW_ASSIGN_OR_RETURN(auto decoded, plan::decode<plan::WantList>(impl->bytes));
    wants.push_back(std::move(decoded));
  }
  return wants;
}

shw_exchange_round round_of(const exec::PlannedLoad::Round& round) {
  shw_exchange_round made = SHW_EXCHANGE_ROUND_INIT;
  made.rank_count = round.outgoing_sizes.size();
  made.outgoing = round.outgoing.data();
  made.outgoing_size = round.outgoing.size();
  made.outgoing_sizes = round.outgoing_sizes.data();
  made.incoming = round.incoming.data();
  made.incoming_size = round.incoming.size();
  made.incoming_sizes = round.incoming_sizes.data();
  return made;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

void shw_exchange_round_init(shw_exchange_round* round, uint32_t struct_size) noexcept {
  capi::init_struct(round, struct_size);
}

shw_status shw_load_planner_want_list(shw_load_planner* planner, const shw_plan* load_plan,
                                      int32_t world_size, shw_plan** out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(planner, "planner"));
    SHW_ASSIGN_OR_RETURN(const auto decoded, capi::load_plan_of(load_plan));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    if (world_size > shardwright::kMaxWorldSize) {
      return capi::bad_argument(
          "world_size", fmt::format("{} is above {}", world_size, shardwright::kMaxWorldSize));
    }
    const auto call = capi::call_context(impl->options.deadline_ns, impl->cancellation.get());
    SHW_ASSIGN_OR_RETURN(const auto wants,
                         exec::want_list(capi::input_of(*impl, decoded), world_size, call));
    SHW_ASSIGN_OR_RETURN(auto bytes, plan::encode(wants));
    SHW_ASSIGN_OR_RETURN(*out, capi::plan_of(std::move(bytes)));
    return {};
  });
}

shw_status shw_exchange_plans(const shw_plan* const* want_lists, uint64_t count, shw_plan** plans,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(want_lists, "want_lists"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plans, "plans"));
    SHW_ASSIGN_OR_RETURN(const auto wants, capi::read_want_lists(want_lists, count));
    SHW_ASSIGN_OR_RETURN(const auto exchanges, plan::make_exchange_plans(wants));
    std::vector<std::unique_ptr<shw_plan, capi::ReleasePlan>> made;
    made.reserve(exchanges.size());
    for (const plan::ExchangePlan& each : exchanges) {
      SHW_ASSIGN_OR_RETURN(auto bytes, plan::encode(each));
      SHW_ASSIGN_OR_RETURN(shw_plan* const handle, capi::plan_of(std::move(bytes)));
      made.emplace_back(handle);
    }
    std::ranges::transform(made, plans, [](auto& each) { return each.release(); });
    return {};
  });
}

shw_status shw_load_exchange_create(shw_load_planner* planner, const shw_plan* load_plan,
                                    const shw_plan* exchange_plan, shw_load_exchange** out,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    auto impl = std::make_shared<capi::LoadExchangeImpl>();
    SHW_ASSIGN_OR_RETURN(impl->planner, capi::need(planner, "planner"));
    SHW_ASSIGN_OR_RETURN(impl->plan, capi::load_plan_of(load_plan));
    SHW_ASSIGN_OR_RETURN(const auto given, capi::need(exchange_plan, "exchange_plan"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto exchange, plan::decode<plan::ExchangePlan>(given->bytes));
    const capi::LoadPlannerImpl& kept = *impl->planner;
    impl->call = capi::call_context(kept.options.deadline_ns, kept.cancellation.get());
    SHW_ASSIGN_OR_RETURN(impl->load, exec::PlannedLoad::create(capi::input_of(kept, impl->plan),
                                                               exchange, impl->call));
    *out = capi::make_handle<shw_load_exchange>(std::move(impl));
    return {};
  });
}

uint64_t shw_load_exchange_round_count(const shw_load_exchange* exchange) noexcept {
  const auto* impl = capi::peek(exchange);
  return impl == nullptr ? 0 : impl->load->rounds();
}

shw_status shw_load_exchange_begin_round(shw_load_exchange* exchange, shw_exchange_round* out,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(exchange, "exchange"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto round, impl->load->begin_round());
    capi::write_out(capi::round_of(round), out);
    return {};
  });
}

shw_status shw_load_exchange_end_round(shw_load_exchange* exchange, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(exchange, "exchange"));
    return impl->load->finish_round();
  });
}

shw_status shw_load_exchange_finish(shw_load_exchange* exchange, shw_report** out,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(exchange, "exchange"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto report, impl->load->finish());
    *out = capi::report_of(std::move(report));
    return {};
  });
}

void shw_load_exchange_release(shw_load_exchange* exchange) noexcept {
  capi::release_handle(exchange);
}

}  // extern "C"
