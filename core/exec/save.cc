// SPDX-License-Identifier: Apache-2.0
//
// save(): the steps of the planner over a collective. Ranks compare the places that they were told,
// then they meet four times; whoever has failed still takes part, with its failure instead of its
// bytes, so nobody waits in vain:
//   1  requests are gathered: 16 bytes of a rank that saves what it saved before, or digests of
//   what
//      it describes by layouts, or its local plan            (failure: nothing was written yet)
//   2  the coordinator's replies are scattered: write lists, or that the remembered ones hold; when
//      requests do not do, 1 and 2 come again with what is missing: descriptions of those who are
//      the
//      first to have them, or local plans                    (failure: the coordinator tidied up)
//   3  results are gathered when files are durable           (failure: each rank removes its own)
//   4  the coordinator commits and puts in place what other readers look for; then the outcome is
//   broadcast, so that no rank is told of a checkpoint that somebody would not find
// Requests and results go to the coordinator only, a reply to its rank: what comes to any
// other rank does not grow with the ranks.
// After exchange 3 only the coordinator may remove anything, because it may be committing. A rank
// for which exchange 3 or 4 broke off therefore leaves its file alone, unless it had failed itself;
// when it missed the outcome it reads the manifest to learn it.
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/agreement_internal.h"
#include "core/exec/plan_request_internal.h"
#include "core/exec/save_steps_internal.h"

namespace shardwright::exec {
namespace {

constexpr uint32_t kRequestTags[] = {0x5302, 0x5304, 0x5305};
static_assert(std::size(kRequestTags) == internal::SaveSteps::kMaxRequests);
constexpr uint32_t kTagPlaces = 0x5301;
constexpr uint32_t kTagReplies = 0x5303;
constexpr uint32_t kTagResults = 0x5306;
constexpr uint32_t kTagOutcome = 0x5307;

// Of an encoded result of a rank that has written; longer ones take memory when they come.
constexpr size_t kMaxResultBytes = 1024;

// What the other ranks put into their reports about the whole checkpoint.
struct Outcome {
  uint64_t tensors = 0;
  uint64_t objects = 0;
  uint64_t chunks = 0;
  uint64_t files = 0;
  uint64_t bytes_total = 0;
  uint64_t bytes_files = 0;
  uint64_t directory_sync = 0;  // 0 ok, 1 unsupported, 2 skipped
  uint64_t is_published = 1;
};
constexpr std::string_view kDirectorySyncWords[] = {"ok", "unsupported", "skipped"};

Outcome outcome_of(const Report& report) {
  Outcome outcome{report.tensors,
                  report.objects,
                  report.chunks,
                  report.files,
                  report.bytes_total,
                  report.bytes_files,
                  0,
                  1};
  for (uint64_t word = 0; word < std::size(kDirectorySyncWords); ++word) {
    if (report.dir_fsync == kDirectorySyncWords[word]) outcome.directory_sync = word;
  }
  return outcome;
}

// Of a checkpoint that is there, whatever the coordinator told of it.
void decode_outcome(std::span<const std::byte> bytes, Report* report) {
  Outcome outcome;
  if (bytes.size() != sizeof(outcome)) return;
  std::memcpy(&outcome, bytes.data(), sizeof(outcome));
  report->tensors = outcome.tensors;
  report->objects = outcome.objects;
  report->chunks = outcome.chunks;
  report->files = outcome.files;
  report->bytes_total = outcome.bytes_total;
  report->bytes_files = outcome.bytes_files;
  if (outcome.directory_sync < std::size(kDirectorySyncWords))
    report->dir_fsync = kDirectorySyncWords[outcome.directory_sync];
  if (outcome.is_published == 0) report->notes.emplace_back(internal::kNotYetPublished);
}

int64_t collective_timeout(const SaveOptions& options) {
  if (options.deadline_ns == 0) return kDefaultCollectiveDeadlineNs;
  return options.deadline_ns < 0 ? -1 : options.deadline_ns;
}

uint64_t bytes_of_tensors(const State& state) {
  uint64_t total = 0;
  for (const TensorRef entry : state.tensors()) {
    const auto bytes = dtype_packed_bytes(entry.local.dtype, entry.local.element_count());
    if (bytes.ok()) total += *bytes;
  }
  return total;
}

std::vector<Bytes> parts_of(const collective::Gathered& all) {
  std::vector<Bytes> parts;
  parts.reserve(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank)
    parts.emplace_back(all.part(rank).begin(), all.part(rank).end());
  return parts;
}

class CollectiveSave {
 public:
  CollectiveSave(const format::Location& location, collective::Collective& collective,
                 const SaveOptions& options, const CallContext& call, LogSink& log)
      : location_(location),
        exchange_(collective, collective_timeout(options)),
        call_(call),
        log_(log) {}

  // steps holds why there are none on this rank, otherwise.
  Result<Report> run(Result<std::unique_ptr<internal::SaveSteps>> steps) noexcept {
    Status ready = steps.status();
    if (steps.ok()) {
      steps_ = std::move(*steps);
      ready = without_exceptions("beginning to save",
                                 [&] { return call_.control.check("beginning to save"); });
    }
    note(LogLevel::kInfo,
         [&] { return fmt::format("saving to '{}'", escape_text(format::shown_path(location_))); });
    Result<Report> report = carry_out(ready);
    if (report.ok()) report->note_exchange(exchange_.received_bytes(), exchange_.transport());
    note(LogLevel::kInfo, [&] {
      return report.ok() ? fmt::format("committed generation {}: {} bytes in {} files",
                                       steps_->generation(), report->bytes_total, report->files)
                         : "not saved: " + report.status().to_string();
    });
    return report;
  }

 private:
  template <typename Text>
  void note(LogLevel level, const Text& text) noexcept {
    log(log_, level, "exec", [&] {
      return fmt::format("rank {} of {}: {}", exchange_.rank(), exchange_.size(), text());
    });
  }

  // An exchange, where one waits for the slowest rank.
  template <typename Round>
  auto in_exchange(const char* what, const Round& exchange) noexcept -> decltype(exchange()) {
    const int64_t begin_ns = real_clock().monotonic_ns();
    auto result = exchange();
    note(LogLevel::kDebug, [&] {
      return fmt::format("{}: all ranks have met after {} us", what,
                         (real_clock().monotonic_ns() - begin_ns) / 1000);
    });
    return result;
  }

  Result<Report> carry_out(const Status& ready) noexcept {
    SHW_RETURN_IF_ERROR(plan(ready));
    Status written = write();
    if (written.ok()) return commit();
    return commit_is_open_ ? read_outcome(written) : Result<Report>(std::move(written));
  }

  // All ranks were told the same place.
  Status compare_places(const Status& ready) noexcept {
    std::string place;
    Status able = ready;
    if (able.ok()) {
      able = without_exceptions("the place of a save", [&] {
        place = internal::place_text(location_);
        return Status();
      });
    }
    return in_exchange("places",
                       [&] { return internal::agree_on_text(exchange_, kTagPlaces, able, place); });
  }

  // Exchanges 1 and 2, again when the coordinator needs more than the ranks sent. Afterwards this
  // rank has its reply.
  Status plan(const Status& ready) noexcept {
    SHW_RETURN_IF_ERROR(compare_places(ready));
    Result<Bytes> request =
        without_exceptions("the local plan", [&] { return steps_->request(call_); });
    for (const uint32_t tag : kRequestTags) {
      SHW_ASSIGN_OR_RETURN(reply_, ask(tag, request));
      if (!internal::asks_again(reply_)) return {};
      request = without_exceptions("the local plan", [&] { return steps_->next_request(reply_); });
    }
    steps_->abandon(location_);
    return without_exceptions("planning", [] {
      return internal_error("the coordinator asks for more than the ranks can send");
    });
  }

  // Gives the request of this rank for the coordinator's reply.
  Result<Bytes> ask(uint32_t tag, const Result<Bytes>& request) noexcept {
    collective::Gathered requests;
    SHW_RETURN_IF_ERROR(in_exchange("requests", [&] {
      return exchange_.gather(
          tag, request.status(),
          request.ok() ? std::span<const std::byte>(*request) : std::span<const std::byte>(),
          &requests);
    }));
    std::vector<Bytes> replies;
    Status planned;
    if (exchange_.is_coordinator()) {
      Result<std::vector<Bytes>> made = without_exceptions(
          "the global plan", [&] { return steps_->reply(parts_of(requests), location_, call_); });
      planned = made.status();
      if (made.ok()) replies = std::move(*made);
    }
    Result<Bytes> reply =
        in_exchange("replies", [&] { return exchange_.scatter(kTagReplies, planned, replies); });
    if (!reply.ok()) steps_->abandon(location_);
    return reply;
  }

  // Step 2 and 3 and exchange 3.
  Status write() noexcept {
    const Result<Bytes> written = without_exceptions("writing", [&]() -> Result<Bytes> {
      SHW_RETURN_IF_ERROR(steps_->take(reply_));
      // What ranks tell from here on finds its place without memory, so that all hear it.
      const int32_t told_of = exchange_.is_coordinator() ? exchange_.size() : 1;
      results_.reserve(static_cast<size_t>(told_of), kMaxResultBytes);
      told_.reserve(sizeof(Outcome) + collective::Exchange::kHeaderBytes);
      return steps_->execute(location_, call_);
    });
    const Status mine = written.status();
    const Status gathered = in_exchange("results", [&] {
      return exchange_.gather(
          kTagResults, mine,
          written.ok() ? std::span<const std::byte>(*written) : std::span<const std::byte>(),
          &results_);
    });
    if (gathered.ok()) return {};
    // An agreed failure is known to all. When the exchange broke off instead, others may believe
    // that all went well, and only the one that commits may decide.
    const bool agreed = !exchange_.broken() || exchange_.told_failure() != StatusCode::kOk;
    commit_is_open_ = !agreed && mine.ok() && !exchange_.is_coordinator();
    if (!commit_is_open_) steps_->abandon(location_);
    return gathered;
  }

  // Steps 4 to 8 with exchange 4 as step 7. Once published, nothing undoes it: what fails then, for
  // want of memory or other reasons, is missing from the report and that is all.
  Result<Report> commit() noexcept {
    if (!exchange_.is_coordinator()) return learn_outcome();
    Result<Report> report = without_exceptions(
        "the commit", [&] { return steps_->publish(parts_of(results_), location_, call_); });
    Outcome outcome = report.ok() ? outcome_of(*report) : Outcome();
    outcome.is_published = steps_->is_published() ? 1 : 0;
    const Status shared =
        exchange_
            .broadcast(kTagOutcome, report.status(), std::as_bytes(std::span(&outcome, 1)), &told_)
            .status();
    if (!report.ok()) {
      steps_->abandon(location_);
      // When the transport breaks as well, the first cause is what the caller must know.
      return exchange_.broken() ? report.status() : shared;
    }
    add_to_report("what others heard", [&] {
      // The checkpoint is there; that others may not have heard of it does not undo it.
      if (!shared.ok())
        report->notes.push_back("telling the outcome to all ranks: " + shared.to_string());
    });
    add_to_report("cleaning up", [&] { steps_->tidy_up(location_, call_, &*report); });
    add_to_report("the report", [&] { steps_->complete(&*report, location_); });
    return report;
  }

  Result<Report> learn_outcome() noexcept {
    if (call_.progress != nullptr) call_.progress->enter(Stage::kCommitting);
    const auto told = in_exchange(
        "outcome", [&] { return exchange_.broadcast(kTagOutcome, Status(), {}, &told_); });
    // UNAVAILABLE: the coordinator may not know it either.
    const StatusCode heard = exchange_.told_failure();
    const bool known = heard != StatusCode::kOk && heard != StatusCode::kUnavailable;
    if (!told.ok() && exchange_.broken() && !known) return read_outcome(told.status());
    SHW_RETURN_IF_ERROR(told.status());
    Report report;
    add_to_report("the report", [&] {
      decode_outcome(*told, &report);
      steps_->complete(&report, location_);
    });
    return report;
  }

  template <typename Step>
  void add_to_report(const char* what, const Step& step) noexcept {
    static_cast<void>(without_exceptions(what, [&] {
      step();
      return Status();
    }));
  }

  // The message did not come, or the exchange before it broke off: the manifest says what has
  // happened, if it can be read.
  Result<Report> read_outcome(const Status& missed) noexcept {
    using Standing = internal::SaveSteps::Standing;
    const Result<Standing> standing =
        without_exceptions("reading the outcome", [&] { return steps_->standing(location_); });
    if (standing.ok() && *standing == Standing::kCommitted) {
      return Status(missed)
          .annotated(internal::kNotYetPublished)
          .with_detail("generation", steps_->generation());
    }
    if (standing.ok() && *standing == Standing::kPublished) {
      Report report;
      add_to_report("the report", [&] {
        report.notes.push_back(
            "the outcome was read from the manifest, because its message did not "
            "come: " +
            missed.to_string());
        steps_->complete(&report, location_);
      });
      return report;
    }
    return unknown_commit(
        Status(missed)
            .annotated("the coordinator's outcome did not reach this rank; it is unknown whether "
                       "the save was committed")
            .with_detail("generation", steps_->generation()));
  }

  const format::Location& location_;
  collective::Exchange exchange_;
  const CallContext& call_;
  LogSink& log_;
  std::unique_ptr<internal::SaveSteps> steps_;
  Bytes reply_;
  collective::Gathered results_;
  std::vector<std::byte> told_;
  bool commit_is_open_ = false;  // this rank did its part, and cannot know what became of it
};

}  // namespace

Result<Report> save(Runtime& runtime, std::shared_ptr<const State> state,
                    const format::Location& location, collective::Collective& collective,
                    const SaveOptions& options, const CallContext& call) {
  CollectiveSave task(location, collective, options, call, runtime.log());
  Result<Report> report = task.run(without_exceptions("beginning to save", [&] {
    return internal::make_save_steps(runtime, std::move(state), options,
                                     {collective.rank(), collective.size()});
  }));
  if (report.ok() && call.progress != nullptr) call.progress->enter(Stage::kDone);
  return report;
}

namespace {

// All of a save on workers of its own, which have its priority; this thread only waits for them.
Result<Report> save_below(Runtime& runtime, std::shared_ptr<const State> state,
                          const format::Location& location, collective::Collective& collective,
                          const SaveOptions& options, const CallContext& call) {
  std::unique_ptr<Runtime> below;
  std::optional<Result<Report>> report;
  Status begun = without_exceptions("beginning to save", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(below, runtime.for_call(0, 0, options.priority));
    TaskGroup work(&below->pool());
    work.run([&] {
      report = save(*below, std::move(state), location, collective, options, call);
      return Status();
    });
    return work.wait();
  });
  if (report.has_value()) return *std::move(report);
  return decline_save(collective, begun, options.deadline_ns);
}

}  // namespace

Result<Report> save_in_background(Runtime& runtime, std::shared_ptr<const State> state,
                                  const format::Location& location,
                                  collective::Collective& collective, const SaveOptions& options,
                                  uint64_t staging_limit, const CallContext& call) {
  const bool behind = options.priority == ThreadPriority::kBackground;
  const auto run = behind ? save_below : save;
  if (options.hold || (staging_limit != 0 && bytes_of_tensors(*state) > staging_limit))
    return run(runtime, std::move(state), location, collective, options, call);
  const int64_t begin_ns = runtime.clock().monotonic_ns();
  const auto staged =
      without_exceptions("staging", [&] { return stage_state(runtime, *state, call); });
  const int64_t stage_ns = runtime.clock().monotonic_ns() - begin_ns;
  if (!staged.ok()) return decline_save(collective, staged.status(), options.deadline_ns);
  if (call.on_staged) call.on_staged();
  CallContext rest = call;
  rest.on_staged = nullptr;
  Result<Report> report = run(runtime, *staged, location, collective, options, rest);
  if (report.ok()) {
    report->elapsed_ns += stage_ns;
    // Committed is committed, with or without memory for this line of the report.
    static_cast<void>(without_exceptions("the report", [&] {
      report->times.insert(report->times.begin(), {"stage", stage_ns});
      return Status();
    }));
  }
  return report;
}

Status decline_save(collective::Collective& collective, const Status& failure,
                    int64_t deadline_ns) {
  SaveOptions options;
  options.deadline_ns = deadline_ns;
  const format::Location nowhere;
  const CallContext call;
  return CollectiveSave(nowhere, collective, options, call, null_log_sink()).run(failure).status();
}

}  // namespace shardwright::exec
