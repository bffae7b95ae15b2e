// SPDX-License-Identifier: Apache-2.0
//
// Step 1: a rank's state as a catalog.
#include "core/plan/save/local_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/digest.h"
#include "core/plan/save/entry_kind_internal.h"
#include "core/plan/save/merge_policy.h"
#include "core/plan/save_plan.h"
#include "core/plan/tensor_appender_internal.h"

namespace shardwright::plan {
namespace {

Status check_arguments(const State& state, const SaveRules& rules, RankPosition position,
                       const ReplicaDigests& digests) {
  if (position.world_size < 1 || position.world_size > kMaxWorldSize || position.rank < 0 ||
      position.rank >= position.world_size) {
    return invalid_argument(fmt::format("rank {} of {} is not a position among 1 to {} ranks",
                                        position.rank, position.world_size, kMaxWorldSize))
        .with_detail("rank", std::to_string(position.rank));
  }
  SHW_RETURN_IF_ERROR(native_policy(rules.preset, rules.owner).status());
  if ((!digests.tensors.empty() && digests.tensors.size() != state.tensors().size()) ||
      (!digests.objects.empty() && digests.objects.size() != state.objects().size())) {
    return invalid_argument(fmt::format(
        "{} tensor and {} object digests for {} tensors and {} objects", digests.tensors.size(),
        digests.objects.size(), state.tensors().size(), state.objects().size()));
  }
  return {};
}

void reserve(const State& state, Catalog* catalog) {
  size_t bytes = 0;
  size_t extents = 0;
  size_t pieces = 0;
  for (const TensorRef entry : state.tensors()) {
    bytes += entry.name.size() + entry.path.size();
    extents += entry.global_shape.size();
    pieces += entry.pieces.size();
  }
  for (const ObjectEntry& entry : state.objects())
    bytes += entry.name.size() + entry.path.size() + 32;
  catalog->texts.reserve(2 * state.tensors().size() + 3 * state.objects().size(), bytes);
  catalog->shapes.reserve(extents);
  catalog->tensors.reserve(state.tensors().size());
  catalog->boxes.reserve(pieces);
  catalog->objects.reserve(state.objects().size());
}

// Space that keeps its capacity from tensor to tensor.
struct Scratch {
  std::vector<Box> boxes;
  std::vector<internal::BoxReference> references;
};

// The boxes of the entry that hold an element.
void collect_boxes(const TensorRef& entry, Scratch* scratch) {
  scratch->boxes.clear();
  scratch->references.clear();
  scratch->boxes.reserve(entry.pieces.size());  // no box moves once it is referred to
  for (size_t p = 0; p < entry.pieces.size(); ++p) {
    if (element_count_of(entry.pieces.sizes(p)) == 0) continue;
    scratch->boxes.push_back(entry.pieces[p].box);
    scratch->references.push_back({&scratch->boxes.back(), static_cast<uint32_t>(p), 0});
  }
}

Status add_tensor(const TensorRef& entry, EntryKind kind, LocalSavePlan* plan, Scratch* scratch) {
  collect_boxes(entry, scratch);
  CatalogBuilder::Tensor tensor;
  tensor.name = entry.name;
  tensor.path = entry.path;
  tensor.dtype = entry.local.dtype;
  tensor.kind = kind;
  tensor.rank = kind == EntryKind::kRankLocal ? plan->rank : -1;
  tensor.shape = entry.global_shape;
  SHW_RETURN_IF_ERROR(internal::append_tensor(&plan->catalog, tensor, scratch->references));
  if (kind == EntryKind::kSharded) return {};
  Status status =
      internal::prove_cover_naming(plan->catalog, plan->catalog.tensors.size() - 1, "piece");
  if (status.ok()) return status;
  return std::move(status)
      .with_detail("rank", std::to_string(plan->rank))
      .annotated(fmt::format("describe {} tensor '{}' of rank {}, which must hold all of it",
                             entry_kind_name(kind), escape_text(entry.name), plan->rank));
}

Status add_object(const ObjectEntry& entry, EntryKind kind, LocalSavePlan* plan) {
  ObjectRecord record;
  record.kind = kind;
  record.rank = kind == EntryKind::kRankLocal ? plan->rank : -1;
  record.size_bytes = entry.bytes.size();
  return CatalogBuilder(&plan->catalog)
      .add_object(record, entry.name, entry.path, entry.content_type);
}

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
    const EntryKind kind = internal::settle_kind(entry, rules);
    if (kind == EntryKind::kRankLocal) continue;
    if (rules.verify_replicas == VerifyReplicas::kAll || is_small_replica(entry, kind))
      needs.tensors.push_back({t, kind == EntryKind::kSharded});
  }
  for (size_t i = 0; i < state.objects().size(); ++i) {
    if (internal::settle_kind(state.objects()[i], rules) == EntryKind::kReplicated)
      needs.objects.push_back(i);
  }
  return needs;
}

Result<LocalSavePlan> make_local_plan(const State& state, const SaveRules& rules,
                                      RankPosition position, const ReplicaDigests& digests) {
  SHW_RETURN_IF_ERROR(check_arguments(state, rules, position, digests));
  LocalSavePlan plan;
  plan.rank = position.rank;
  plan.world_size = position.world_size;
  plan.options_text = save_rules_text(rules);
  plan.options_digest = options_text_digest(plan.options_text);
  plan.tensor_digests = digests.tensors;
  plan.object_digests = digests.objects;
  reserve(state, &plan.catalog);
  Scratch scratch;
  for (const TensorRef entry : state.tensors()) {
    SHW_RETURN_IF_ERROR(add_tensor(entry, internal::settle_kind(entry, rules), &plan, &scratch));
  }
  for (const ObjectEntry& entry : state.objects()) {
    SHW_RETURN_IF_ERROR(add_object(entry, internal::settle_kind(entry, rules), &plan));
  }
  return plan;
}

}  // namespace shardwright::plan
