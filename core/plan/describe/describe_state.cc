// SPDX-License-Identifier: Apache-2.0
//
// One pass over the tensors and one over the objects.
#include "core/plan/describe/describe_state.h"

#include <utility>

#include <fmt/format.h>

#include "core/plan/describe/builder.h"
#include "core/plan/describe/replica_digests.h"

namespace shardwright::plan {
namespace {

Digest128 digest_at(const std::vector<Digest128>& digests, size_t index) {
  return digests.empty() ? Digest128{} : digests[index];
}

}  // namespace

Result<LocalPlan> describe_state(const State& state, const SaveRules& rules, RankPosition position,
                                 const ReplicaDigests& digests, std::string agreement) {
  if ((!digests.tensors.empty() && digests.tensors.size() != state.tensors().size()) ||
      (!digests.objects.empty() && digests.objects.size() != state.objects().size())) {
    return invalid_argument(fmt::format(
        "{} tensor and {} object digests for {} tensors and {} objects", digests.tensors.size(),
        digests.objects.size(), state.tensors().size(), state.objects().size()));
  }
  if (position.world_size == 0)
    return invalid_argument("a state is described for a number of ranks, not for 0")
        .with_detail("rank", std::to_string(position.rank));
  SHW_ASSIGN_OR_RETURN(DescriptionBuilder builder,
                       DescriptionBuilder::create(rules.kinds, std::move(agreement), position));
  for (size_t t = 0; t < state.tensors().size(); ++t) {
    const TensorRef entry = state.tensors()[t];
    const DescriptionBuilder::Tensor tensor{entry.name,         entry.path,
                                            entry.local.dtype,  entry.kind,
                                            entry.global_shape, digest_at(digests.tensors, t)};
    const Layout* layout = entry.layout == nullptr ? nullptr : entry.layout->get();
    SHW_RETURN_IF_ERROR(builder.add_pieces(tensor, entry.pieces, layout));
  }
  for (size_t i = 0; i < state.objects().size(); ++i) {
    const ObjectEntry& entry = state.objects()[i];
    SHW_RETURN_IF_ERROR(builder.add_object({entry.name, entry.path, entry.content_type, entry.kind,
                                            entry.size_bytes(), digest_at(digests.objects, i)}));
  }
  return builder.finish();
}

}  // namespace shardwright::plan
