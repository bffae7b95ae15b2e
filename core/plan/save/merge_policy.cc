// SPDX-License-Identifier: Apache-2.0
//
// The table of merge_policy.h.
#include "core/plan/save/merge_policy.h"

namespace shardwright::plan {
namespace {

using Choice = MergePolicy::Choice;

MergePolicy policy_of(Preset preset) {
  MergePolicy policy;
  switch (preset) {
    case Preset::kStandard:
      policy.choice = Choice::kSinglesThenListed;
      policy.weight = MergePolicy::Weight::kChunkBytesOrOne;
      policy.objects_weigh_one = true;
      policy.numbering = MergePolicy::Numbering::kAsKept;
      break;
    case Preset::kDefault:
      policy.choice = Choice::kListed;
      policy.weight = MergePolicy::Weight::kTensorBytesOrOne;
      policy.objects_weigh_one = true;
      policy.tie = MergePolicy::Tie::kSetOrder;
      policy.numbering = MergePolicy::Numbering::kAsKept;
      policy.key_has_sizes = false;
      policy.twice_on_rank = true;
      break;
    case Preset::kMegatron:
      policy.choice = Choice::kGreedy;
      policy.keep_empty = false;
      break;
  }
  return policy;
}

}  // namespace

MergePolicy merge_policy(Preset preset, OwnerRule owner) {
  MergePolicy policy = policy_of(preset);
  switch (owner) {
    case OwnerRule::kBalanced:
      policy.choice = Choice::kBalanced;
      policy.weight = MergePolicy::Weight::kChunkBytes;
      policy.objects_weigh_one = false;
      policy.tie = MergePolicy::Tie::kLowestRank;
      policy.numbering = MergePolicy::Numbering::kRowMajor;
      policy.key_has_sizes = true;
      policy.twice_on_rank = false;
      policy.keep_empty = preset == Preset::kDefault;
      break;
    case OwnerRule::kLowestRank:
      policy.choice = Choice::kLowestRank;
      break;
    case OwnerRule::kExact:
      break;
    case OwnerRule::kAll:
      policy.choice = Choice::kAll;
      policy.numbering = MergePolicy::Numbering::kAsKept;
      policy.key_has_sizes = true;
      break;
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
