// SPDX-License-Identifier: Apache-2.0
//
// The save planner: one rank's walk through the steps, with plans as buffers that somebody else
// moves. Every rank: local_plan, finish, execute. The coordinator in addition: global_plan (steps 0
// and 1 of commit.cc) and commit (steps 4 to 8). Each step once and in order.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/digest128.h"
#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/commit_internal.h"
#include "core/exec/content_digests_internal.h"
#include "core/exec/generation_internal.h"
#include "core/exec/rank_file_writer_internal.h"
#include "core/exec/stepwise_save_internal.h"
#include "core/exec/writer_name_internal.h"
#include "core/plan/describe/describe_state.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/write_items.h"
#include "core/plan/wire/wire.h"
#include "core/storage/storage.h"

namespace shardwright::exec {
namespace internal {
namespace {

constexpr uint64_t kFreeSpaceSlackDivisor = 50;  // 2 %

Status out_of_order(std::string_view step, std::string_view needed) {
  return failed_precondition(fmt::format("{} comes once, after {}", step, needed));
}

Status check_devices(const device::Devices& devices, const State& state) {
  for (const TensorRef entry : state.tensors())
    SHW_RETURN_IF_ERROR(
        devices.check_readable(entry.local, entry.name, state.access_to(entry.local)));
  return {};
}

uint64_t bytes_of_state(const State& state) {
  uint64_t bytes = 0;
  for (const TensorRef entry : state.tensors()) {
    for (size_t p = 0; p < entry.pieces.size(); ++p) {
      const Result<uint64_t> size =
          dtype_packed_bytes(entry.local.dtype, element_count_of(entry.pieces.sizes(p)));
      if (size.ok()) bytes += *size;
    }
  }
  for (const ObjectEntry& entry : state.objects()) bytes += entry.size_bytes();
  return bytes;
}

// Results of all ranks; an empty one says that its rank has failed.
Result<std::vector<plan::WriteResult>> decode_results(std::span<const Bytes> results) {
  std::vector<plan::WriteResult> decoded;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    Result<plan::WriteResult> result = results[rank].empty()
                                           ? aborted(fmt::format("rank {} failed to write", rank))
                                           : plan::decode<plan::WriteResult>(results[rank]);
    if (!result.ok()) {
      return result.status()
          .annotated(fmt::format("reading the result of rank {}", rank))
          .with_detail("rank", fmt::to_string(rank));
    }
    decoded.push_back(std::move(*result));
  }
  return decoded;
}

}  // namespace

// The caller's deadline, or the option's, counted from the first step, when that comes first.
CallContext StepwiseSave::limited(const CallContext& call) {
  CallContext result = call;
  if (result.control.clock == nullptr) result.control.clock = &runtime_.clock();
  if (!begin_ns_.has_value()) begin_ns_ = runtime_.clock().monotonic_ns();
  if (options_.deadline_ns > 0) result.control.end_within(*begin_ns_, options_.deadline_ns);
  return result;
}

Status StepwiseSave::describe(const CallContext& call) {
  const CallContext context = limited(call);
  const int64_t begin = runtime_.clock().monotonic_ns();
  SHW_RETURN_IF_ERROR(context.control.check("describing the state"));
  if (call.progress != nullptr) call.progress->enter(Stage::kPlanning);
  const Trace::Span span(&trace_, "local plan");
  plan::ReplicaDigests digests;
  if (position_.world_size > 1) {
    SHW_ASSIGN_OR_RETURN(digests,
                         content_digests(runtime_, *state_, options_.rules, context.control));
  }
  SHW_ASSIGN_OR_RETURN(local_, plan::describe_state(*state_, options_.rules, position_, digests,
                                                    shared_options_text(options_)));
  numbers_.emplace(local_->description);
  part_ = plan::view_of(local_->part);
  local_digest_ = plan::local_digest(local_->part.description_digest, part_, position_);
  note_time("local_plan", begin);
  return {};
}

Result<Bytes> StepwiseSave::local_plan(const CallContext& call) {
  SHW_RETURN_IF_ERROR(describe(call));
  return plan::encode(*local_);
}

plan::RankView StepwiseSave::own() const {
  return {local_->description, *numbers_, part_, static_cast<uint32_t>(position_.rank)};
}

// Step 0: what is at the path, whether it may be replaced, and can be without a moment in between.
Status StepwiseSave::check_target(const format::Location& location) {
  SHW_RETURN_IF_ERROR(storage::need_capability(
      *location.storage, storage::kAtomicCommit,
      "a crash while a manifest is written could tear the only one; save to a storage whose commit "
      "is atomic"));
  SHW_ASSIGN_OR_RETURN(replaced_, format_.read_current(location));
  if (!replaced_.exists || options_.overwrite == Overwrite::kReplace) return {};
  return already_exists(fmt::format("there is a checkpoint at '{}' already; save with overwrite "
                                    "'replace' or choose another path",
                                    escape_text(format::shown_path(location))))
      .with_detail("file", format_.commit_key(location));
}

// The format says here what it cannot hold.
Status StepwiseSave::begin_generation(const format::Location& location) {
  format::SaveSettings settings;
  settings.durable = options_.durability == Durability::kFull;
  settings.digests = options_.digests;
  settings.file_mode = options_.file_mode;
  settings.keep_generations = options_.keep_generations;
  settings.max_shard_bytes = options_.max_shard_bytes;
  settings.common_as_object = options_.common_as_object;
  settings.lists_digests = options_.lists_digests;
  settings.metadata = options_.metadata;
  settings.writer = writer_name();
  SHW_ASSIGN_OR_RETURN(generation_,
                       format_.begin(location, *merged_, *state_, std::move(settings), replaced_));
  return {};
}

Status StepwiseSave::check_free_space(const format::Location& location) const {
  if (source_.goes_on) return {};
  SHW_ASSIGN_OR_RETURN(const uint64_t planned, generation_->planned_bytes());
  const Result<uint64_t> free = location.storage->free_space(location.prefix);
  if (!free.ok() && free.status().code() == StatusCode::kUnimplemented) return {};
  SHW_RETURN_IF_ERROR(free.status());
  const uint64_t needed = planned + planned / kFreeSpaceSlackDivisor + kFreeSpaceReserveBytes;
  if (*free >= needed) return {};
  return resource_exhausted(
             "disk", fmt::format("the save needs {} bytes and keeps {} in reserve, but only {} "
                                 "bytes are free at '{}'; make room or save elsewhere",
                                 planned, needed - planned, *free,
                                 escape_text(format::shown_path(location))))
      .with_detail("expected", fmt::to_string(needed))
      .with_detail("found", fmt::to_string(*free));
}

// A figure for which there is no memory is missing from the report.
void StepwiseSave::note_time(std::string_view stage, int64_t begin_ns) noexcept {
  static_cast<void>(without_exceptions("a time", [&] {
    times_.push_back({std::string(stage), runtime_.clock().monotonic_ns() - begin_ns});
    return Status();
  }));
}

StepwiseSave::~StepwiseSave() {
  if (!committed_) discard_made();
}

// What this coordinator has made goes, before it tried to commit it.
void StepwiseSave::discard_made() noexcept {
  if (generation_ == nullptr) return;
  if (!source_.generation.empty()) return;  // the next one goes on with it
  discard_generation(runtime_, *target_.storage, generation_->parts());
  generation_.reset();
}

// Step 1: a generation that nobody has used before. The plan names it, but does not depend on it.
Status StepwiseSave::make_generation() {
  if (!source_.generation.empty()) {
    merged_->generation = source_.generation;
    return generation_->make(merged_->generation, format::GenerationWriter::Existing::kGoOn);
  }
  Status status;
  for (int32_t draw = 0; draw < kMaxGenerationDraws; ++draw) {
    SHW_ASSIGN_OR_RETURN(merged_->generation, draw_generation(runtime_));
    status = generation_->make(merged_->generation, format::GenerationWriter::Existing::kRefuse);
    if (status.code() != StatusCode::kAlreadyExists) return status;
  }
  return status;
}

// What a killed save left to do is done, and what was found before the fence was had may have
// changed.
Status StepwiseSave::settle_before(const format::Location& location) {
  SHW_RETURN_IF_ERROR(format_.settle(location).annotated("finishing what an earlier save left"));
  const format::CurrentCheckpoint before = replaced_;
  SHW_RETURN_IF_ERROR(check_target(location));
  const bool same = before.exists == replaced_.exists && before.damaged == replaced_.damaged &&
                    before.generation == replaced_.generation &&
                    before.version == replaced_.version &&
                    before.commits_anew == replaced_.commits_anew;
  return same ? Status() : begin_generation(location);
}

// Steps 0 and 1.
Status StepwiseSave::start(const format::Location& location, const CallControl& control,
                           const PlanSource& source) {
  SHW_RETURN_IF_ERROR(check_target(location));
  SHW_ASSIGN_OR_RETURN(merged_, source());
  SHW_RETURN_IF_ERROR(begin_generation(location));
  SHW_RETURN_IF_ERROR(check_free_space(location));
  // Before gc can see the generation. What gc removed until now is not what step 6 will ask for.
  const bool alone = format_.saves_alone();
  const auto mode = alone ? storage::LockMode::kExclusive : storage::LockMode::kShared;
  SHW_ASSIGN_OR_RETURN(
      fence_, lock_path_to_save(runtime_, {location, format_.fence_key(location)}, mode, control));
  if (alone) SHW_RETURN_IF_ERROR(settle_before(location));
  SHW_RETURN_IF_ERROR(make_generation());
  // A checkpoint that is there says that an earlier save came to its commit, so it has done this.
  if (replaced_.exists) return {};
  const format::StoredParts& made = generation_->parts();
  return location.storage->sync_above(made.prefix.empty() ? made.keys.front() : made.prefix);
}

void StepwiseSave::drop_world() {
  discard_made();
  merged_.reset();
  fence_.reset();
}

Status StepwiseSave::plan_world(const format::Location& location, const CallContext& call,
                                const PlanSource& source) {
  const CallContext context = limited(call);
  const int64_t begin = runtime_.clock().monotonic_ns();
  SHW_RETURN_IF_ERROR(context.control.check("planning the save of all ranks"));
  const Trace::Span span(&trace_, "global plan");
  target_ = location;
  Status status = start(location, context.control, source);
  if (!status.ok()) {
    drop_world();
    return status;
  }
  note_time("global_plan", begin);
  return {};
}

Result<std::vector<Bytes>> StepwiseSave::global_plan(std::span<const Bytes> locals,
                                                     const format::Location& location,
                                                     const CallContext& call) {
  if (merged_.has_value()) return out_of_order("global_plan", "local_plan");
  const std::vector<std::span<const std::byte>> buffers(locals.begin(), locals.end());
  SHW_ASSIGN_OR_RETURN(const plan::RankPlans ranks, plan::open_local_saves(buffers));
  SHW_RETURN_IF_ERROR(plan_ranks(ranks, location, call));
  Result<std::vector<Bytes>> lists = encode_lists(ranks);
  if (!lists.ok()) drop_world();
  return lists;
}

Status StepwiseSave::plan_ranks(const plan::RankPlans& ranks, const format::Location& location,
                                const CallContext& call) {
  return plan_world(location, call, [&] { return plan::make_global_plan(ranks, options_.rules); });
}

// The write lists of all ranks as plan buffers, for hosts that move them.
Result<std::vector<Bytes>> StepwiseSave::encode_lists(const plan::RankPlans& ranks) const {
  std::vector<Bytes> lists;
  lists.reserve(ranks.rank_count());
  for (uint32_t rank = 0; rank < ranks.rank_count(); ++rank) {
    SHW_ASSIGN_OR_RETURN(Bytes list, plan::encode(plan::write_list_of(*merged_, ranks.of(rank))));
    lists.push_back(std::move(list));
  }
  return lists;
}

Status StepwiseSave::accept(plan::WriteList list) {
  SHW_RETURN_IF_ERROR(plan::check_write_list(list, *state_, position_));
  log(runtime_.log(), LogLevel::kDebug, "exec", [&] {
    return fmt::format("rank {} of {}: the plan of generation {} has {} items of {} bytes for it",
                       position_.rank, position_.world_size, escape_text(list.generation, 64),
                       list.items.size(), list.payload_bytes());
  });
  if (!is_generation_id(list.generation)) {
    return invalid_argument(fmt::format("the write list names generation '{}', which is none",
                                        escape_text(list.generation, 64)));
  }
  list_ = std::move(list);
  return {};
}

Status StepwiseSave::finish(std::span<const std::byte> mine) {
  if (!local_.has_value() || list_.has_value()) return out_of_order("finish", "local_plan");
  SHW_ASSIGN_OR_RETURN(plan::WriteList list, plan::decode<plan::WriteList>(mine));
  return accept(std::move(list));
}

Result<Bytes> StepwiseSave::execute(const format::Location& location, const CallContext& call) {
  if (!list_.has_value() || executed_) return out_of_order("execute", "finish");
  executed_ = true;
  const CallContext context = limited(call);
  const int64_t begin = runtime_.clock().monotonic_ns();
  if (Progress* progress = call.progress; progress != nullptr) {
    progress->items_total = list_->items.size();
    progress->enter(Stage::kWriting);
  }
  int64_t sync_ns = 0;
  format::RankContents contents{*state_, *local_, *list_,
                                options_.digests && format_.keeps_digests()};
  contents.hashes_file = options_.lists_digests;
  const std::unique_ptr<ContentSource> bytes = source_.open ? source_.open(*list_) : nullptr;
  SHW_ASSIGN_OR_RETURN(
      plan::WriteResult result,
      write_rank_files({runtime_, format_, contents, options_, location, context, &trace_, &sync_ns,
                        &io_engine_, &file_keys_, bytes.get(), !source_.generation.empty()}));
  if (call.progress != nullptr) call.progress->items_done = list_->items.size();
  result_ = std::move(result);
  note_time("write", begin + sync_ns);
  times_.push_back({"sync", sync_ns});
  return plan::encode(*result_);
}

Result<Report> StepwiseSave::publish(std::span<const Bytes> results,
                                     const format::Location& location, const CallContext& call) {
  if (!merged_.has_value() || committed_) return out_of_order("commit", "global_plan");
  committed_ = true;
  const CallContext context = limited(call);
  const int64_t begin = runtime_.clock().monotonic_ns();
  if (call.progress != nullptr) call.progress->enter(Stage::kCommitting);
  const CommitInput input{runtime_, format_,  *generation_, *merged_,     replaced_,
                          options_, location, context,      fence_.get(), &trace_};
  const Result<std::vector<plan::WriteResult>> decoded =
      without_exceptions("the results of all ranks", [&] {
        to_remove_ = generation_->replaced_parts();
        return decode_results(results);
      });
  if (!decoded.ok()) {
    discard_made();
    fence_.reset();
    return decoded.status();
  }
  Result<Report> report = publish_generation(input, *decoded);
  if (!report.ok()) fence_.reset();
  note_time("commit", begin);
  return report;
}

void StepwiseSave::tidy_up(const format::Location& location, const CallContext& call,
                           Report* report) {
  const int64_t begin = runtime_.clock().monotonic_ns();
  const Status settled = without_exceptions("settling", [&] { return format_.settle(location); });
  if (settled.ok()) {
    remove_replaced({runtime_, format_, *generation_, *merged_, replaced_, options_, location, call,
                     fence_.get(), &trace_},
                    to_remove_, report);
  } else {
    report->notes.push_back(fmt::format(
        "the checkpoint is committed, but not yet where other readers look for it; the next save "
        "here goes on with that: {}",
        settled.to_string()));
    log(runtime_.log(), LogLevel::kWarning, "exec", [&] { return report->notes.back(); });
  }
  fence_.reset();
  note_time("clean_up", begin);
}

Result<Report> StepwiseSave::commit(std::span<const Bytes> results,
                                    const format::Location& location, const CallContext& call) {
  Result<Report> report = publish(results, location, call);
  if (!report.ok()) return report;
  // Committed is committed: what fails now is missing from the report.
  static_cast<void>(without_exceptions("cleaning up", [&] {
    tidy_up(location, call, &*report);
    complete(&*report, location);
    return Status();
  }));
  return report;
}

void StepwiseSave::complete(Report* report, const format::Location& location) {
  report->operation = "save";
  report->format = format_.name();
  report->path = format::shown_path(location);
  report->generation = std::string(generation());
  report->rank = position_.rank;
  report->world_size = position_.world_size;
  const bool outlives = storage::offers(*location.storage, storage::kDurable);
  report->durability = !outlives                                  ? "volatile"
                       : options_.durability == Durability::kFull ? "full"
                                                                  : "none";
  report->io_engine = io_engine_;
  report->digests = options_.digests && format_.keeps_digests();
  report->bytes_state = bytes_of_state(*state_);
  if (result_.has_value()) report->bytes_written = list_->payload_bytes();
  report->memory_budget = runtime_.staging().budget_bytes();
  report->staging_peak_bytes = runtime_.staging().peak_bytes();
  report->times = times_;
  if (begin_ns_.has_value()) report->elapsed_ns = runtime_.clock().monotonic_ns() - *begin_ns_;
  if (world_.has_value()) {  // the plan is not needed any more
    world_->plan = std::move(*merged_);
    runtime_.plan_cache().keep(std::move(*world_));
    world_.reset();
  }
  Status traced = trace_.write();
  if (!traced.ok()) report->notes.push_back("the trace was not written: " + traced.to_string());
}

// A rank that wrote and then learns that somebody failed takes its own file away; the coordinator
// also what else there is of the prefix.
void StepwiseSave::abandon(const format::Location& location) noexcept {
  if (merged_.has_value() && !committed_) {
    committed_ = true;
    discard_made();
  } else if (result_.has_value() && !merged_.has_value()) {
    for (const std::string& key : file_keys_) {  // best effort: what stays is found by gc
      static_cast<void>(
          without_exceptions("removing a file", [&] { return location.storage->remove(key); }));
    }
  }
  result_.reset();
  fence_.reset();
}

Result<bool> StepwiseSave::is_committed(const format::Location& location) const {
  SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint now, format_.read_current(location));
  return now.exists && now.generation == generation();
}

Result<std::unique_ptr<SaveSteps>> make_save_steps(Runtime& runtime,
                                                   std::shared_ptr<const State> state,
                                                   SaveOptions options,
                                                   plan::RankPosition position) {
  SHW_RETURN_IF_ERROR(check_options(options));
  if (state == nullptr) return invalid_argument("a save needs a state");
  if (position.world_size < 1 || position.world_size > kMaxWorldSize || position.rank < 0 ||
      position.rank >= position.world_size) {
    return invalid_argument(fmt::format("rank {} of {} is no position among 1 to {} ranks",
                                        position.rank, position.world_size, kMaxWorldSize))
        .with_detail("rank", fmt::to_string(position.rank));
  }
  SHW_RETURN_IF_ERROR(check_devices(runtime.devices(), *state));
  SHW_ASSIGN_OR_RETURN(const format::FormatWriter* const format,
                       runtime.formats().writer(options.format));
  if (options.lists_digests && !format->lists_digests()) {
    return invalid_argument(fmt::format("format '{}' has no list of its files and their SHA-256; "
                                        "save with integrity 'off', or in format 'megatron'",
                                        format->name()))
        .with_detail("option", "integrity");
  }
  return std::unique_ptr<SaveSteps>(std::make_unique<StepwiseSave>(
      runtime, *format, std::move(state), std::move(options), position));
}

}  // namespace internal

Result<std::unique_ptr<SavePlanner>> SavePlanner::create(Runtime& runtime,
                                                         std::shared_ptr<const State> state,
                                                         SaveOptions options,
                                                         plan::RankPosition position) {
  SHW_ASSIGN_OR_RETURN(
      std::unique_ptr<internal::SaveSteps> steps,
      internal::make_save_steps(runtime, std::move(state), std::move(options), position));
  return std::unique_ptr<SavePlanner>(std::move(steps));
}

}  // namespace shardwright::exec
