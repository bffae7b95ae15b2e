// SPDX-License-Identifier: Apache-2.0
#include "core/plan/rank_position.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace shardwright::plan {

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

}  // namespace shardwright::plan
