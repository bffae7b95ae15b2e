// SPDX-License-Identifier: Apache-2.0
//
// The side groups of this process, by the name of the host's process group and by their use.
// Thread-safe.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/collective/c10d/c10d_collective.h"
#include "core/collective/c10d/side_group_internal.h"

namespace shardwright::collective::internal {

// Collective unless one is kept that has not ended. Exceptions of torch are failures.
Result<std::shared_ptr<SideGroup>> side_group_for(const GroupRequest& request);

}  // namespace shardwright::collective::internal
