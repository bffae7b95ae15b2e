// SPDX-License-Identifier: Apache-2.0
//
// The table of merge_policy.h.
#include "core/plan/save/merge_policy.h"

#include "core/plan/save/set_order_internal.h"

namespace shardwright::plan {

MergePolicy merge_policy(Preset preset, OwnerRule owner) {
  using Choice = MergePolicy::Choice;
  MergePolicy policy;
  policy.keep_empty = preset == Preset::kTorch ||
                      (preset == Preset::kHyperparallel && owner != OwnerRule::kBalanced);
  if (owner == OwnerRule::kBalanced) return policy;
  switch (preset) {
    case Preset::kNative:
      break;
    case Preset::kHyperparallel:
      policy.choice = Choice::kSinglesThenListed;
      policy.weight = MergePolicy::Weight::kChunkBytesOrOne;
      policy.numbering = MergePolicy::Numbering::kAsKept;
      break;
    case Preset::kTorch:
      policy.choice = Choice::kListed;
      policy.weight = MergePolicy::Weight::kTensorBytesOrOne;
      policy.tie_order = internal::python_set_order;
      policy.numbering = MergePolicy::Numbering::kAsKept;
      policy.key_has_sizes = false;
      policy.twice_on_rank = true;
      break;
    case Preset::kMegatron:
      policy.choice = Choice::kGreedy;
      break;
  }
  if (owner == OwnerRule::kLowestRank) policy.choice = Choice::kLowestRank;
  if (owner == OwnerRule::kAll) {
    policy.choice = Choice::kAll;
    policy.numbering = MergePolicy::Numbering::kAsKept;
    policy.key_has_sizes = true;
  }
  return policy;
}

Result<MergePolicy> native_policy(Preset preset, OwnerRule owner) {
  if (owner == OwnerRule::kAll) {
    return invalid_argument(
               "owner 'all' keeps every replica as a chunk of its own, which a save cannot store")
        .with_detail("parameter", "owner");
  }
  MergePolicy policy = merge_policy(preset, owner);
  policy.described = false;
  policy.numbering = MergePolicy::Numbering::kRowMajor;
  policy.key_has_sizes = true;
  policy.twice_on_rank = false;
  policy.keep_empty = false;
  return policy;
}

}  // namespace shardwright::plan
