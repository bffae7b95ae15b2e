// SPDX-License-Identifier: Apache-2.0
//
// Steps 2 and 3 of a save on one rank: what it writes, durable. On failure nothing of it is left
// behind, best effort.
#pragma once

#include <string>
#include <vector>

#include "core/exec/content_source_internal.h"
#include "core/exec/options.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/exec/trace.h"
#include "core/format/saving.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {

// All must outlive the call. The list was checked against the state.
struct RankFilesInput {
  Runtime& runtime;
  const format::FormatWriter& format;
  const format::RankContents& contents;
  const SaveOptions& options;
  const format::Location& location;
  const CallContext& call;
  Trace* trace = nullptr;  // may be null
  int64_t* sync_ns =
      nullptr;  // receives the time that step 3 took to make the files durable; may be null
  std::string* io_engine = nullptr;          // receives the engine of batched writes; may be null
  std::vector<std::string>* made = nullptr;  // receives the keys of the rank's own files
  ContentSource* bytes = nullptr;            // where they come from, null = the memory of the state
  bool replaces = false;  // own files that are there already are those of a killed save
};

// Nothing is touched when the list is empty. Tells call.on_staged when the last extent is written.
// Failures carry details phase, rank and file.
Result<plan::WriteResult> write_rank_files(const RankFilesInput& input);

}  // namespace shardwright::exec::internal
