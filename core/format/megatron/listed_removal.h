// SPDX-License-Identifier: Apache-2.0
//
// integrity.json beside entries that are removed: it is taken away before an index changes that it
// lists, and comes back when all is done, with what is true then. Thread rule of the storage.
#pragma once

#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/entry_removal.h"

namespace shardwright::format::megatron {

// Steps of a removal at a location, which outlives them; they do nothing where there is no
// integrity.json. One that is damaged fails the removal before anything changes.
torch_dcp::AroundRemoval listed_digests_of_removal(const Location& location);

}  // namespace shardwright::format::megatron
