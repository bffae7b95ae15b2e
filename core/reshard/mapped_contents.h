// SPDX-License-Identifier: Apache-2.0
//
// The entries of a checkpoint of Megatron under the rules of a mapping. Rules see weights whole, as
// the checkpoint stores them; states of an optimizer follow their weights, objects of the model are
// cells of their grids. Nothing is copied: what the rules make is boxes of what is stored.
#pragma once

#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_view.h"
#include "core/state/mapping.h"

namespace shardwright::reshard {

// Without an identity. INVALID_ARGUMENT naming the rule: as Mapping::check_used and apply, and for
// two entries that give one tensor and differ in shape or dtype, or of which one has no rule.
Result<exec::ViewContents> mapped_contents(const exec::Checkpoint& source, const Mapping& mapping);

}  // namespace shardwright::reshard
