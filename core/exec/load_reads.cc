// SPDX-License-Identifier: Apache-2.0
#include "core/exec/load_reads_internal.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/exec/block_io_internal.h"
#include "core/exec/checkpoint_reader_internal.h"
#include "core/exec/load_targets_internal.h"

namespace shardwright::exec::internal {
namespace {

// Of the memory through which ranks of one machine share reads; what its budget allows at most.
constexpr uint64_t kSharedAreaBytes = uint64_t{64} << 20;
constexpr uint64_t kLeastSharedBytes = uint64_t{2} << 20;  // a rank with less to read does so alone

Report describe(const Checkpoint& checkpoint, const plan::LoadPlan& plan, const State& state,
                const LoadOptions& options) {
  Report report;
  report.operation = "load";
  report.format = std::string(checkpoint.opened().format_name());
  report.path = format::shown_path(checkpoint.location());
  report.generation = plan.generation;
  report.rank = plan.rank;
  report.verify = options.verify == VerifyRule::kOnRead ? "on_read" : "off";
  report.digests = checkpoint.opened().digest_block_bytes() > 0;
  report.checksums =
      options.verify == VerifyRule::kOnRead && ItemChecksums::are_offered(checkpoint.opened());
  if (!report.digests && !report.checksums)
    report.notes.emplace_back("the checkpoint has no digests; payload was not checked");
  report.objects = plan.objects.size();
  uint64_t last_chunk = UINT64_MAX;
  std::vector<bool> read(state.tensors().size(), false);
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const plan::ReadKey& item = plan.reads.key(i);
    if (item.chunk != last_chunk) ++report.chunks;
    last_chunk = item.chunk;
    if (!read[item.entry]) ++report.tensors;
    read[item.entry] = true;
    const auto count = static_cast<uint64_t>(element_count_of(plan.reads.sizes(i)));
    const auto bits = static_cast<uint64_t>(dtype_bits(state.tensors()[item.entry].local.dtype));
    report.bytes_state += count * bits / 8;
  }
  for (const plan::CastNote& note : plan.casts) {
    report.casts.push_back({std::string(state.tensors().name(note.entry)),
                            std::string(dtype_name(note.stored)),
                            std::string(dtype_name(note.wanted))});
  }
  for (const plan::ShapeNote& note : plan.shapes) {
    const TensorRef entry = state.tensors()[note.entry];
    const auto stored = checkpoint.opened().catalog().shape(note.tensor);
    report.shapes.push_back({std::string(entry.name),
                             {stored.begin(), stored.end()},
                             {entry.global_shape.begin(), entry.global_shape.end()}});
  }
  report.bytes_total = checkpoint.opened().catalog().payload_bytes();
  report.files = checkpoint.opened().files().size();
  for (const format::FileInfo& file : checkpoint.opened().files())
    report.bytes_files += file.size_bytes;
  return report;
}

}  // namespace

const Clock& clock_of(const CallContext& call) {
  return call.control.clock != nullptr ? *call.control.clock : real_clock();
}

int64_t collective_timeout(const LoadOptions& options) {
  if (options.deadline_ns == 0) return kDefaultCollectiveDeadlineNs;
  return options.deadline_ns < 0 ? -1 : options.deadline_ns;
}

void write_trace(Runtime& runtime, const Trace& trace) noexcept {
  const Status written = without_exceptions("the trace", [&] { return trace.write(); });
  if (!written.ok())
    log(runtime.log(), LogLevel::kWarning, "exec", [&] { return written.to_string(); });
}

Status check_generation(const plan::LoadPlan& plan, const format::OpenedCheckpoint& opened) {
  if (plan.generation == opened.generation()) return {};
  return failed_precondition(fmt::format("the load plan is of generation {}, the checkpoint of {}",
                                         escape_text(plan.generation), opened.generation()))
      .with_detail("generation", plan.generation);
}

ObjectBytes::ObjectBytes(const plan::Catalog& stored, const plan::LoadPlan& plan) {
  bytes.reserve(plan.objects.size());
  targets.reserve(plan.objects.size());
  for (const plan::ObjectRead& read : plan.objects) {
    bytes.emplace_back(stored.objects[read.object].size_bytes);
    targets.push_back({read.object, 0, bytes.back()});
  }
}

void ObjectBytes::store(const plan::Catalog& stored, const plan::LoadPlan& plan, State* state) {
  for (size_t i = 0; i < plan.objects.size(); ++i) {
    const plan::ObjectRecord& record = stored.objects[plan.objects[i].object];
    state->replace_object(plan.objects[i].entry, std::string(stored.texts.at(record.content_type)),
                          std::move(bytes[i]));
  }
}

LoadReads::LoadReads(const LoadInput& input, const plan::LoadPlan& plan, State& state,
                     const CallContext& call, bool shares)
    : input_(input),
      plan_(plan),
      state_(state),
      call_(call),
      stored_(input.checkpoint.catalog()),
      objects_(stored_, plan),
      fragments_(input.runtime.devices(), plan, state) {
  request_.fragments = &fragments_;
  request_.objects = objects_.targets;
  request_.rules = {input.options.verify, input.options.read_path};
  request_.whole_blocks = shares;
  copies_ = make_copy_sink(stored_, request_);
}

Status LoadReads::prepare() {
  const Trace::Span span(input_.trace, "find");
  if (call_.progress != nullptr) call_.progress->enter(Stage::kReading);
  SHW_ASSIGN_OR_RETURN(
      needs_, fragment_needs(input_.runtime, input_.checkpoint.opened(), request_, call_.control));
  if (expect_whole_items(input_.checkpoint.opened(), request_.rules, needs_.needs, &checksums_) !=
      nullptr)
    summing_.emplace(*checksums_, *copies_);
  if (!request_.whole_blocks) return {};
  wanted_ = wanted_blocks(&needs_.needs);
  uint64_t bytes = 0;
  for (const WantedBlock& block : wanted_.blocks) bytes += block.length;
  if (bytes < kLeastSharedBytes) wanted_ = {{}, {0}};
  return {};
}

// What nobody checks and the page cache holds costs each rank one copy; through the memory of its
// machine it would be two.
bool LoadReads::is_at_hand() {
  if (checks_blocks(input_.checkpoint.opened(), request_.rules)) return false;
  BlockIo io(setting());
  const std::vector<ReadTask> tasks = make_read_tasks(&needs_.needs, io.task_rules());
  io.expect(needs_.needs, tasks);
  return std::ranges::all_of(tasks, [&](const ReadTask& task) { return io.is_cached(task); });
}

Status LoadReads::leave_what_is_at_hand() {
  if (wanted_.blocks.empty() || input_.options.exchange == ExchangeRule::kAlways) return {};
  if (is_at_hand()) wanted_ = {{}, {0}};
  return {};
}

Status LoadReads::share(collective::Exchange& exchange, const Status& ready) noexcept {
  const Trace::Span span(input_.trace, "share");
  Status able = ready;
  if (able.ok())
    able = without_exceptions("asking the page cache", [&] { return leave_what_is_at_hand(); });
  GroupRules rules;
  const uint64_t alignment =
      std::max<uint64_t>(input_.checkpoint.location().storage->alignment(), 1);
  rules.share = {block_bytes_of(input_.checkpoint.opened()), alignment, kSharedRunBytes};
  rules.patience_ns = collective_timeout(input_.options);
  rules.most_bytes = std::min(input_.runtime.staging().budget_bytes(), kSharedAreaBytes);
  rules.machine = input_.runtime.machine();
  NodeMeeting meeting(exchange, rules, call_.control);
  return find_partners(exchange, able, meeting);
}

Status LoadReads::find_partners(collective::Exchange& exchange, const Status& ready,
                                NodeMeeting& meeting) {
  SHW_RETURN_IF_ERROR(meeting.meet(ready, wanted_.blocks));
  exchanged_.emplace(setting(), wanted(), input_.options.exchange, clock_of(call_));
  SHW_RETURN_IF_ERROR(exchanged_->plan(exchange, Status(), meeting));
  group_ = meeting.join();
  return {};
}

ReadSetting LoadReads::setting() {
  return {input_.runtime,
          input_.checkpoint.location(),
          input_.checkpoint.opened(),
          request_.rules,
          call_,
          sink(),
          input_.trace};
}

BlockExchange::Wanted LoadReads::wanted() const {
  return {needs_.needs, wanted_.blocks, wanted_.begins};
}

Result<plan::WantList> LoadReads::want_list(int32_t world_size) const {
  plan::WantList list;
  list.rank = plan_.rank;
  list.world_size = world_size;
  list.node = plan_.rank;
  list.generation = plan_.generation;
  list.round_bytes = round_bytes(input_.runtime.staging().budget_bytes());
  list.blocks = exchangeable(place_blocks(wanted_.blocks, input_.checkpoint.opened().files()));
  return list;
}

Status LoadReads::use(plan::ExchangePlan plan) {
  const auto placed = place_blocks(wanted_.blocks, input_.checkpoint.opened().files());
  const size_t asked = exchangeable(placed).size();
  if (plan.rank != plan_.rank || plan.generation != plan_.generation ||
      plan.routes.size() != asked || plan.span_bytes == 0) {
    return failed_precondition(fmt::format(
        "the exchange plan is of rank {}, generation {} and {} blocks, the load plan of rank {}, "
        "generation {} and {} blocks; plan the exchange anew with what each rank wants",
        plan.rank, plan.generation, plan.routes.size(), plan_.rank, plan_.generation, asked));
  }
  spread_routes(placed, &plan);
  planned_.emplace(setting(), wanted(), plan::make_rounds(placed, plan, plan.span_bytes),
                   plan.world_size);
  for (const plan::ExchangeRound& round : planned_->rounds().rounds) {
    if (!std::ranges::binary_search(plan.rounds, static_cast<uint64_t>(round.number)))
      return failed_precondition(
          fmt::format("the exchange plan leaves out round {}", round.number));
  }
  SHW_RETURN_IF_ERROR(planned_->reserve());
  planned_->end_reserving();
  SHW_RETURN_IF_ERROR(fill_padding(input_.runtime.devices(), plan_, stored_, state_));
  planned_->join(nullptr, &rest_);
  return {};
}

Result<Report> LoadReads::run(collective::Exchange* exchange, bool* ended) noexcept {
  *ended = false;
  const int64_t begin_ns = clock_of(call_).monotonic_ns();
  Status mine = group_.status();
  if (mine.ok()) mine = without_exceptions("reading", [&] { return read_rest(); });
  if (!mine.ok() && group_.ok() && *group_ != nullptr) (*group_)->stop();
  if (is_exchanged()) {
    mine = exchanged_->run(*exchange, std::move(mine));
    *ended = !mine.ok();
  }
  // Also where it failed: what a save of the state reads there stays zeros.
  const Status cleared = without_exceptions(
      "clearing", [&] { return zero_left_out(input_.runtime.devices(), state_); });
  SHW_RETURN_IF_ERROR(std::move(mine));
  SHW_RETURN_IF_ERROR(cleared);
  return without_exceptions("reading", [&] { return finish(begin_ns); });
}

// Where nothing is shared and nothing verified, a part of a block is enough.
Status LoadReads::want_parts() {
  const bool whole =
      request_.whole_blocks && *group_ == nullptr && !is_exchanged() && !planned_.has_value();
  if (!whole || checks_blocks(input_.checkpoint.opened(), request_.rules)) return {};
  request_.whole_blocks = false;
  SHW_ASSIGN_OR_RETURN(
      needs_, fragment_needs(input_.runtime, input_.checkpoint.opened(), request_, call_.control));
  return {};
}

// All that comes from the storage, by this rank or those of its machine.
Status LoadReads::read_rest() {
  SHW_RETURN_IF_ERROR(want_parts());
  const bool has_begun = planned_.has_value() && !wanted_.blocks.empty();
  if (!has_begun)
    SHW_RETURN_IF_ERROR(fill_padding(input_.runtime.devices(), plan_, stored_, state_));
  if (is_exchanged() && !wanted_.blocks.empty()) {
    exchanged_->join(group_->get(), &rest_);
  } else if (!has_begun) {
    rest_ = std::move(needs_.needs);
  }
  const BlockReader reader(input_.runtime, input_.checkpoint.location(), input_.checkpoint.opened(),
                           input_.trace);
  SHW_ASSIGN_OR_RETURN(totals_,
                       reader.run(std::move(rest_), request_.rules, call_, sink(), group_->get()));
  return {};
}

Result<Report> LoadReads::finish(int64_t begin_ns) {
  Report report = describe(input_.checkpoint, plan_, state_, input_.options);
  for (const ObjectTarget& target : objects_.targets) report.bytes_state += target.memory.size();
  objects_.store(stored_, plan_, &state_);
  if (exchanged_.has_value()) totals_.add(exchanged_->totals());
  if (planned_.has_value()) totals_.add(planned_->totals());
  report.bytes_read = totals_.bytes_read;
  report.bytes_over_read = totals_.bytes_read - std::min(needs_.wanted_bytes, totals_.bytes_read);
  report.bytes_cached = totals_.bytes_cached;
  if (!checks_blocks(input_.checkpoint.opened(), request_.rules)) {
    const uint64_t compared = checksums_.has_value() ? checksums_->compared_bytes() : 0;
    report.bytes_unverified = needs_.wanted_bytes - std::min(compared, needs_.wanted_bytes);
  }
  if (report.checksums && report.bytes_unverified > 0)
    report.notes.push_back(fmt::format(
        "{} bytes were not checked: their checksums are of more than what was read of them",
        report.bytes_unverified));
  report.io_engine = totals_.io_engine;
  report.memory_budget = input_.runtime.staging().budget_bytes();
  report.staging_peak_bytes = input_.runtime.staging().peak_bytes();
  report.elapsed_ns = clock_of(call_).monotonic_ns() - begin_ns;
  report.times.push_back({"read", report.elapsed_ns});
  return report;
}

}  // namespace shardwright::exec::internal
