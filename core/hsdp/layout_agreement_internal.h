// SPDX-License-Identifier: Apache-2.0
//
// Ranks compare how they have laid out a unit, before anything of it travels: ranks that differ
// would gather each other's wrong bytes. Collective over the mesh; blocks.
#pragma once

#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/status.h"
#include "core/hsdp/dtype_policy.h"

namespace shardwright::hsdp::internal {

class Runtime;

struct UnitDescription {
  std::string unit;
  Status failure;                // of laying it out; the others are told
  std::vector<std::byte> bytes;  // of what must be equal

  void add(const Digest128& layout, const DTypePolicy& dtypes, bool replicated);
};

// INVALID_ARGUMENT on every rank alike, naming the unit and the lowest rank that differs from the
// first one or has failed. A failure of the transport ends the context.
Status agree_on_layout(Runtime& runtime, const UnitDescription& description);

}  // namespace shardwright::hsdp::internal
