// SPDX-License-Identifier: Apache-2.0
//
// The save planner as save() sees it: what the host gets, and what only the one-call form needs.
#pragma once

#include <memory>
#include <string_view>

#include "core/exec/save.h"

namespace shardwright::exec::internal {

class SaveSteps : public SavePlanner {
 public:
  // Of the save that finish has accepted; "" before.
  virtual std::string_view generation() const = 0;
  // Fills in what this rank knows itself, and writes the trace.
  virtual void complete(Report* report, const format::Location& location) = 0;
};

// Failures as SavePlanner::create.
Result<std::unique_ptr<SaveSteps>> make_save_steps(Runtime& runtime,
                                                   std::shared_ptr<const State> state,
                                                   SaveOptions options,
                                                   plan::RankPosition position);

}  // namespace shardwright::exec::internal
