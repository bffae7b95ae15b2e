// SPDX-License-Identifier: Apache-2.0
//
// shw_describe_options as rules of the core. What is borrowed lives as long as the options. Pure,
// any thread.
#pragma once

#include "core/base/result.h"
#include "core/plan/describe/describe_entries.h"
#include "shardwright/planning.h"

namespace shardwright::capi {

// options has our size. Failures name the option; `kind` is the caller's to read.
Result<plan::DescribeRules> read_describe_rules(const shw_describe_options& options);

}  // namespace shardwright::capi
