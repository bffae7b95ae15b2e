// SPDX-License-Identifier: Apache-2.0
//
// Steps 2 and 3 of a save on one rank: the rank's file from its header to its trailer, durable. On
// failure nothing of it is left behind, best effort.
#pragma once

#include "core/exec/options.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/exec/trace.h"
#include "core/format/format.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {

// All must outlive the call. list was checked against state; local is the plan it was made from.
struct RankFileInput {
  Runtime& runtime;
  const State& state;
  const plan::LocalPlan& local;
  const plan::WriteList& list;
  const SaveOptions& options;
  const format::Location& location;
  const CallContext& call;
  Trace* trace = nullptr;  // may be null
  int64_t* sync_ns =
      nullptr;  // receives the time that step 3 took to make the file durable; may be null
};

// has_file is false, and nothing was touched, when the list is empty. Failures carry details phase,
// rank and file.
Result<plan::WriteResult> write_rank_file(const RankFileInput& input);

// Key of a rank's file.
std::string rank_file_location(const format::Location& location, std::string_view generation,
                               int32_t rank);

}  // namespace shardwright::exec::internal
