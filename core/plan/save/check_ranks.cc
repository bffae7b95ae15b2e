// SPDX-License-Identifier: Apache-2.0
//
// The local plans must be those of all ranks, in order, made under the same options.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/shared_options.h"

namespace shardwright::plan::internal {
namespace {

Status check_rank(std::span<const LocalView> locals, size_t i) {
  const LocalView& local = locals[i];
  SHW_RETURN_IF_ERROR(check_position({local.rank, local.world_size}, i, locals.size()));
  const CatalogView& catalog = local.catalog;
  if ((!local.tensor_digests.empty() && local.tensor_digests.size() != catalog.tensors.size()) ||
      (!local.object_digests.empty() && local.object_digests.size() != catalog.objects.size())) {
    return invalid_argument(
               fmt::format(
                   "rank {} gives {} tensor and {} object digests for {} tensors and {} objects",
                   local.rank, local.tensor_digests.size(), local.object_digests.size(),
                   catalog.tensors.size(), catalog.objects.size()))
        .with_detail("rank", std::to_string(local.rank));
  }
  if (local.options_digest != locals[0].options_digest) {
    return options_differ({locals[0].rank, locals[0].options_text},
                          {local.rank, local.options_text});
  }
  return {};
}

}  // namespace

Status check_position(RankPosition position, size_t index, size_t count) {
  const std::string rank = std::to_string(position.rank);
  if (std::cmp_not_equal(position.rank, index)) {
    // The plans before this one stand at their places.
    const bool doubled = position.rank >= 0 && std::cmp_less(position.rank, index);
    return invalid_argument(fmt::format("plan {} of {} is that of rank {}{}; plans are wanted in "
                                        "rank order, one per rank",
                                        index, count, position.rank,
                                        doubled ? " a second time" : ""))
        .with_detail("rank", rank)
        .with_detail("expected", std::to_string(index))
        .with_detail("found", rank);
  }
  if (position.world_size != 0 && std::cmp_not_equal(position.world_size, count)) {
    return invalid_argument(fmt::format("rank {} plans for {} ranks, but there are plans of {}",
                                        position.rank, position.world_size, count))
        .with_detail("rank", rank)
        .with_detail("expected", std::to_string(position.world_size))
        .with_detail("found", std::to_string(count));
  }
  return {};
}

Status check_ranks(std::span<const LocalView> locals) {
  if (locals.empty()) return invalid_argument("there is no local plan to merge");
  for (size_t i = 0; i < locals.size(); ++i) SHW_RETURN_IF_ERROR(check_rank(locals, i));
  return {};
}

}  // namespace shardwright::plan::internal
