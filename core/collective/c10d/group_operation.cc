// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include "core/collective/c10d/group_operation_internal.h"

namespace shardwright::collective::internal {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int64_t kProblemBytes = 256;
// What a backend gets on top of the limit: it ends by itself what was given up.
constexpr milliseconds kGraceForBackend{5000};
// For an operation that the rank which gave up had completed: it has done its part.
constexpr std::chrono::seconds kGraceForCompletion{5};
constexpr nanoseconds kLongestLimit = std::chrono::hours(24 * 365);
constexpr std::chrono::microseconds kDevicePause{50};

::c10d::ReduceOp reduction_of(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kMin:
      return ::c10d::ReduceOp::MIN;
    case ReduceOperation::kMax:
      return ::c10d::ReduceOp::MAX;
    case ReduceOperation::kSum:
      break;
  }
  return ::c10d::ReduceOp::SUM;
}

void reduce_into(Payload* payload, const Payload& more, ReduceOperation operation) {
  for (size_t i = 0; i < more.size(); ++i) {
    int64_t& value = (*payload)[i];
    if (operation == ReduceOperation::kMin) {
      value = std::min(value, more[i]);
    } else if (operation == ReduceOperation::kMax) {
      value = std::max(value, more[i]);
    } else {  // of bytes of one rank, or of halves of numbers
      value = static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(more[i]));
    }
  }
}

Verdict verdict_on(std::span<const Record> records, ReduceOperation reduction) {
  Verdict verdict;
  const Record& first = records.front();
  const auto differs = [&](const Record& each) { return each.signature != first.signature; };
  const auto has_problem = [](const Record& each) { return each.has_problem != 0; };
  auto named = std::ranges::find_if(records, differs);
  if (named != records.end()) {
    verdict.finding = Verdict::Finding::kOutOfStep;
    verdict.kinds = {first.kind, named->kind};
    verdict.sequences = {first.sequence, named->sequence};
  } else if (named = std::ranges::find_if(records, has_problem); named != records.end()) {
    verdict.finding = Verdict::Finding::kProblem;
  }
  verdict.rank = static_cast<int32_t>(named - records.begin());
  if (named != records.end()) return verdict;
  uint64_t apart = 0;
  verdict.payload = first.payload;
  for (const Record& record : records) apart += record.apart;
  for (const Record& record : records.subspan(1))
    reduce_into(&verdict.payload, record.payload, reduction);
  if (apart != 0) verdict.finding = Verdict::Finding::kApart;
  return verdict;
}

// The first line: what follows are addresses of its code.
std::string brief(std::string_view reason) {
  return std::string(reason.substr(0, reason.find('\n')));
}

}  // namespace

at::Tensor bytes_of(std::span<const std::byte> data) {
  at::Tensor made = at::empty({static_cast<int64_t>(data.size())}, at::kByte);
  if (!data.empty()) std::memcpy(made.data_ptr(), data.data(), data.size());
  return made;
}

at::Tensor bytes_at(std::byte* memory, size_t size_bytes) {
  return at::from_blob(memory, {static_cast<int64_t>(size_bytes)}, at::kByte);
}

at::Tensor numbers_of(std::span<const int64_t> values) {
  at::Tensor made = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  if (!values.empty()) std::memcpy(made.data_ptr(), values.data(), values.size_bytes());
  return made;
}

GroupOperation::GroupOperation(SideGroup& group, const Wanted& wanted)
    : group_(group),
      wanted_(wanted),
      until_(steady_clock::now() + std::min(wanted.limit, kLongestLimit)) {}

// ---- the opening ----

Result<Opened> GroupOperation::open(const Opening& mine) {
  const Record own{.signature = mine.signature,
                   .apart = mine.apart,
                   .sequence = wanted_.sequence,
                   .has_problem = mine.problem.ok() ? 0U : 1U,
                   .kind = static_cast<uint32_t>(wanted_.kind),
                   .payload = mine.payload};
  SHW_ASSIGN_OR_RETURN(const Verdict verdict, share(own, mine.reduction));
  if (verdict.finding == Verdict::Finding::kOutOfStep) return out_of_step(verdict);
  if (verdict.finding == Verdict::Finding::kProblem)
    return tell_problem(verdict.rank, mine.problem);
  return Opened{verdict.finding == Verdict::Finding::kFits, verdict.payload};
}

// The record to rank 0, and its verdict back. What waits for the verdict is begun before anything
// is waited for.
Result<Verdict> GroupOperation::share(const Record& mine, ReduceOperation reduction) {
  Verdict verdict;
  const bool judges = group_.rank() == 0;
  at::Tensor told;
  if (judges) {
    SHW_ASSIGN_OR_RETURN(verdict, judge(mine, reduction));
    told = placed(bytes_of(std::as_bytes(std::span(&verdict, 1))));
    SHW_RETURN_IF_ERROR(wait(begin_broadcast(told, 0)));
    return verdict;
  }
  std::vector<at::Tensor> sent{placed(bytes_of(std::as_bytes(std::span(&mine, 1))))};
  std::vector<std::vector<at::Tensor>> nothing;
  told = at::empty({sizeof verdict}, sent[0].options());
  ::c10d::GatherOptions options;
  options.rootRank = 0;
  options.timeout = backend_limit();
  const auto sending = group_.backend().gather(nothing, sent, options);
  const auto waiting = begin_broadcast(told, 0);
  Status done = wait(sending);
  if (!done.ok()) group_.keep(waiting);
  if (done.ok()) done = wait(waiting);
  SHW_RETURN_IF_ERROR(done);
  std::memcpy(&verdict, fetched(told).const_data_ptr(), sizeof verdict);
  return verdict;
}

// On rank 0.
Result<Verdict> GroupOperation::judge(const Record& mine, ReduceOperation reduction) {
  std::vector<at::Tensor> own{placed(bytes_of(std::as_bytes(std::span(&mine, 1))))};
  const at::Tensor all =
      at::empty({static_cast<int64_t>(sizeof mine) * group_.size()}, own[0].options());
  std::vector<std::vector<at::Tensor>> parts{all.chunk(group_.size())};
  ::c10d::GatherOptions options;
  options.rootRank = 0;
  options.timeout = backend_limit();
  SHW_RETURN_IF_ERROR(wait(group_.backend().gather(parts, own, options)));
  const at::Tensor here = fetched(all);
  return verdict_on(
      {static_cast<const Record*>(here.const_data_ptr()), static_cast<size_t>(group_.size())},
      reduction);
}

Status GroupOperation::out_of_step(const Verdict& verdict) const {
  const auto called = [&](size_t i) {
    return fmt::format("{} number {}", kind_name(static_cast<Kind>(verdict.kinds[i])),
                       verdict.sequences[i]);
  };
  const std::string expected = called(0);
  const std::string found = called(1);
  return aborted(fmt::format("ranks are out of step: rank 0 calls {}, rank {} calls {}{}", expected,
                             verdict.rank, found,
                             expected == found ? " with another tag, size, root or reduction" : ""))
      .with_detail("rank", fmt::to_string(verdict.rank))
      .with_detail("expected", expected)
      .with_detail("found", found);
}

Status GroupOperation::tell_problem(int32_t rank, const Status& problem) {
  std::array<char, kProblemBytes> text{};
  const std::string_view said = problem.message().substr(0, text.size() - 1);
  std::ranges::copy(said, text.begin());
  at::Tensor carried = bytes_of(std::as_bytes(std::span(text)));
  SHW_RETURN_IF_ERROR(broadcast(carried, rank));
  std::memcpy(text.data(), carried.data_ptr(), text.size() - 1);
  return known_to_all(invalid_argument(text.data()).with_detail("rank", fmt::to_string(rank)));
}

Status GroupOperation::known_to_all(Status failure) {
  all_ranks_know_ = true;
  return failure;
}

// ---- what a backend does ----

Status GroupOperation::reduce(at::Tensor& numbers, ReduceOperation operation) {
  std::vector<at::Tensor> tensors{placed(numbers)};
  ::c10d::AllreduceOptions options;
  options.reduceOp = reduction_of(operation);
  options.timeout = backend_limit();
  SHW_RETURN_IF_ERROR(wait(group_.backend().allreduce(tensors, options)));
  numbers = fetched(tensors[0]);
  return {};
}

Status GroupOperation::broadcast(at::Tensor& data, int32_t root) {
  at::Tensor there = placed(data);
  SHW_RETURN_IF_ERROR(wait(begin_broadcast(there, root)));
  data = fetched(there);
  return {};
}

c10::intrusive_ptr<::c10d::Work> GroupOperation::begin_broadcast(at::Tensor& there, int32_t root) {
  std::vector<at::Tensor> tensors{there};
  ::c10d::BroadcastOptions options;
  options.rootRank = root;
  options.timeout = backend_limit();
  return group_.backend().broadcast(tensors, options);
}

Result<at::Tensor> GroupOperation::gather(const at::Tensor& mine) {
  at::Tensor sent = placed(mine);
  at::Tensor all = at::empty({mine.numel() * group_.size()}, sent.options());
  ::c10d::AllgatherOptions options;
  options.timeout = backend_limit();
  SHW_RETURN_IF_ERROR(wait(group_.backend().all_gather_single(all, sent, options)));
  return fetched(all);
}

Result<at::Tensor> GroupOperation::exchange(const at::Tensor& sent, std::vector<int64_t> sent_sizes,
                                            std::vector<int64_t> received_sizes) {
  int64_t total = 0;
  for (const int64_t size : received_sizes) total += size;
  at::Tensor from = placed(sent);
  at::Tensor to = at::empty({total}, from.options());
  ::c10d::AllToAllOptions options;
  options.timeout = backend_limit();
  SHW_RETURN_IF_ERROR(
      wait(group_.backend().all_to_all_single(to, from, received_sizes, sent_sizes, options)));
  return fetched(to);
}

at::Tensor GroupOperation::placed(const at::Tensor& host) const {
  return group_.device().is_cpu() ? host : host.to(group_.device());
}

at::Tensor GroupOperation::fetched(const at::Tensor& there) const {
  return group_.device().is_cpu() ? there : there.to(at::kCPU);
}

// ---- waiting ----

milliseconds GroupOperation::left() const {
  return duration_cast<milliseconds>(until_ - steady_clock::now());
}

milliseconds GroupOperation::backend_limit() const {
  return std::max(left(), milliseconds(1)) + kGraceForBackend;
}

Status GroupOperation::wait(const c10::intrusive_ptr<::c10d::Work>& work) {
  for (;;) {
    if (ends_in_slice(*work)) return {};
    Status on = check_still_on();
    if (on.ok() && steady_clock::now() >= until_) on = too_late();
    if (on.ok()) continue;
    group_.keep(work);
    return on;
  }
}

// Throws what the operation failed with.
bool GroupOperation::ends_in_slice(::c10d::Work& work) {
  const milliseconds slice = std::clamp(left(), milliseconds(1), group_.slice());
  if (group_.device().is_cpu()) {
    try {
      work.wait(slice);
      return true;
    } catch (...) {
      if (!work.isCompleted()) return false;
      if (!work.isSuccess()) throw;
      return true;
    }
  }
  // A device only lets its streams wait, so its operation is asked.
  const auto end = steady_clock::now() + slice;
  while (!work.isCompleted()) {
    if (steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kDevicePause);
  }
  work.wait();
  return true;
}

// Fails with what ended the group, unless the rank that gave it up had completed this operation:
// then it can be completed here, too.
Status GroupOperation::check_still_on() {
  const std::optional<GroupEnd> end = group_.end();
  if (!end) return {};
  if (end->call == wanted_.call && end->operations > wanted_.operations) {
    const auto now = steady_clock::now();
    if (ended_at_ == steady_clock::time_point{}) ended_at_ = now;
    if (now - ended_at_ < kGraceForCompletion) return {};
  }
  return end->cause;
}

Status GroupOperation::too_late() const {
  return deadline_exceeded(fmt::format("rank {}: {} of {} ranks did not end within {:g} s",
                                       group_.rank(), kind_name(wanted_.kind), group_.size(),
                                       std::chrono::duration<double>(wanted_.limit).count()))
      .with_detail("rank", fmt::to_string(group_.rank()));
}

Status GroupOperation::transport_failure(std::string_view reason) {
  transport_failed_ = true;
  return failed_transport(kind_name(wanted_.kind), group_.rank(), reason);
}

Status failed_transport(std::string_view what, int32_t rank, std::string_view reason) {
  return aborted(fmt::format("rank {}: {} over the process group failed: {}", rank, what,
                             brief(reason)))
      .with_detail("rank", fmt::to_string(rank));
}

}  // namespace shardwright::collective::internal
