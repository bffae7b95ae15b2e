// SPDX-License-Identifier: Apache-2.0
//
// The doors of a plan buffer, then both parts as the bytes that they are.
#include "core/plan/wire/symbolic_local_view.h"

#include <utility>

#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {

Result<SymbolicLocalView> view_symbolic_local(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(internal::OpenedPlan opened, internal::open_plan(buffer));
  if (opened.kind != PlanKind::kSymbolicLocal) {
    return invalid_argument("the plan buffer holds no symbolic local plan")
        .with_detail("expected", "symbolic local plan");
  }
  const wire::SymbolicLocal& body = *opened.root->symbolic_local();
  SymbolicLocalView view;
  view.description = internal::bytes_of_column(body.description());
  view.part = internal::bytes_of_column(body.part());
  view.aligned = std::move(opened.aligned);  // keeps its address
  return view;
}

}  // namespace shardwright::plan
