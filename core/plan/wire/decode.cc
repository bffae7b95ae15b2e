// SPDX-License-Identifier: Apache-2.0
//
// Plan buffers to plans: all checks, the first finding is the failure.
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
    case PlanKind::kKeptSave:
      return "kept save plan";
    case PlanKind::kDescription:
      return "description";
    case PlanKind::kLocalPart:
      return "part of a local plan";
  }
  return "unknown plan";
}

Result<OpenedPlan> open_kind(std::span<const std::byte> buffer, PlanKind wanted) {
  SHW_ASSIGN_OR_RETURN(OpenedPlan opened, internal::open_plan(buffer));
  if (opened.kind == wanted) return opened;
  return invalid_argument(fmt::format("the plan buffer holds a {}, not a {}",
                                      kind_name(opened.kind), kind_name(wanted)))
      .with_detail("expected", kind_name(wanted))
      .with_detail("found", kind_name(opened.kind));
}

Status first_finding(const std::vector<std::string>& findings, PlanKind kind) {
  if (findings.empty()) return {};
  return data_loss(fmt::format("the {} is damaged: {}", kind_name(kind), findings[0]));
}

// Findings of one body, or the reason why it could not be copied.
template <typename Copied, typename FindingsOf>
std::vector<std::string> findings_of(const Copied& copied, const FindingsOf& findings) {
  if (!copied.ok()) return {std::string(copied.status().message())};
  return findings(*copied, static_cast<size_t>(kMaxFindings));
}

}  // namespace

Result<LocalPlan> decode_local_save(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kLocalSave));
  SHW_ASSIGN_OR_RETURN(LocalPlan plan, internal::copy_local_save(opened.root->local_save()));
  SHW_RETURN_IF_ERROR(first_finding(internal::local_save_findings(plan, 1), opened.kind));
  return plan;
}

Result<LocalPlan> decode_kept_save(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kKeptSave));
  SHW_ASSIGN_OR_RETURN(LocalPlan plan, internal::copy_local_save(opened.root->kept_save()));
  plan.kept = true;
  SHW_RETURN_IF_ERROR(first_finding(internal::local_save_findings(plan, 1), opened.kind));
  return plan;
}

Result<WriteList> decode_write_list(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kWriteList));
  SHW_ASSIGN_OR_RETURN(WriteList list, internal::copy_write_list(opened.root->write_list()));
  SHW_RETURN_IF_ERROR(first_finding(internal::write_list_findings(list, 1), opened.kind));
  return list;
}

Result<LoadPlan> decode_load(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kLoad));
  SHW_ASSIGN_OR_RETURN(LoadPlan plan, internal::copy_load(opened.root->load()));
  SHW_RETURN_IF_ERROR(first_finding(internal::load_findings(plan, 1), opened.kind));
  return plan;
}

Result<WriteResult> decode_write_result(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kWriteResult));
  SHW_ASSIGN_OR_RETURN(WriteResult result,
                       internal::copy_write_result(opened.root->write_result()));
  SHW_RETURN_IF_ERROR(first_finding(internal::write_result_findings(result, 1), opened.kind));
  return result;
}

Result<GlobalSavePlan> decode_merged_save(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kMergedSave));
  SHW_ASSIGN_OR_RETURN(GlobalSavePlan plan, internal::copy_merged_save(opened.root->merged_save()));
  SHW_RETURN_IF_ERROR(first_finding(internal::merged_save_findings(plan, 1), opened.kind));
  return plan;
}

Result<Description> decode_description(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kDescription));
  SHW_ASSIGN_OR_RETURN(Description description,
                       internal::copy_description(opened.root->description()));
  SHW_RETURN_IF_ERROR(first_finding(description_findings(description, 1), opened.kind));
  description.digest = content_digest(buffer);
  return description;
}

Result<LocalPart> decode_local_part(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, open_kind(buffer, PlanKind::kLocalPart));
  LocalPart part = internal::copy_part(opened.root->local_part());
  SHW_RETURN_IF_ERROR(first_finding(part_findings(view_of(part), nullptr, false, 1), opened.kind));
  return part;
}

std::vector<std::string> validate_plan(std::span<const std::byte> buffer) {
  const Result<OpenedPlan> opened = internal::open_plan(buffer);
  if (!opened.ok()) return {std::string(opened.status().message())};
  const wire::PlanBuffer& root = *opened->root;
  switch (opened->kind) {
    case PlanKind::kLocalSave:
      return findings_of(internal::copy_local_save(root.local_save()),
                         internal::local_save_findings);
    case PlanKind::kWriteList:
      return findings_of(internal::copy_write_list(root.write_list()),
                         internal::write_list_findings);
    case PlanKind::kLoad:
      return findings_of(internal::copy_load(root.load()), internal::load_findings);
    case PlanKind::kWriteResult:
      return findings_of(internal::copy_write_result(root.write_result()),
                         internal::write_result_findings);
    case PlanKind::kMergedSave:
      return findings_of(internal::copy_merged_save(root.merged_save()),
                         internal::merged_save_findings);
    case PlanKind::kKeptSave: {
      Result<LocalPlan> kept = internal::copy_local_save(root.kept_save());
      if (kept.ok()) kept->kept = true;
      return findings_of(kept, internal::local_save_findings);
    }
    case PlanKind::kDescription:
      return findings_of(internal::copy_description(root.description()), description_findings);
    case PlanKind::kLocalPart:
      return part_findings(view_of(internal::copy_part(root.local_part())), nullptr, false,
                           static_cast<size_t>(kMaxFindings));
  }
  return {"the plan buffer has an unknown kind"};
}

}  // namespace shardwright::plan
