// SPDX-License-Identifier: Apache-2.0
//
// ReadDepth: how many reads of the device one worker keeps on their way. More of them hide the
// latency of a storage far away; on a disk that gives its best with few they only add memory that
// no cache holds when it is checked. So it begins with the least, counts what comes in a while, and
// keeps one more where that has brought a quarter more. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/concurrency/cancellation.h"

namespace shardwright::exec::internal {

class ReadDepth {
 public:
  // 1 <= least <= most. clock outlives it.
  ReadDepth(uint32_t least, uint32_t most, const Clock& clock = real_clock())
      : clock_(clock), most_(most), depth_(least) {}

  uint32_t depth() const { return depth_; }
  // A read of so many bytes has come.
  void came(uint64_t bytes);

 private:
  void begin_window(uint32_t depth);

  const Clock& clock_;
  const uint32_t most_;
  uint32_t depth_;
  bool is_settled_ = false;
  double rate_before_ = 0;  // bytes per ns with one less; 0 = not known
  int64_t begin_ns_ = -1;   // of the window; negative = it begins with the next read that comes
  uint64_t bytes_ = 0;
  uint32_t reads_ = 0;
  // Reads still to come that count for nothing: the first of all, and what went out with the depth
  // before.
  uint32_t passed_over_ = 4;
};

}  // namespace shardwright::exec::internal
