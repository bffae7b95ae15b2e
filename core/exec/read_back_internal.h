// SPDX-License-Identifier: Apache-2.0
//
// Whether what was written is what was read: digests of the parts that a conversion took from its
// source, and the same parts read back from its target.
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

// Bytes of an item that lie in one digest block of it.
struct TakenPart {
  uint32_t item = 0;  // number in the write list
  uint32_t size_bytes = 0;
  uint64_t begin = 0;  // in the item's bytes
  Digest128 digest{};
};

// What one rank took. Thread-safe.
class TakenParts {
 public:
  // The runs were just filled.
  void add(std::span<const WantedRun> runs);
  // By item and begin, none inside of another; nobody adds any more.
  std::vector<TakenPart> take();

 private:
  Mutex mutex_;
  std::vector<TakenPart> parts_ SHW_GUARDED_BY(mutex_);
};

// Reads the parts of a rank from what was made of them. state and list: those that were written.
// DATA_LOSS naming the entry that differs; the failures of reads.
Status read_back(Runtime& runtime, const Checkpoint& made, const State& state,
                 const plan::WriteList& list, std::span<const TakenPart> parts,
                 const CallContext& call);

}  // namespace shardwright::exec::internal
