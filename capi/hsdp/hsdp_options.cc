// SPDX-License-Identifier: Apache-2.0
#include "capi/hsdp/hsdp_options.h"

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "core/base/limits.h"

namespace shardwright::capi {

int32_t prefetch_depth(int32_t given) {
  if (given == 0) return hsdp::HsdpOptions().prefetch_depth;
  return given == -1 ? 0 : given;
}

int32_t max_inflight(int32_t given) {
  return given == 0 ? hsdp::HsdpOptions().max_inflight_reduce : given;
}

Result<hsdp::HsdpOptions> read_hsdp_options(const shw_hsdp_options& given) {
  if (given.prefetch_depth < -1)
    return bad_argument("options",
                        fmt::format("prefetch_depth is {}, not -1 or above", given.prefetch_depth));
  if (given.order_guard_steps < -1)
    return bad_argument("options", fmt::format("order_guard_steps is {}, not -1 or above",
                                               given.order_guard_steps));
  if (given.timeout_ns < -1)
    return bad_argument("options",
                        fmt::format("timeout_ns is {}, not -1 or above", given.timeout_ns));
  hsdp::HsdpOptions options;
  options.shard_axis = given.shard_axis;
  options.replicate_axis = given.replicate_axis == given.shard_axis ? -1 : given.replicate_axis;
  options.lanes = given.lanes;
  options.max_inflight_reduce = max_inflight(given.max_inflight_reduce);
  options.prefetch_depth = prefetch_depth(given.prefetch_depth);
  options.prefetch_bytes_max = given.prefetch_bytes_max;
  options.unordered = (given.flags & SHW_HSDP_UNORDERED) != 0;
  if (given.order_guard_steps != 0)
    options.order_guard_steps = given.order_guard_steps < 0 ? 0 : given.order_guard_steps;
  options.timeout_ns = given.timeout_ns == 0 ? kDefaultCollectiveDeadlineNs : given.timeout_ns;
  return options;
}

}  // namespace shardwright::capi
