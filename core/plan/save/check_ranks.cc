// SPDX-License-Identifier: Apache-2.0
//
// The local plans must be those of all ranks, in order, made under the same options.
#include <string>

#include <fmt/format.h>

#include "core/plan/rank_position.h"
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

Status check_ranks(std::span<const LocalView> locals) {
  if (locals.empty()) return invalid_argument("there is no local plan to merge");
  for (size_t i = 0; i < locals.size(); ++i) SHW_RETURN_IF_ERROR(check_rank(locals, i));
  return {};
}

}  // namespace shardwright::plan::internal
