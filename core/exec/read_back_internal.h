// SPDX-License-Identifier: Apache-2.0
//
// Whether what was written is what was read: digests of the runs that a conversion took from its
// source, and the same runs read back from its target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/concurrency/mutex.h"
#include "core/exec/checkpoint.h"
#include "core/exec/content_source_internal.h"
#include "core/integrity/digest.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

struct TakenRun {
  uint32_t item = 0;   // number in the write list
  uint64_t begin = 0;  // in the item's bytes
  uint64_t size_bytes = 0;
  Digest128 digest{};
};

// What one rank took. Thread-safe.
class TakenRuns {
 public:
  // The runs were just filled.
  void add(std::span<const WantedRun> runs);
  // By item and begin, each once; nobody adds any more.
  std::vector<TakenRun> take();

 private:
  Mutex mutex_;
  std::vector<TakenRun> runs_ SHW_GUARDED_BY(mutex_);
};

// Reads the runs of a rank from what was made of them, on all workers. state and list: those that
// were written. comparing: holds what was read while it waits for more, so not the runtime that
// `made` reads with. DATA_LOSS naming the entry that differs; the failures of reads.
Status read_back(Runtime& comparing, const Checkpoint& made, const State& state,
                 const plan::WriteList& list, std::span<const TakenRun> runs,
                 const CallContext& call);

}  // namespace shardwright::exec::internal
