// SPDX-License-Identifier: Apache-2.0
//
// One file of one rank, all of a state in it, for hosts whose own planner and index say what else
// there is: no plan, no commit, no other rank. The pipeline is that of a save.
#pragma once

#include <memory>
#include <string>

#include "core/exec/options.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/format/opened_checkpoint.h"
#include "core/plan/wire/wire.h"
#include "core/state/state.h"

namespace shardwright::exec {

struct FileOfRank {
  int32_t rank = 0;
  uint32_t number = 0;  // of several files of the rank
  std::string generation;
  std::string hint = "";  // what its name begins with
};

// Writes each piece of each tensor in the order of the state, empty ones too, then its objects.
// Details of the result say where. The file is durable when this returns, where that is asked for.
// ALREADY_EXISTS when it is there; after another failure nothing of it is left, best effort. An
// empty state writes an empty file.
Result<plan::WriteResult> write_alone(Runtime& runtime, std::shared_ptr<const State> state,
                                      const FileOfRank& file, const format::Location& location,
                                      const SaveOptions& options, const CallContext& call);

}  // namespace shardwright::exec
