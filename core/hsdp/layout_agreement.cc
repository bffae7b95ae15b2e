// SPDX-License-Identifier: Apache-2.0
//
// Two exchanges: along the shard axis each rank learns of its row; along the replicate axis, of the
// rows. What the first has found travels with the second.
#include "core/hsdp/layout_agreement_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/hsdp/runtime_internal.h"
#include "core/integrity/digest.h"

namespace shardwright::hsdp::internal {
namespace {

// What a rank says to those along an axis.
struct Statement {
  Digest128 digest{};
  int64_t failed = 0;     // 1: this rank could not lay the unit out
  int64_t odd_rank = -1;  // that it knows to differ or to have failed; global
};
static_assert(sizeof(Statement) == 32);

void keep_lowest(int64_t rank, int64_t* odd_rank) {
  if (*odd_rank < 0 || rank < *odd_rank) *odd_rank = rank;
}

Status compare_along(Runtime& runtime, Channel* channel, int32_t axis, Statement* mine) {
  if (channel == nullptr) {
    if (mine->failed != 0) keep_lowest(runtime.mesh().rank(), &mine->odd_rank);
    return {};
  }
  std::vector<Statement> all(static_cast<size_t>(channel->size()), *mine);
  const Status exchanged =
      channel->exchange(std::as_bytes(std::span(mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!exchanged.ok()) return runtime.fail(exchanged);
  // The first that has an opinion is what the others are held against.
  const auto reference =
      std::ranges::find_if(all, [](const Statement& each) { return each.failed == 0; });
  for (size_t each = 0; each < all.size(); ++each) {
    const bool differs = reference != all.end() && all[each].digest != reference->digest;
    if (all[each].failed != 0 || differs)
      keep_lowest(runtime.mesh().rank_at(axis, static_cast<int32_t>(each)), &mine->odd_rank);
    if (all[each].odd_rank >= 0) keep_lowest(all[each].odd_rank, &mine->odd_rank);
  }
  return {};
}

}  // namespace

void UnitDescription::add(const Digest128& layout, const DTypePolicy& dtypes, bool replicated) {
  bytes.insert(bytes.end(), layout.begin(), layout.end());
  for (const DType each : {dtypes.stored, dtypes.compute, dtypes.reduce, dtypes.gradient})
    bytes.push_back(static_cast<std::byte>(each));
  bytes.push_back(static_cast<std::byte>(replicated));
}

Status agree_on_layout(Runtime& runtime, const UnitDescription& description) {
  std::vector<std::byte> bytes = description.bytes;
  const auto name = std::as_bytes(std::span(description.unit));
  bytes.insert(bytes.end(), name.begin(), name.end());
  Statement mine;
  mine.digest = integrity::xxh3_128(bytes);
  mine.failed = description.failure.ok() ? 0 : 1;
  const HsdpOptions& options = runtime.options();
  SHW_RETURN_IF_ERROR(compare_along(runtime, runtime.gather_channel(), options.shard_axis, &mine));
  SHW_RETURN_IF_ERROR(
      compare_along(runtime, runtime.replicate_channel(), options.replicate_axis, &mine));
  if (mine.odd_rank < 0) return {};
  return invalid_argument(
             fmt::format("unit '{}' is laid out differently on rank {}, or not at all; all ranks "
                         "must add the same parameters in the same order, with the same options",
                         description.unit, mine.odd_rank))
      .with_detail("rank", fmt::to_string(mine.odd_rank));
}

}  // namespace shardwright::hsdp::internal
