// SPDX-License-Identifier: Apache-2.0
#include "core/exec/planned_load.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/without_exceptions.h"
#include "core/exec/load_reads_internal.h"
#include "core/exec/load_targets_internal.h"
#include "core/plan/load/make_load_plan.h"

namespace shardwright::exec {
namespace {

Status check_input(const PlannedInput& input) {
  SHW_RETURN_IF_ERROR(check_options(input.options));
  const format::OpenedCheckpoint& opened = input.checkpoint.opened();
  SHW_RETURN_IF_ERROR(internal::check_generation(input.plan, opened));
  SHW_RETURN_IF_ERROR(plan::check_load_plan(input.plan, input.state, opened.catalog()));
  return internal::check_targets(input.runtime.devices(), input.plan, input.state);
}

Status out_of_order(std::string_view what, size_t finished, size_t rounds) {
  return failed_precondition(
      fmt::format("{}: {} of {} rounds of the exchange are finished", what, finished, rounds));
}

class HostedLoad final : public PlannedLoad {
 public:
  HostedLoad(const PlannedInput& input, const CallContext& call)
      : runtime_(input.runtime),
        trace_(input.options.trace_path, input.plan.rank, internal::clock_of(call)),
        plan_(input.plan),
        reads_({input.runtime, input.checkpoint, input.options, &trace_}, input.plan, input.state,
               call, /*shares=*/true) {}

  Result<plan::WantList> wants(int32_t world_size) {
    SHW_RETURN_IF_ERROR(reads_.prepare());
    return reads_.want_list(world_size);
  }

  Status begin(const plan::ExchangePlan& exchange) {
    SHW_RETURN_IF_ERROR(reads_.prepare());
    SHW_RETURN_IF_ERROR(reads_.use(exchange));
    rounds_ = exchange.rounds;
    return {};
  }

  size_t rounds() const override { return rounds_.size(); }
  size_t finished() const override { return finished_; }

  Result<Round> begin_round() override {
    SHW_RETURN_IF_ERROR(failure_);
    if (is_in_round_ || finished_ == rounds_.size())
      return out_of_order("no round can be begun", finished_, rounds_.size());
    internal::BlockExchange& blocks = reads_.planned();
    failure_ = without_exceptions(
        "a round", [&] { return blocks.begin(static_cast<int64_t>(rounds_[finished_])); });
    SHW_RETURN_IF_ERROR(failure_);
    is_in_round_ = true;
    received_bytes_ += blocks.incoming().size();
    return Round{blocks.outgoing(), blocks.outgoing_sizes(), blocks.incoming(),
                 blocks.incoming_sizes()};
  }

  Status finish_round() override {
    SHW_RETURN_IF_ERROR(failure_);
    if (!is_in_round_) return out_of_order("no round has begun", finished_, rounds_.size());
    is_in_round_ = false;
    failure_ = without_exceptions("a round", [&] {
      return reads_.planned().finish(static_cast<int64_t>(rounds_[finished_++]));
    });
    return failure_;
  }

  Result<Report> finish() override {
    SHW_RETURN_IF_ERROR(failure_);
    if (is_ended_ || is_in_round_ || finished_ < rounds_.size())
      return out_of_order("the load cannot be finished", finished_, rounds_.size());
    is_ended_ = true;
    bool ended = false;
    Result<Report> report = reads_.run(nullptr, &ended);
    internal::write_trace(runtime_, trace_);
    failure_ = report.status();
    SHW_RETURN_IF_ERROR(failure_);
    report->bytes_received = received_bytes_;
    report->loaded = plan_.loaded;
    report->missing = plan_.missing;
    report->unexpected = plan_.unexpected;
    return report;
  }

 private:
  Runtime& runtime_;
  Trace trace_;
  const plan::LoadPlan& plan_;
  internal::LoadReads reads_;
  std::vector<uint64_t> rounds_;
  size_t finished_ = 0;
  uint64_t received_bytes_ = 0;  // in all rounds that have begun
  bool is_in_round_ = false;
  bool is_ended_ = false;
  Status failure_;
};

}  // namespace

Result<plan::WantList> want_list(const PlannedInput& input, int32_t world_size,
                                 const CallContext& call) {
  SHW_RETURN_IF_ERROR(check_input(input));
  if (input.plan.rank >= world_size) {
    return invalid_argument(fmt::format("the load plan is of rank {}, there are {} ranks",
                                        input.plan.rank, world_size))
        .with_detail("parameter", "world_size");
  }
  return HostedLoad(input, call).wants(world_size);
}

Result<std::unique_ptr<PlannedLoad>> PlannedLoad::create(const PlannedInput& input,
                                                         const plan::ExchangePlan& exchange,
                                                         const CallContext& call) {
  SHW_RETURN_IF_ERROR(check_input(input));
  auto load = std::make_unique<HostedLoad>(input, call);
  SHW_RETURN_IF_ERROR(load->begin(exchange));
  return std::unique_ptr<PlannedLoad>(std::move(load));
}

}  // namespace shardwright::exec
