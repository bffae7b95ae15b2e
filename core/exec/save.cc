// SPDX-License-Identifier: Apache-2.0
//
// save(): the steps of the planner over a collective. Ranks meet four times; whoever has failed
// still takes part, with its failure instead of its bytes, so nobody waits in vain:
//   1  offers are gathered, each with a digest of the place that its rank was told, and a difference
//      of places ends the save here: 16 bytes of a rank that saves what it saved before, or digests of what
//      it describes by layouts, or its local plan            (failure: nothing was written yet)
//   2  the coordinator's answers are scattered: write lists, or that the remembered ones hold; when
//      offers do not do, 1 and 2 come again with what is missing: descriptions of those who are the
//      first to have them, or local plans                    (failure: the coordinator tidied up)
//   3  results are gathered when files are durable           (failure: each rank removes its own)
//   4  the coordinator commits; the outcome is broadcast
// After meeting 3 only the coordinator may remove anything, because it may be committing. A rank
// for which meeting 3 or 4 broke off therefore leaves its file alone, unless it had failed itself;
// when it missed the outcome it reads the manifest to learn it.
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/exec/agreement_internal.h"
#include "core/exec/pause_points.h"
#include "core/exec/plan_offer_internal.h"
#include "core/exec/save_steps_internal.h"
#include "core/exec/without_exceptions_internal.h"
#include "core/format/native/native_checkpoint.h"

namespace shardwright::exec {
namespace {

using internal::without_exceptions;

constexpr uint32_t kOfferTags[] = {0x5301, 0x5305, 0x5306};
static_assert(std::size(kOfferTags) == internal::SaveSteps::kMaxOffers);
constexpr uint32_t kTagPlaces = 0x5307;
constexpr uint32_t kTagAnswers = 0x5302;
constexpr uint32_t kTagResults = 0x5303;
constexpr uint32_t kTagOutcome = 0x5304;

// What the other ranks put into their reports about the whole checkpoint.
struct Outcome {
  uint64_t tensors = 0;
  uint64_t objects = 0;
  uint64_t chunks = 0;
  uint64_t files = 0;
  uint64_t bytes_total = 0;
  uint64_t bytes_files = 0;
  uint64_t directory_sync = 0;  // 0 ok, 1 unsupported, 2 skipped
};
constexpr std::string_view kDirectorySyncWords[] = {"ok", "unsupported", "skipped"};

Bytes encode_outcome(const Report& report) {
  Outcome outcome{report.tensors,
                  report.objects,
                  report.chunks,
                  report.files,
                  report.bytes_total,
                  report.bytes_files,
                  0};
  for (uint64_t word = 0; word < std::size(kDirectorySyncWords); ++word) {
    if (report.dir_fsync == kDirectorySyncWords[word]) outcome.directory_sync = word;
  }
  Bytes bytes(sizeof(outcome));
  std::memcpy(bytes.data(), &outcome, sizeof(outcome));
  return bytes;
}

Result<Report> decode_outcome(const Bytes& bytes) {
  Outcome outcome;
  if (bytes.size() != sizeof(outcome)) {
    return internal_error(fmt::format("the coordinator told the outcome in {} bytes, expected {}",
                                      bytes.size(), sizeof(outcome)));
  }
  std::memcpy(&outcome, bytes.data(), sizeof(outcome));
  Report report;
  report.tensors = outcome.tensors;
  report.objects = outcome.objects;
  report.chunks = outcome.chunks;
  report.files = outcome.files;
  report.bytes_total = outcome.bytes_total;
  report.bytes_files = outcome.bytes_files;
  if (outcome.directory_sync < std::size(kDirectorySyncWords))
    report.dir_fsync = kDirectorySyncWords[outcome.directory_sync];
  return report;
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

class CollectiveSave {
 public:
  CollectiveSave(const format::Location& location, collective::Collective& collective,
                 const SaveOptions& options, const CallContext& call)
      : location_(location), exchange_(collective, collective_timeout(options)), call_(call) {}

  // steps holds why there are none on this rank, otherwise.
  Result<Report> run(Result<std::unique_ptr<internal::SaveSteps>> steps) {
    const Status ready = steps.ok() ? call_.control.check("beginning to save") : steps.status();
    if (steps.ok()) steps_ = std::move(*steps);
    SHW_RETURN_IF_ERROR(plan(ready));
    Status written = write();
    if (written.ok()) return commit();
    return commit_is_open_ ? read_outcome(written) : Result<Report>(std::move(written));
  }

 private:
  // Meetings 1 and 2, again when the coordinator needs more than the ranks offered. Afterwards this
  // rank has its answer.
  Status plan(const Status& ready) {
    Result<Bytes> offer =
        ready.ok() ? without_exceptions("the local plan", [&] { return steps_->offer(call_); })
                   : Result<Bytes>(ready);
    for (const uint32_t tag : kOfferTags) {
      SHW_ASSIGN_OR_RETURN(answer_, ask(tag, offer));
      if (!internal::asks_for_offer(answer_)) return {};
      offer = without_exceptions("the local plan", [&] { return steps_->further_offer(answer_); });
    }
    return internal_error("the coordinator asks for more than the ranks can offer");
  }

  // Gives the offer of this rank for the coordinator's answer.
  Result<Bytes> ask(uint32_t tag, const Result<Bytes>& offer) {
    SHW_ASSIGN_OR_RETURN(const std::vector<Bytes> offers, gather_offers(tag, offer));
    std::vector<Bytes> answers;
    Status planned;
    if (exchange_.is_coordinator()) {
      Result<std::vector<Bytes>> made = without_exceptions(
          "the global plan", [&] { return steps_->answer(offers, location_, call_); });
      planned = made.status();
      if (made.ok()) answers = std::move(*made);
    }
    Result<Bytes> answer = exchange_.scatter(kTagAnswers, planned, answers);
    if (!answer.ok()) steps_->abandon(location_);
    return answer;
  }

  // The first time signed with the place. A rank that has failed brings nothing.
  Result<std::vector<Bytes>> gather_offers(uint32_t tag, const Result<Bytes>& offer) {
    if (!offer.ok()) return exchange_.gather_all(tag, offer.status(), {});
    if (tag != kOfferTags[0]) return exchange_.gather_all(tag, Status(), *offer);
    const std::string place = internal::place_text(location_);
    SHW_ASSIGN_OR_RETURN(std::vector<Bytes> offers,
                         exchange_.gather_all(tag, Status(), internal::sign(*offer, place)));
    SHW_RETURN_IF_ERROR(internal::check_signatures(exchange_, kTagPlaces, place, &offers));
    return offers;
  }

  // Step 2 and 3 and meeting 3.
  Status write() {
    Result<Bytes> written = without_exceptions("writing", [&]() -> Result<Bytes> {
      SHW_RETURN_IF_ERROR(steps_->take(answer_));
      return steps_->execute(location_, call_);
    });
    const Status mine = written.status();
    const Bytes result = written.ok() ? std::move(*written) : Bytes();
    Result<std::vector<Bytes>> results = exchange_.gather_all(kTagResults, mine, result);
    if (results.ok()) {
      results_ = std::move(*results);
      return {};
    }
    // An agreed failure is known to all. When the meeting broke off instead, others may believe
    // that all went well, and only the one that commits may decide.
    const bool agreed = !exchange_.broken();
    commit_is_open_ = !agreed && mine.ok() && !exchange_.is_coordinator();
    if (!commit_is_open_) steps_->abandon(location_);
    return results.status();
  }

  // Steps 4 to 8 with meeting 4 as step 7.
  Result<Report> commit() {
    if (!exchange_.is_coordinator()) return learn_outcome();
    Result<Report> report = without_exceptions(
        "the commit", [&] { return steps_->publish(results_, location_, call_); });
    internal::pause_point("outcome");
    const Bytes told = report.ok() ? encode_outcome(*report) : Bytes();
    const Result<Bytes> shared = exchange_.broadcast(kTagOutcome, report.status(), told);
    // When the transport breaks as well, the first cause is what the caller must know.
    if (!report.ok()) return exchange_.broken() ? report.status() : shared.status();
    // The checkpoint is there; that others may not have heard of it does not undo it.
    if (!shared.ok())
      report->notes.push_back("telling the outcome to all ranks: " + shared.status().to_string());
    steps_->tidy_up(location_, call_, &*report);
    steps_->complete(&*report, location_);
    return report;
  }

  Result<Report> learn_outcome() {
    if (call_.progress != nullptr) call_.progress->enter(Stage::kCommitting);
    const Result<Bytes> told = exchange_.broadcast(kTagOutcome, Status(), {});
    Result<Report> report = told.ok() ? decode_outcome(*told) : Result<Report>(told.status());
    if (!report.ok() && exchange_.broken()) return read_outcome(report.status());
    if (report.ok()) steps_->complete(&*report, location_);
    return report;
  }

  // The message did not come, or the meeting before it broke off: the manifest says what has happened, if it can be read.
  Result<Report> read_outcome(const Status& missed) {
    const auto now = format::native::read_current(location_);
    if (now.ok() && now->exists && now->generation == steps_->generation()) {
      Result<Report> report = Report();
      report->notes.push_back(
          "the outcome was read from the manifest, because its message did not "
          "come: " +
          missed.to_string());
      steps_->complete(&*report, location_);
      return report;
    }
    return Status(missed)
        .annotated(
            "the coordinator's outcome did not reach this rank; it is unknown whether the "
            "save was committed")
        .with_detail("commit", "unknown")
        .with_detail("generation", steps_->generation());
  }

  const format::Location& location_;
  collective::Exchange exchange_;
  const CallContext& call_;
  std::unique_ptr<internal::SaveSteps> steps_;
  Bytes answer_;
  std::vector<Bytes> results_;
  bool commit_is_open_ = false;  // this rank did its part, and cannot know what became of it
};

}  // namespace

Result<Report> save(Runtime& runtime, std::shared_ptr<const State> state,
                    const format::Location& location, collective::Collective& collective,
                    const SaveOptions& options, const CallContext& call) {
  CollectiveSave task(location, collective, options, call);
  Result<Report> report = task.run(without_exceptions("beginning to save", [&] {
    return internal::make_save_steps(runtime, std::move(state), options,
                                     {collective.rank(), collective.size()});
  }));
  if (report.ok() && call.progress != nullptr) call.progress->enter(Stage::kDone);
  return report;
}

Result<Report> save_in_background(Runtime& runtime, std::shared_ptr<const State> state,
                                  const format::Location& location,
                                  collective::Collective& collective, const SaveOptions& options,
                                  uint64_t staging_limit, const CallContext& call) {
  if (staging_limit != 0 && bytes_of_tensors(*state) > staging_limit)
    return save(runtime, std::move(state), location, collective, options, call);
  const int64_t begin_ns = runtime.clock().monotonic_ns();
  const auto staged =
      without_exceptions("staging", [&] { return stage_state(runtime, *state, call); });
  const int64_t stage_ns = runtime.clock().monotonic_ns() - begin_ns;
  if (!staged.ok()) return decline_save(collective, staged.status(), options.deadline_ns);
  if (call.on_staged) call.on_staged();
  CallContext rest = call;
  rest.on_staged = nullptr;
  Result<Report> report = save(runtime, *staged, location, collective, options, rest);
  if (report.ok()) {
    report->times.insert(report->times.begin(), {"stage", stage_ns});
    report->elapsed_ns += stage_ns;
  }
  return report;
}

Status decline_save(collective::Collective& collective, const Status& failure,
                    int64_t deadline_ns) {
  SaveOptions options;
  options.deadline_ns = deadline_ns;
  const format::Location nowhere;
  const CallContext call;
  return CollectiveSave(nowhere, collective, options, call).run(failure).status();
}

}  // namespace shardwright::exec
