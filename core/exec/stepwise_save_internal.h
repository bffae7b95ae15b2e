// SPDX-License-Identifier: Apache-2.0
//
// One rank's walk through the steps of a save. save_planner.cc has the steps, save_requests.cc how
// ranks that repeat a save agree on its plan. Thread-compatible.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exec/commit_internal.h"
#include "core/exec/path_fence_internal.h"
#include "core/exec/plan_cache.h"
#include "core/exec/plan_request_internal.h"
#include "core/exec/save_steps_internal.h"
#include "core/exec/trace.h"
#include "core/format/saving.h"
#include "core/plan/local_plan.h"
#include "core/plan/rank_plans.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {

class StepwiseSave final : public SaveSteps {
 public:
  StepwiseSave(Runtime& runtime, const format::FormatWriter& format,
               std::shared_ptr<const State> state, SaveOptions options, plan::RankPosition position)
      : runtime_(runtime),
        format_(format),
        state_(std::move(state)),
        options_(std::move(options)),
        position_(position),
        trace_(options_.trace_path, position.rank, runtime.clock()) {}
  // A coordinator that is dropped between plan and commit leaves nothing behind.
  ~StepwiseSave() override;
  StepwiseSave(const StepwiseSave&) = delete;
  StepwiseSave& operator=(const StepwiseSave&) = delete;

  void set_source(SaveSource source) override { source_ = std::move(source); }
  Result<Bytes> local_plan(const CallContext& call) override;
  Result<std::vector<Bytes>> global_plan(std::span<const Bytes> locals,
                                         const format::Location& location,
                                         const CallContext& call) override;
  Status finish(std::span<const std::byte> mine) override;
  Result<Bytes> execute(const format::Location& location, const CallContext& call) override;
  Result<Report> commit(std::span<const Bytes> results, const format::Location& location,
                        const CallContext& call) override;
  void abandon(const format::Location& location) noexcept override;
  Result<Report> publish(std::span<const Bytes> results, const format::Location& location,
                         const CallContext& call) override;
  void tidy_up(const format::Location& location, const CallContext& call, Report* report) override;
  Result<Bytes> request(const CallContext& call) override;
  Result<Bytes> next_request(std::span<const std::byte> reply) override;
  Result<std::vector<Bytes>> reply(std::span<const Bytes> requests,
                                   const format::Location& location,
                                   const CallContext& call) override;
  Status take(std::span<const std::byte> reply) override;
  Result<Standing> standing(const format::Location& location) const override;
  bool is_published() const override { return published_; }
  std::string_view generation() const override {
    return list_.has_value() ? std::string_view(list_->generation) : std::string_view();
  }
  void complete(Report* report, const format::Location& location) override;

 private:
  CallContext limited(const CallContext& call);
  Status check_target(const format::Location& location);
  Status begin_generation(const format::Location& location);
  Status check_free_space(const format::Location& location) const;
  Status make_generation();
  Status describe(const CallContext& call);
  using PlanSource = std::function<Result<plan::GlobalSavePlan>()>;  // of all ranks
  Status plan_world(const format::Location& location, const CallContext& call,
                    const PlanSource& source);
  Status settle_before(const format::Location& location);
  void settle_after(const format::Location& location, Report* report) noexcept;
  Status start(const format::Location& location, const CallControl& control,
               const PlanSource& source);
  void drop_world();
  void discard_made() noexcept;
  Status plan_ranks(const plan::RankPlans& ranks, const format::Location& location,
                    const CallContext& call);
  Result<std::vector<Bytes>> encode_lists(const plan::RankPlans& ranks) const;
  plan::RankView own() const;
  Result<Bytes> full_request() const;
  Result<std::vector<Bytes>> reply_to_checksums(const PlanRequests& requests, size_t count,
                                                const format::Location& location,
                                                const CallContext& call);
  // Asks for the descriptions that this rank does not have, or plans when there are none.
  Result<std::vector<Bytes>> gather_descriptions(const PlanRequests& requests,
                                                 const format::Location& location,
                                                 const CallContext& call);
  Result<std::vector<Bytes>> plan_descriptions(std::span<const SentPlan> descriptions,
                                               const format::Location& location,
                                               const CallContext& call);
  // What each rank writes of the plan that was made, and what ranks with these keys remember of it.
  Result<std::vector<Bytes>> replies_with_plan(std::span<const Digest128> keys,
                                               const plan::RankPlans& ranks);
  Result<plan::WriteList> list_of(const PlanReply& reply) const;
  Status accept(plan::WriteList list);
  void note_time(std::string_view stage, int64_t begin_ns) noexcept;

  Runtime& runtime_;
  const format::FormatWriter& format_;
  const std::shared_ptr<const State> state_;  // co-owned with the host
  const SaveOptions options_;
  const plan::RankPosition position_;
  SaveSource source_;
  Trace trace_;
  std::optional<int64_t> begin_ns_;            // of the first step
  std::optional<plan::LocalPlan> local_;       // after local_plan or request
  std::optional<plan::EntryNumbers> numbers_;  // of local_, as the part
  plan::PartView part_;
  Digest128 local_digest_{};
  Digest128 key_{};                           // of this rank in the cache, after request
  std::shared_ptr<const RankMemory> memory_;  // co-owned with the cache; null = nothing remembered
  // Coordinator: what ranks sent, until their descriptions are there.
  struct Gathering {
    std::vector<Digest128> keys;
    std::vector<Digest128> digests;
    std::vector<plan::LocalPart> parts;
  };
  std::optional<Gathering> gathering_;
  std::optional<plan::GlobalSavePlan> merged_;  // coordinator, after global_plan or reply
  std::optional<WorldMemory> world_;            // coordinator: for the cache, its plan is merged_
  format::CurrentCheckpoint replaced_;          // coordinator: identity of step 1
  FenceLock fence_;                             // coordinator: keeps gc away from the path
  format::Location target_;                     // coordinator: where the generation was made
  std::unique_ptr<format::GenerationWriter> generation_;  // coordinator: of merged_
  std::vector<format::StoredParts> to_remove_;            // coordinator: by step 8, after publish
  std::vector<std::string> file_keys_;                    // of this rank's own files, after execute
  std::optional<plan::WriteList> list_;                   // after finish
  std::optional<plan::WriteResult> result_;               // after execute
  std::string io_engine_;                                 // after execute
  bool executed_ = false;
  bool committed_ = false;  // commit was called, whatever came of it
  bool published_ = false;  // all readers find what was committed
  std::vector<StageTime> times_;
};

}  // namespace shardwright::exec::internal
