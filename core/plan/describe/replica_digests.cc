// SPDX-License-Identifier: Apache-2.0
//
#include "core/plan/describe/replica_digests.h"

#include "core/base/limits.h"
#include "core/plan/describe/entry_kind.h"

namespace shardwright::plan {
namespace {

// A layout that replicates makes entries that are sharded by name and whole on every rank.
bool is_small_replica(const TensorRef& entry, EntryKind kind) {
  if (kind != EntryKind::kReplicated && !covers_whole(entry)) return false;
  const Result<uint64_t> bytes =
      dtype_packed_bytes(entry.local.dtype, element_count_of(entry.global_shape));
  return bytes.ok() && *bytes <= kReplicaDigestLimitBytes;
}

}  // namespace

DigestNeeds replica_digest_needs(const State& state, const SaveRules& rules) {
  DigestNeeds needs;
  if (rules.verify_replicas == VerifyReplicas::kOff) return needs;
  for (size_t t = 0; t < state.tensors().size(); ++t) {
    const TensorRef entry = state.tensors()[t];
    const EntryKind kind =
        internal::tensor_kind(rules.kinds, entry.name, entry.kind, covers_whole(entry));
    if (kind == EntryKind::kRankLocal) continue;
    if (rules.verify_replicas == VerifyReplicas::kAll || is_small_replica(entry, kind))
      needs.tensors.push_back({t, kind == EntryKind::kSharded});
  }
  for (size_t i = 0; i < state.objects().size(); ++i) {
    const ObjectEntry& entry = state.objects()[i];
    if (internal::object_kind(rules.kinds, entry.name, entry.kind) == EntryKind::kReplicated)
      needs.objects.push_back(i);
  }
  return needs;
}

ReplicaDigests replica_digests_of(const LocalPlan& plan) {
  ReplicaDigests digests;
  digests.objects = plan.description.object_digests;
  digests.tensors = plan.description.tensor_digests;
  if (plan.part.digest_tensors.empty()) return digests;
  digests.tensors.resize(plan.description.forms.size());
  for (size_t i = 0; i < plan.part.digest_tensors.size(); ++i)
    digests.tensors[plan.part.digest_tensors[i]] = plan.part.tensor_digests[i];
  return digests;
}

}  // namespace shardwright::plan
