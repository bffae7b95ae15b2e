// SPDX-License-Identifier: Apache-2.0
//
// Gather: the shards of one group on their way to all ranks, from the cast to the gathered rows.
// Owns what the transport reads and writes. Used by the calling thread; a lane may wait for the
// transport beside it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/hsdp/channel_internal.h"
#include "core/hsdp/lane_step_internal.h"
#include "core/hsdp/unit_memory.h"

namespace shardwright::hsdp::internal {

class Runtime;

// This rank's part of what is gathered.
struct GatherSource {
  ChannelCall call;                    // in the dtype that travels; count: of this part
  DType stored = DType::kInvalid;      // of part; a cast comes first where it is another one
  std::span<const std::byte> part;     // stays as it is until the gather has ended
  std::shared_ptr<const void> memory;  // of part; co-owned by the transport
  bool is_offloaded = false;           // part lies with the host, and is uploaded first
};

class Gather {
 public:
  // Issued when this returns; a failure of the transport as it says it. memory: of `channel.size()`
  // parts.
  static Result<std::unique_ptr<Gather>> start(Runtime& runtime, Channel& channel,
                                               const GatherSource& source);
  ~Gather();

  // True when the rows are there, false after timeout_ns (negative = no limit).
  Result<bool> wait(int64_t timeout_ns);
  // The parts in rank order; after wait.
  std::span<const std::byte> rows() const { return memory_->gathered.bytes(); }
  // The same memory, for whoever keeps it; after wait.
  Buffer take_rows() { return std::move(memory_->gathered); }

 private:
  struct Memory {
    std::shared_ptr<const void> source;
    Buffer uploaded;
    Buffer staging;
    Buffer gathered;
  };

  Gather() = default;

  std::shared_ptr<Memory> memory_;  // co-owned by the transport until it has let go
  ChannelWork work_;
  LaneStep step_;  // last: ends before what it waits for goes
  bool on_lane_ = false;
};

}  // namespace shardwright::hsdp::internal
