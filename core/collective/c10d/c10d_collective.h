// SPDX-License-Identifier: Apache-2.0
//
// The collective over process groups of PyTorch (c10d), which are found by their name. It runs over
// side groups of its own, in host memory over Gloo; where a group has no Gloo, over its own backend
// and device. Part of the plugin for torch, never of the library: whoever links it links libtorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/collective/collective.h"

namespace shardwright::collective {

struct GroupRequest {
  std::string name;           // under which the process group is registered
  std::string use = "calls";  // groups of different uses may be used at a time
  std::string gloo;  // a registered group with a Gloo backend to make more of; may be empty
  bool keep = true;  // for the next collective of that group and use; else it ends with this one
  int64_t limit_ms = 1'800'000;  // of each operation, also of those with a longer limit
  // How often a rank in a call asks for a failure of the others; between calls every third time.
  int64_t poll_ms = 500;
};

// Collective where the side group has to be made: for the first call, and after a failure.
// NOT_FOUND for an unknown name, FAILED_PRECONDITION for a group that has no store or no backend to
// make more of, DEADLINE_EXCEEDED where ranks did not come, UNAVAILABLE where the store fails.
Result<std::unique_ptr<Collective>> make_c10d_collective(const GroupRequest& request);

// Lets go of the side groups that are kept and have no collective.
void release_side_groups() noexcept;

}  // namespace shardwright::collective
