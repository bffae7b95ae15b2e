// SPDX-License-Identifier: Apache-2.0
//
// Step numbers are those of load.h. A plan that a host brings back is proved again before the first
// byte is read: each item lies in its chunk and its piece, and the items of a piece fill it exactly
// once (their corner sums add up to that of the piece).
#include "core/exec/load.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/agreement_internal.h"
#include "core/exec/checkpoint_reader_internal.h"
#include "core/exec/load_reads_internal.h"
#include "core/exec/load_targets_internal.h"
#include "core/exec/trace.h"
#include "core/plan/load/make_load_plan.h"

namespace shardwright::exec {
namespace {

using internal::clock_of;
using internal::collective_timeout;
using internal::LoadInput;
using internal::LoadReads;

// Tags of the steps that ranks take together.
constexpr uint32_t kTagTerms = 0x4C01;
constexpr uint32_t kTagOpened = 0x4C02;
constexpr uint32_t kTagPlanned = 0x4C03;
constexpr uint32_t kTagLoaded = 0x4C04;

// The caller's deadline, or the option's when that comes first.
CallContext with_deadline(const CallContext& call, const LoadOptions& options) {
  CallContext limited = call;
  if (options.deadline_ns > 0)
    limited.control.end_within(clock_of(call).monotonic_ns(), options.deadline_ns);
  return limited;
}

// What opening gave on this rank: a checkpoint, or why there is none; and where it looked.
struct Opening {
  const format::Location& location;
  std::shared_ptr<const Checkpoint> checkpoint;  // co-owned with the caller
  Status status;
  // The coordinator has opened it for all: what it read, on others what they are told. Without,
  // each rank has opened it.
  std::optional<format::StoredMetadata> shared;
};
using Accepts = std::function<Status(std::string_view format)>;

std::string terms_text(const format::Location& location, const LoadOptions& options) {
  return internal::place_text(location) + shared_options_text(options);
}

Status identities_differ(const collective::Difference& found) {
  const auto text = [](std::span<const std::byte> each) {
    return escape_text({reinterpret_cast<const char*>(each.data()), each.size()});
  };
  return aborted(fmt::format("rank {} opened '{}' and rank 0 '{}' by generation or content: the "
                             "checkpoint was replaced while ranks opened it; load again",
                             found.rank, text(found.other), text(found.first)))
      .with_detail("rank", std::to_string(found.rank))
      .with_detail("generation", text(found.first));
}

// All were told the same place and options.
Status agree_on_terms(collective::Exchange& exchange, const Opening& mine,
                      const LoadOptions& options) noexcept {
  std::string terms;
  const Status able = without_exceptions("opening", [&] {
    terms = terms_text(mine.location, options);
    return Status();
  });
  return internal::agree_on_text(exchange, kTagTerms, able, terms);
}

// Where each rank has opened the checkpoint itself: it is the same.
Status agree_on_identity(collective::Exchange& exchange, const Opening& mine,
                         const Status& ready) noexcept {
  const std::string_view identity =
      ready.ok() ? mine.checkpoint->opened().identity() : std::string_view();
  SHW_ASSIGN_OR_RETURN(const auto difference,
                       exchange.compare(kTagOpened, ready, internal::said(identity)));
  if (!difference.has_value()) return {};
  return without_exceptions("comparing what ranks opened",
                            [&] { return identities_differ(*difference); });
}

// The name of the format, its length in front, and the bytes.
std::vector<std::byte> encode_metadata(const format::StoredMetadata& metadata) {
  const auto name = std::as_bytes(std::span(metadata.format_name));
  std::vector<std::byte> bytes(1 + name.size() + metadata.bytes.size());
  bytes[0] = static_cast<std::byte>(name.size());
  const auto behind = std::ranges::copy(name, bytes.begin() + 1).out;
  std::ranges::copy(metadata.bytes, behind);
  return bytes;
}

Result<format::StoredMetadata> decode_metadata(std::span<const std::byte> bytes) {
  const size_t name_bytes = bytes.empty() ? 0 : static_cast<size_t>(bytes[0]);
  if (bytes.size() < 1 + name_bytes) return data_loss("what the coordinator opened came cut short");
  format::StoredMetadata metadata;
  const auto name = bytes.subspan(1, name_bytes);
  metadata.format_name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  const auto rest = bytes.subspan(1 + name_bytes);
  metadata.bytes.assign(rest.begin(), rest.end());
  return metadata;
}

// The coordinator's checkpoint comes to all. Afterwards *ready says whether this rank could open
// it.
Status share_opening(Runtime& runtime, collective::Exchange& exchange, Opening* mine, Status* ready,
                     const Accepts& accepts) noexcept {
  if (exchange.size() == 1) return exchange.agree(kTagOpened, *ready);
  std::vector<std::byte> bytes;
  if (ready->ok() && exchange.is_coordinator()) {
    *ready = without_exceptions("sharing what was opened", [&] {
      bytes = encode_metadata(*mine->shared);
      mine->shared.reset();
      return Status();
    });
  }
  std::vector<std::byte> room;
  SHW_ASSIGN_OR_RETURN(const auto told, exchange.broadcast(kTagOpened, *ready, bytes, &room));
  if (exchange.is_coordinator()) return {};
  *ready = without_exceptions("opening", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const format::StoredMetadata metadata, decode_metadata(told));
    SHW_ASSIGN_OR_RETURN(mine->checkpoint,
                         Checkpoint::open_shared(runtime, mine->location, metadata));
    return accepts ? accepts(metadata.format_name) : Status();
  });
  return {};
}

// A plan whose targets can be written.
Result<plan::LoadPlan> plan_for_targets(Runtime& runtime, const Checkpoint& checkpoint,
                                        const State& state, const LoadOptions& options,
                                        int32_t rank) {
  SHW_ASSIGN_OR_RETURN(plan::LoadPlan plan, plan_load(checkpoint, state, options, rank));
  SHW_RETURN_IF_ERROR(internal::check_targets(runtime.devices(), plan, state));
  return plan;
}

// Says that stored rank_local entries belong to ranks that this load does not have; "" when none
// does.
std::string entries_of_absent_ranks(const plan::Catalog& stored, int32_t world_size) {
  uint64_t count = 0;
  int32_t highest = 0;
  const auto look_at = [&](const auto& records) {
    for (const auto& record : records) {
      if (record.rank < world_size) continue;
      ++count;
      highest = std::max(highest, record.rank);
    }
  };
  look_at(stored.tensors);
  look_at(stored.objects);
  if (count == 0) return "";
  return fmt::format(
      "{} stored rank_local entries belong to ranks from {} to {} and were not loaded, for this "
      "load has {} ranks",
      count, world_size, highest, world_size);
}

template <typename Text>
void note(Runtime& runtime, const collective::Collective& collective, LogLevel level,
          const Text& text) noexcept {
  log(runtime.log(), level, "exec", [&] {
    return fmt::format("rank {} of {}: {}", collective.rank(), collective.size(), text());
  });
}

// The end of step 3: all ranks can read, and those of one machine have found each other.
Status agree_on_reads(collective::Exchange& exchange, const Status& ready, const CallContext& call,
                      std::optional<LoadReads>* reads) noexcept {
  if (exchange.size() == 1) return exchange.agree(kTagPlanned, ready);
  if (reads->has_value()) return (*reads)->share(exchange, ready);
  internal::NodeMeeting meeting(exchange, {}, call.control);
  return meeting.meet(ready, {});
}

// A rank that ended because another one failed leaves it to that one to say why; where the process
// of one has ended there is nobody to agree with.
Status agree_on_outcome(collective::Exchange& exchange, const Status& mine) noexcept {
  if (internal::NodeGroup::is_loss_of_rank(mine)) {
    exchange.abort(mine);
    return mine;
  }
  const bool stopped = internal::NodeGroup::is_stopped(mine);
  Status agreed = exchange.agree(kTagLoaded, stopped ? Status() : mine);
  return agreed.ok() ? mine : agreed;
}

// Steps 2 to 5. What a rank has to say after the last of them is made before it, so that all ranks
// end alike.
Result<Report> load_together(Runtime& runtime, Opening opening, State& state,
                             collective::Collective& collective, const LoadOptions& options,
                             const CallContext& call, const Accepts& accepts) noexcept {
  collective::Exchange exchange(collective, collective_timeout(options));
  std::optional<Trace> trace;
  Status ready = opening.status;
  if (ready.ok()) {
    ready = without_exceptions("beginning to load", [&] {
      trace.emplace(options.trace_path, collective.rank(), clock_of(call));
      return Status();
    });
  }
  if (call.progress != nullptr) call.progress->enter(Stage::kPlanning);
  // Whether all were told the same comes first, for it may be why a rank could not open it.
  const bool shared = opening.shared.has_value();
  Status agreed = agree_on_terms(exchange, opening, options);
  if (agreed.ok()) {
    agreed = shared ? share_opening(runtime, exchange, &opening, &ready, accepts)
                    : agree_on_identity(exchange, opening, ready);
  }
  const Checkpoint* const checkpoint = opening.checkpoint.get();
  note(runtime, collective, LogLevel::kInfo, [&] {
    if (!agreed.ok() || !ready.ok())
      return "not loaded: " + (agreed.ok() ? ready : agreed).to_string();
    return fmt::format("loading {} from '{}'", internal::opened_text(checkpoint->opened()),
                       escape_text(format::shown_path(checkpoint->location())));
  });
  SHW_RETURN_IF_ERROR(agreed);
  const int64_t begin = clock_of(call).monotonic_ns();
  Result<plan::LoadPlan> plan =
      without_exceptions("the load plan", [&]() -> Result<plan::LoadPlan> {
        SHW_RETURN_IF_ERROR(ready);
        const Trace::Span span(&*trace, "plan");
        return plan_for_targets(runtime, *checkpoint, state, options, collective.rank());
      });
  const int64_t plan_ns = clock_of(call).monotonic_ns() - begin;
  std::optional<LoadReads> reads;
  ready = without_exceptions("preparing reads", [&]() -> Status {
    SHW_RETURN_IF_ERROR(plan.status());
    reads.emplace(LoadInput{runtime, *checkpoint, options, &*trace}, *plan, state, call,
                  collective.size() > 1);
    return reads->prepare();
  });
  SHW_RETURN_IF_ERROR(agree_on_reads(exchange, ready, call, &reads));
  bool ended = false;
  Result<Report> report = without_exceptions("reading", [&]() -> Result<Report> {
    SHW_ASSIGN_OR_RETURN(Report made, reads->run(&exchange, &ended));
    made.loaded = std::move(plan->loaded);
    made.missing = std::move(plan->missing);
    made.unexpected = std::move(plan->unexpected);
    made.world_size = collective.size();
    std::string absent = entries_of_absent_ranks(checkpoint->catalog(), collective.size());
    if (!absent.empty()) made.notes.push_back(std::move(absent));
    made.times.insert(made.times.begin(), {"plan", plan_ns});
    return made;
  });
  agreed = ended ? report.status() : agree_on_outcome(exchange, report.status());
  internal::write_trace(runtime, *trace);
  SHW_RETURN_IF_ERROR(agreed);
  report->elapsed_ns = clock_of(call).monotonic_ns() - begin;
  report->note_exchange(exchange.received_bytes(), exchange.transport());
  note(runtime, collective, LogLevel::kInfo, [&] {
    return fmt::format("loaded: {} bytes read in {} us", report->bytes_read,
                       report->elapsed_ns / 1000);
  });
  if (call.progress != nullptr) call.progress->enter(Stage::kDone);
  return report;
}

}  // namespace

Result<plan::LoadPlan> plan_load(const Checkpoint& checkpoint, const State& state,
                                 const LoadOptions& options, int32_t rank) {
  SHW_RETURN_IF_ERROR(check_options(options));
  SHW_ASSIGN_OR_RETURN(plan::LoadPlan plan,
                       plan::make_load_plan(state, checkpoint.index(), options.rules, rank));
  plan.generation = std::string(checkpoint.opened().generation());
  return plan;
}

Result<Report> execute_load(Runtime& runtime, const Checkpoint& checkpoint,
                            const plan::LoadPlan& plan, State& state, const LoadOptions& options,
                            const CallContext& call) {
  SHW_RETURN_IF_ERROR(check_options(options));
  const format::OpenedCheckpoint& opened = checkpoint.opened();
  SHW_RETURN_IF_ERROR(internal::check_generation(plan, opened));
  SHW_RETURN_IF_ERROR(plan::check_load_plan(plan, state, opened.catalog()));
  SHW_RETURN_IF_ERROR(internal::check_targets(runtime.devices(), plan, state));
  Trace trace(options.trace_path, plan.rank, clock_of(call));
  LoadReads reads({runtime, checkpoint, options, &trace}, plan, state, with_deadline(call, options),
                  /*shares=*/false);
  SHW_RETURN_IF_ERROR(reads.prepare());
  bool ended = false;
  Result<Report> report = reads.run(nullptr, &ended);
  internal::write_trace(runtime, trace);
  SHW_RETURN_IF_ERROR(report.status());
  report->loaded = plan.loaded;
  report->missing = plan.missing;
  report->unexpected = plan.unexpected;
  if (call.progress != nullptr) call.progress->enter(Stage::kDone);
  return report;
}

Result<Report> load(Runtime& runtime, const Checkpoint& checkpoint, State& state,
                    collective::Collective& collective, const LoadOptions& options,
                    const CallContext& call) {
  // The caller's own for the call.
  const std::shared_ptr<const Checkpoint> lent(std::shared_ptr<const Checkpoint>(), &checkpoint);
  return load_together(runtime, {checkpoint.location(), lent, Status(), std::nullopt}, state,
                       collective, options, with_deadline(call, options), {});
}

Result<Report> load(Runtime& runtime, const format::Location& location, State& state,
                    collective::Collective& collective, const LoadOptions& options,
                    const CallContext& call, const Accepts& accepts) {
  Opening opening{location, nullptr, Status(), format::StoredMetadata()};
  opening.status = without_exceptions("opening", [&]() -> Status {  // step 1
    SHW_RETURN_IF_ERROR(check_options(options));
    SHW_RETURN_IF_ERROR(call.control.check("beginning to load"));
    if (collective.rank() != 0) return {};
    SHW_ASSIGN_OR_RETURN(opening.checkpoint,
                         Checkpoint::open_to_share(runtime, location, &*opening.shared));
    return accepts ? accepts(opening.checkpoint->opened().format_name()) : Status();
  });
  return load_together(runtime, std::move(opening), state, collective, options,
                       with_deadline(call, options), accepts);
}

Status decline_load(collective::Collective& collective, const Status& failure,
                    int64_t deadline_ns) {
  LoadOptions options;
  options.deadline_ns = deadline_ns;
  collective::Exchange exchange(collective, collective_timeout(options));
  // Whatever the others were told: this rank does not take part.
  return exchange.agree(kTagTerms, failure);
}

}  // namespace shardwright::exec
