// SPDX-License-Identifier: Apache-2.0
#include "core/exec/read_depth_internal.h"

#include <algorithm>

namespace shardwright::exec::internal {
namespace {

constexpr uint32_t kReadsPerWindow = 8;
constexpr double kLeastGain = 1.25;  // where latency decides, the fourth read brings 1.33

}  // namespace

void ReadDepth::begin_window(uint32_t depth) {
  passed_over_ = depth_;
  depth_ = depth;
  begin_ns_ = -1;
  bytes_ = 0;
  reads_ = 0;
}

void ReadDepth::came(uint64_t bytes) {
  if (is_settled_) return;
  if (passed_over_ > 0) {
    --passed_over_;
    return;
  }
  const int64_t now_ns = clock_.monotonic_ns();
  if (begin_ns_ < 0) {
    begin_ns_ = now_ns;
    return;
  }
  bytes_ += bytes;
  if (++reads_ < kReadsPerWindow) return;
  const auto elapsed_ns = static_cast<double>(std::max<int64_t>(now_ns - begin_ns_, 1));
  const double rate = static_cast<double>(bytes_) / elapsed_ns;
  const bool pays = rate_before_ == 0 || rate >= kLeastGain * rate_before_;
  is_settled_ = !pays || depth_ == most_;
  if (!pays) {
    --depth_;
  } else if (!is_settled_) {
    rate_before_ = rate;
    begin_window(depth_ + 1);
  }
}

}  // namespace shardwright::exec::internal
