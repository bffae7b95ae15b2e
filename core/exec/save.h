// SPDX-License-Identifier: Apache-2.0
//
// Save in numbered steps (docs/formats/native.md, "Commit"):
//   0  prove the plan, check options, permissions and free space
//   1  coordinator notes the manifest that is current, takes the lock, draws a generation, makes
//   its prefix 2  each rank creates its file in that generation only and writes extents; digests
//   while copying 3  each rank writes index and trailer, syncs file and prefix, closes
//   4  all ranks exchange status, size and index digest; the coordinator looks at every file (size,
//   trailer) 5  coordinator builds the manifest, decodes it again, writes it under a temporary
//   name, syncs 6  commit: conditional atomic rename, directory sync
//   7  the outcome reaches all ranks
//   8  the generation that the replaced manifest named is removed (keep_generations keeps more)
// Until step 6 no byte, name or attribute of the previous checkpoint is touched. A failure before
// step 6 fails the save on all ranks with the lowest failing rank's cause, and each rank removes
// its own file of this generation.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/collective/collective.h"
#include "core/exec/options.h"
#include "core/exec/progress.h"
#include "core/exec/report.h"
#include "core/exec/runtime.h"
#include "core/format/format.h"
#include "core/plan/wire/wire.h"
#include "core/state/state.h"

namespace shardwright::exec {

using plan::Bytes;

// What a running call respects and tells; all members optional.
struct CallContext {
  CallControl control;
  Progress* progress = nullptr;
  std::function<void()> on_staged;  // the state's tensors are no longer read; called at most once
};

// Height 1: the host moves the buffers. One planner per rank and save; steps in order, each once
// (FAILED_PRECONDITION otherwise). Thread-compatible. Keeps the state alive.
class SavePlanner {
 public:
  static Result<std::unique_ptr<SavePlanner>> create(Runtime& runtime,
                                                     std::shared_ptr<const State> state,
                                                     SaveOptions options,
                                                     plan::RankPosition position);
  virtual ~SavePlanner() = default;

  // Every rank: its description, content digests of replicas included.
  virtual Result<Bytes> local_plan(const CallContext& call) = 0;
  // Coordinator only: locals[i] is rank i's. Steps 0 and 1; one write list per rank.
  virtual Result<std::vector<Bytes>> global_plan(std::span<const Bytes> locals,
                                                 const format::Location& location,
                                                 const CallContext& call) = 0;
  // Every rank: checks that mine fits this rank and state (FAILED_PRECONDITION otherwise) and keeps
  // it.
  virtual Status finish(std::span<const std::byte> mine) = 0;
  // Every rank, steps 2 and 3. The result is what commit needs of this rank.
  virtual Result<Bytes> execute(const format::Location& location, const CallContext& call) = 0;
  // Coordinator, steps 4 to 8: results[i] is rank i's.
  virtual Result<Report> commit(std::span<const Bytes> results, const format::Location& location,
                                const CallContext& call) = 0;
  // Removes this rank's file of the generation, best effort; after a failure elsewhere.
  virtual void abandon(const format::Location& location) noexcept = 0;
};

// Height 2: one call on all ranks of the collective. on_staged is called when all extents of this
// rank are written; an asynchronous save gives a staged copy of the state instead and calls
// on_staged itself.
Result<Report> save(Runtime& runtime, std::shared_ptr<const State> state,
                    const format::Location& location, collective::Collective& collective,
                    const SaveOptions& options, const CallContext& call);

// The same as a job's work: stages the state when its bytes fit staging_limit (0 = no limit), so
// that the host may go on early; else, or with options.hold, saves from the host's memory, and
// on_staged comes when it was read.
Result<Report> save_in_background(Runtime& runtime, std::shared_ptr<const State> state,
                                  const format::Location& location,
                                  collective::Collective& collective, const SaveOptions& options,
                                  uint64_t staging_limit, const CallContext& call);

// What a rank calls that cannot take part in the save of the others: they fail at once with its
// cause instead of waiting for it. Returns the failure that all ranks get.
Status decline_save(collective::Collective& collective, const Status& failure, int64_t deadline_ns);

// A copy of every tensor in private memory (one block), for asynchronous saves: afterwards the host
// may change its tensors; on_staged is left to the caller. RESOURCE_EXHAUSTED naming the bytes when
// memory is out.
Result<std::shared_ptr<const State>> stage_state(Runtime& runtime, const State& state,
                                                 const CallContext& call);
// Makes the memory of such a copy with all its pages, so that the next one finds it. Fails as that
// does.
Status prepare_staging(Runtime& runtime, const State& state, const CallControl& control);

}  // namespace shardwright::exec
