// SPDX-License-Identifier: Apache-2.0
//
// States made of other states: as a mapping stores them, and without what other ranks save. They
// share the memory of the tensors and keep the state alive that they were made of. No element is
// copied; objects are.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/state/mapping.h"
#include "core/state/state.h"

namespace shardwright {

// The boxes of each stored tensor, from whichever entries they come, are one entry, in the order in
// which the state has them. Padding that is left out is set to zero by loads into the state; such
// as entries do not have is zeros that the state owns. Entries that no rule matches pass as they
// are, with paths and layouts; objects are entries of no axes, and an inserted axis makes them
// cells of a grid (object_key.h). The failures of Mapping::apply and check_used; INVALID_ARGUMENT
// naming both entries that give one tensor and differ in dtype, shape, kind, device or in who saves
// them; ALREADY_EXISTS for a name that an entry and a tensor of the mapping share.
Result<std::shared_ptr<State>> map_state(const std::shared_ptr<const State>& from,
                                         const Mapping& mapping);

// The state itself when it has no replicas.
Result<std::shared_ptr<const State>> without_replicas(const std::shared_ptr<const State>& from);

}  // namespace shardwright
