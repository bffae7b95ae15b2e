// SPDX-License-Identifier: Apache-2.0
//
// The steps of one rule: their checks without an entry, and what they make of one. The boxes that
// are under way know of which part of the entry they are.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/state/mapping.h"
#include "core/state/name_pattern.h"

namespace shardwright::internal {

struct CompiledStep {
  MappingStep step;
  NameForm form;  // of the steps that have one
};

// INVALID_ARGUMENT "split.count: ...", without the rule.
Result<CompiledStep> compile_step(const MappingStep& step, const NamePattern& pattern);

struct MovingBox {
  std::string name;
  std::string suffix;
  MappedBox mapped;
};

// Replaces each box by what the step makes of it. Failures as compile_step.
Status apply_step(const CompiledStep& step, const Captures& captures,
                  std::vector<MovingBox>* boxes);

// "split", "concat", ...: the member of a rule's steps.
std::string_view step_name(const MappingStep& step);

}  // namespace shardwright::internal
