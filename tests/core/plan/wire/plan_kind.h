// SPDX-License-Identifier: Apache-2.0
//
// The kind of a plan buffer before its meaning is looked at.
#pragma once

#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan::test {

inline Result<PlanKind> plan_kind(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const internal::OpenedPlan opened, internal::open_plan(buffer));
  return static_cast<PlanKind>(opened.body.index() + 1);
}

}  // namespace shardwright::plan::test
