// SPDX-License-Identifier: Apache-2.0
//
// plan.h: plan buffers, checked by the core's checks before anything is read from them.
#include "shardwright/plan.h"

#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/plan_handle.h"

namespace shardwright::capi {
namespace {

shw_plan_item item_of(const plan::WriteItem& item) {
  shw_plan_item made = SHW_PLAN_ITEM_INIT;
  const bool object = item.piece == plan::kObjectPiece;
  made.flags = object ? SHW_PLAN_ITEM_OBJECT : 0;
  made.entry = item.entry;
  made.piece = object ? 0 : item.piece;
  made.byte_size = item.size_bytes;
  return made;
}

void add(const plan::WriteList& list, PlanImpl* impl) {
  impl->rank = list.rank;
  for (const plan::WriteItem& item : list.items) impl->items.push_back(item_of(item));
}

void add(const plan::LoadPlan& load, PlanImpl* impl) {
  impl->rank = load.rank;
  for (size_t i = 0; i < load.reads.size(); ++i) {
    const plan::ReadKey& read = load.reads.key(i);
    shw_plan_item item = SHW_PLAN_ITEM_INIT;
    item.entry = read.entry;
    item.piece = read.piece;
    item.chunk = read.chunk;
    impl->items.push_back(item);
  }
  for (const plan::ObjectRead& read : load.objects) {
    shw_plan_item item = SHW_PLAN_ITEM_INIT;
    item.flags = SHW_PLAN_ITEM_OBJECT;
    item.entry = read.entry;
    item.chunk = read.object;
    impl->items.push_back(item);
  }
}

void add(plan::LocalPlan local, PlanImpl* impl) {
  impl->rank = local.part.rank;
  impl->local = std::move(local);
}

void add(const plan::WriteResult& result, PlanImpl* impl) {
  impl->rank = result.rank;
}

void add(const plan::WantList& list, PlanImpl* impl) {
  impl->rank = list.rank;
}

void add(const plan::ExchangePlan& exchange, PlanImpl* impl) {
  impl->rank = exchange.rank;
}

void add(plan::GlobalSavePlan merged, PlanImpl* impl) {
  impl->merged = std::move(merged);
}

void add(const plan::LocalPart& part, PlanImpl* impl) {
  impl->rank = part.rank;
}

void add(const plan::Description&, PlanImpl*) {}

// The alternatives stand in the order of the kinds.
plan::PlanKind kind_of(const plan::AnyPlan& plan) {
  return static_cast<plan::PlanKind>(plan.index() + 1);
}
static_assert(
    std::is_same_v<plan::ExchangePlan,
                   std::variant_alternative_t<static_cast<size_t>(plan::PlanKind::kExchange) - 1,
                                              plan::AnyPlan>>);

}  // namespace

Result<shw_plan*> plan_of(plan::Bytes bytes) {
  auto impl = std::make_shared<PlanImpl>();
  impl->bytes = std::move(bytes);
  SHW_ASSIGN_OR_RETURN(plan::AnyPlan plan, plan::decode_plan(impl->bytes));
  impl->kind = kind_of(plan);
  std::visit([&](auto&& any) { add(std::forward<decltype(any)>(any), impl.get()); },
             std::move(plan));
  return make_handle<shw_plan>(std::move(impl));
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

void shw_plan_item_init(shw_plan_item* item, uint32_t struct_size) noexcept {
  capi::init_struct(item, struct_size);
}

shw_status shw_plan_validate(const void* data, uint64_t size, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    return plan::decode_plan(bytes).status();
  });
}

shw_status shw_plan_findings(const void* data, uint64_t size, shw_buffer** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    const auto findings = plan::validate_plan(bytes);
    const std::vector<std::string_view> parts(findings.begin(), findings.end());
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(parts));
    return {};
  });
}

shw_status shw_plan_create(const void* data, uint64_t size, shw_plan** out,
                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    SHW_ASSIGN_OR_RETURN(*out, capi::plan_of({bytes.begin(), bytes.end()}));
    return {};
  });
}

int32_t shw_plan_kind(const shw_plan* plan) noexcept {
  const auto* impl = capi::peek(plan);
  return impl == nullptr ? 0 : static_cast<int32_t>(impl->kind);
}

int32_t shw_plan_rank(const shw_plan* plan) noexcept {
  const auto* impl = capi::peek(plan);
  return impl == nullptr ? 0 : impl->rank;
}

const void* shw_plan_data(const shw_plan* plan) noexcept {
  const auto* impl = capi::peek(plan);
  return impl == nullptr ? nullptr : impl->bytes.data();
}

uint64_t shw_plan_size(const shw_plan* plan) noexcept {
  const auto* impl = capi::peek(plan);
  return impl == nullptr ? 0 : impl->bytes.size();
}

uint64_t shw_plan_item_count(const shw_plan* plan) noexcept {
  const auto* impl = capi::peek(plan);
  return impl == nullptr ? 0 : impl->items.size();
}

shw_status shw_plan_item_at(const shw_plan* plan, uint64_t index, shw_plan_item* out,
                            shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    if (index >= impl->items.size()) {
      return shardwright::out_of_range(
          fmt::format("the plan has {} items, there is no number {}", impl->items.size(), index));
    }
    capi::write_out(impl->items[index], out);
    return {};
  });
}

shw_status shw_plan_json(const shw_plan* plan, uint64_t item_limit, shw_buffer** out,
                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, shardwright::plan::plan_json(impl->bytes, item_limit));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(text)));
    return {};
  });
}

void shw_plan_release(shw_plan* plan) noexcept {
  capi::release_handle(plan);
}

}  // extern "C"
