// SPDX-License-Identifier: Apache-2.0
//
// Steps 4 to 8 of a save on the coordinator: look at what all ranks wrote, commit, tidy up. One
// task object per commit; one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exec/options.h"
#include "core/exec/report.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/exec/trace.h"
#include "core/format/saving.h"
#include "core/plan/wire/wire.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

// All must outlive the call.
struct CommitInput {
  Runtime& runtime;
  const format::FormatWriter& format;
  format::GenerationWriter& generation;  // of the plan
  const plan::GlobalSavePlan& plan;
  const format::CurrentCheckpoint& replaced;  // as step 1 found it
  const SaveOptions& options;
  const format::Location& location;
  const CallContext& call;
  storage::StorageLock* fence = nullptr;  // null = the storage has no locks
  Trace* trace = nullptr;                 // may be null
};

// Steps 4 to 6: results[i] is rank i's. The report of the checkpoint: counts, bytes of all ranks,
// notes. On failure the generation is removed, best effort, unless the outcome is unknown
// (UNAVAILABLE with detail commit=unknown).
Result<Report> publish_generation(const CommitInput& input,
                                  std::span<const plan::WriteResult> results);

// Step 8, after publish_generation has succeeded. What went, and what could not go, is added to the
// report.
void remove_replaced(const CommitInput& input, std::span<const format::StoredParts> replaced,
                     Report* report);

// Removes what a generation has in storage that this save has made and never tried to commit, or
// whose commit is known to have failed: nothing can name it. Best effort, also without memory.
void discard_generation(Runtime& runtime, storage::Storage& storage,
                        const format::StoredParts& parts) noexcept;

}  // namespace shardwright::exec::internal
