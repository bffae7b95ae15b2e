// SPDX-License-Identifier: Apache-2.0
//
// The order in which a Python set of small integers is walked, which decides ties in torch 2.15
// (dedup_save_plans takes the first minimum of a set). CPython 3.8 to 3.14, Objects/setobject.c:
// open addressing with short linear probes. Pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::plan::internal {

// Values in the order of a set into which they were put in the given order; no value twice.
std::vector<uint32_t> python_set_order(std::span<const uint32_t> values);

}  // namespace shardwright::plan::internal
