// SPDX-License-Identifier: Apache-2.0
//
// The save planner as save() sees it: what the host gets, and what only the one-call form needs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/exec/content_source_internal.h"
#include "core/exec/save.h"

namespace shardwright::exec::internal {

inline constexpr std::string_view kNotYetPublished =
    "the checkpoint is committed, but not yet where other readers look for it; the next save here "
    "goes on with that";

// A save whose bytes come from elsewhere, and which goes on where a killed one ended.
struct SaveSource {
  // Where the items of the list come from; called when it is known. Null = the state's memory.
  std::function<std::unique_ptr<ContentSource>(const plan::WriteList&)> open;
  // Id of the generation instead of a drawn one; what lies under it is used, and stays when the
  // save fails.
  std::string generation;
  bool goes_on = false;  // a part of it was written before, so there is less to write
};

class SaveSteps : public SavePlanner {
 public:
  // Before the first step.
  virtual void set_source(SaveSource source) = 0;
  // What local_plan, global_plan and finish are to the host, in fewer bytes
  // (plan_request_internal.h). Every rank, in place of local_plan.
  virtual Result<Bytes> request(const CallContext& call) = 0;
  // What a reply asks for that is no plan yet; after request.
  virtual Result<Bytes> next_request(std::span<const std::byte> reply) = 0;
  // Coordinator, in place of global_plan: one reply per rank. All of them ask for further requests
  // when these do not do, at most kMaxRequests - 1 times.
  static constexpr int32_t kMaxRequests = 3;
  virtual Result<std::vector<Bytes>> reply(std::span<const Bytes> requests,
                                           const format::Location& location,
                                           const CallContext& call) = 0;
  // Every rank, in place of finish.
  virtual Status take(std::span<const std::byte> reply) = 0;

  // Whether the checkpoint that is current at the location is that of this save, as far as it says.
  enum class Standing : uint8_t {
    kOther,      // or none
    kCommitted,  // what the format leaves to do behind a commit is not done
    kPublished,
  };
  virtual Result<Standing> standing(const format::Location& location) const = 0;
  // Of the save whose list was accepted; "" before.
  virtual std::string_view generation() const = 0;
  // The two halves of commit: steps 4 to 6 with what the format leaves to do behind them, so that
  // every reader finds the checkpoint; and 8, which takes the report of the first. Between them the
  // outcome is told (7).
  virtual Result<Report> publish(std::span<const Bytes> results, const format::Location& location,
                                 const CallContext& call) = 0;
  // Whether that was done; else the report says so, and nothing that was replaced goes.
  virtual bool is_published() const = 0;
  virtual void tidy_up(const format::Location& location, const CallContext& call,
                       Report* report) = 0;
  // Fills in what this rank knows itself, and writes the trace.
  virtual void complete(Report* report, const format::Location& location) = 0;
};

// Failures as SavePlanner::create.
Result<std::unique_ptr<SaveSteps>> make_save_steps(Runtime& runtime,
                                                   std::shared_ptr<const State> state,
                                                   SaveOptions options,
                                                   plan::RankPosition position);

}  // namespace shardwright::exec::internal
