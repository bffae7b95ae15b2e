// SPDX-License-Identifier: Apache-2.0
//
// Plan buffers to plans: all checks, the first finding is the failure.
#include <type_traits>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/plan/digest.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {
namespace {

using internal::OpenedPlan;

std::string_view kind_name(PlanKind kind) {
  switch (kind) {
    case PlanKind::kLocalSave:
      return "local save plan";
    case PlanKind::kWriteList:
      return "write list";
    case PlanKind::kLoad:
      return "load plan";
    case PlanKind::kWriteResult:
      return "write result";
    case PlanKind::kMergedSave:
      return "merged save plan";
    case PlanKind::kDescription:
      return "description";
    case PlanKind::kLocalPart:
      return "part of a local plan";
  }
  return "unknown plan";
}

// visit(body) of the body that the buffer has.
template <typename Visit>
auto visit_body(const OpenedPlan& opened, const Visit& visit) {
  const wire::PlanBuffer& root = *opened.root;
  switch (opened.kind) {
    case PlanKind::kLocalSave:
      return visit(root.local_save());
    case PlanKind::kWriteList:
      return visit(root.write_list());
    case PlanKind::kLoad:
      return visit(root.load());
    case PlanKind::kWriteResult:
      return visit(root.write_result());
    case PlanKind::kMergedSave:
      return visit(root.merged_save());
    case PlanKind::kDescription:
      return visit(root.description());
    case PlanKind::kLocalPart:
      break;
  }
  return visit(root.local_part());
}

template <typename Plan>
Result<Plan> decode_body(const OpenedPlan& opened, const auto* body,
                         std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(Plan plan, internal::copy_body(body));
  const std::vector<std::string> findings = internal::findings_of(plan, 1);
  if (!findings.empty())
    return data_loss(fmt::format("the {} is damaged: {}", kind_name(opened.kind), findings[0]));
  if constexpr (std::is_same_v<Plan, Description>) plan.digest = content_digest(buffer);
  return plan;
}

// body: the accessor of the one that the kind names.
template <typename Plan, typename Body>
Result<Plan> decode(std::span<const std::byte> buffer, PlanKind kind,
                    const Body* (wire::PlanBuffer::*body)() const) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, internal::open_plan(buffer));
  if (opened.kind == kind) return decode_body<Plan>(opened, (opened.root->*body)(), buffer);
  return invalid_argument(fmt::format("the plan buffer holds a {}, not a {}",
                                      kind_name(opened.kind), kind_name(kind)))
      .with_detail("expected", kind_name(kind))
      .with_detail("found", kind_name(opened.kind));
}

}  // namespace

Result<LocalPlan> decode_local_save(std::span<const std::byte> buffer) {
  return decode<LocalPlan>(buffer, PlanKind::kLocalSave, &wire::PlanBuffer::local_save);
}

Result<WriteList> decode_write_list(std::span<const std::byte> buffer) {
  return decode<WriteList>(buffer, PlanKind::kWriteList, &wire::PlanBuffer::write_list);
}

Result<LoadPlan> decode_load(std::span<const std::byte> buffer) {
  return decode<LoadPlan>(buffer, PlanKind::kLoad, &wire::PlanBuffer::load);
}

Result<WriteResult> decode_write_result(std::span<const std::byte> buffer) {
  return decode<WriteResult>(buffer, PlanKind::kWriteResult, &wire::PlanBuffer::write_result);
}

Result<GlobalSavePlan> decode_merged_save(std::span<const std::byte> buffer) {
  return decode<GlobalSavePlan>(buffer, PlanKind::kMergedSave, &wire::PlanBuffer::merged_save);
}

Result<Description> decode_description(std::span<const std::byte> buffer) {
  return decode<Description>(buffer, PlanKind::kDescription, &wire::PlanBuffer::description);
}

Result<LocalPart> decode_local_part(std::span<const std::byte> buffer) {
  return decode<LocalPart>(buffer, PlanKind::kLocalPart, &wire::PlanBuffer::local_part);
}

Result<AnyPlan> decode_plan(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, internal::open_plan(buffer));
  AnyPlan any;
  SHW_RETURN_IF_ERROR(visit_body(opened, [&](const auto* body) -> Status {
    using Plan = std::remove_cvref_t<decltype(*internal::copy_body(body))>;
    SHW_ASSIGN_OR_RETURN(any.emplace<Plan>(), decode_body<Plan>(opened, body, buffer));
    return {};
  }));
  return any;
}

std::vector<std::string> validate_plan(std::span<const std::byte> buffer) {
  const Result<OpenedPlan> opened = internal::open_plan(buffer);
  if (!opened.ok()) return {std::string(opened.status().message())};
  return visit_body(*opened, [](const auto* body) -> std::vector<std::string> {
    const auto plan = internal::copy_body(body);
    if (!plan.ok()) return {std::string(plan.status().message())};
    return internal::findings_of(*plan, static_cast<size_t>(kMaxFindings));
  });
}

}  // namespace shardwright::plan
