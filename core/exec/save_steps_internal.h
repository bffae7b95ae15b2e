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
  // The two halves of commit: steps 4 to 6, and 8, which takes the report of the first. Between
  // them the outcome is told (7).
  virtual Result<Report> publish(std::span<const Bytes> results, const format::Location& location,
                                 const CallContext& call) = 0;
  virtual void tidy_up(const format::Location& location, const CallContext& call,
                       Report* report) = 0;
  // Fills in what this rank knows itself, and writes the trace.
  virtual void complete(Report* report, const format::Location& location) = 0;
};

// UNIMPLEMENTED naming the tensor when its memory lies where a save cannot read it.
Status check_readable(const TensorSpan& tensor, std::string_view name);

// Failures as SavePlanner::create.
Result<std::unique_ptr<SaveSteps>> make_save_steps(Runtime& runtime,
                                                   std::shared_ptr<const State> state,
                                                   SaveOptions options,
                                                   plan::RankPosition position);

}  // namespace shardwright::exec::internal
