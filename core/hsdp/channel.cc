// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/hsdp/channel_internal.h"

namespace shardwright::hsdp::internal {
namespace {

Status name_failure(Status failure, collective::OperationKind kind, const ChannelCall& call,
                    uint64_t sequence) {
  return std::move(failure).annotated(fmt::format("{} of unit '{}' (sequence {})",
                                                  collective::operation_name(kind), *call.unit_name,
                                                  sequence));
}

}  // namespace

Result<bool> ChannelWork::named(Result<bool> outcome) const {
  if (outcome.ok()) return outcome;
  return name_failure(outcome.status(), kind_, call_, sequence_);
}

Result<bool> ChannelWork::wait(int64_t timeout_ns) {
  return named(work_->wait(timeout_ns));
}

Result<bool> ChannelWork::test() {
  return named(work_->test());
}

Channel::Channel(Reach reach, int64_t timeout_ns, bool is_guarded)
    : reach_(std::move(reach)), timeout_ns_(timeout_ns) {
  if (!is_guarded) guard_.stop();
}

template <typename Issue>
Result<ChannelWork> Channel::issue(collective::OperationKind kind, const ChannelCall& call,
                                   uint64_t bytes, Issue&& operation) {
  const uint64_t sequence = sequence_++;
  guard_.record(kind, call.unit, bytes);
  collective::CommunicatorCall issued;
  issued.sequence = sequence;
  issued.unit = call.unit;
  issued.count = call.count;
  issued.dtype = call.dtype;
  issued.timeout_ns = timeout_ns_;
  issued.memory = call.memory;
  if (Status ready = reach_.work->finish(); !ready.ok())
    return name_failure(std::move(ready), kind, call, sequence);
  Result<collective::WorkPtr> work = operation(issued);
  if (!work.ok()) return name_failure(work.status(), kind, call, sequence);
  return ChannelWork(*std::move(work), kind, call, sequence);
}

Result<ChannelWork> Channel::all_gather(const ChannelCall& call, std::span<const std::byte> in,
                                        std::span<std::byte> out) {
  return issue(collective::OperationKind::kAllGather, call, in.size(),
               [&](const auto& issued) { return reach_.of_units->all_gather(issued, in, out); });
}

Result<ChannelWork> Channel::all_to_all(const ChannelCall& call, std::span<const std::byte> in,
                                        std::span<std::byte> out) {
  return issue(collective::OperationKind::kAllToAll, call, in.size(),
               [&](const auto& issued) { return reach_.of_units->all_to_all(issued, in, out); });
}

Result<ChannelWork> Channel::reduce_scatter(const ChannelCall& call, std::span<const std::byte> in,
                                            std::span<std::byte> out) {
  return issue(collective::OperationKind::kReduceScatter, call, in.size(), [&](const auto& issued) {
    return reach_.of_units->reduce_scatter(issued, in, out);
  });
}

Result<ChannelWork> Channel::all_reduce(const ChannelCall& call, std::span<std::byte> data) {
  return issue(collective::OperationKind::kAllReduce, call, data.size(),
               [&](const auto& issued) { return reach_.of_units->all_reduce(issued, data); });
}

Status Channel::exchange(std::span<const std::byte> mine, std::span<std::byte> all) {
  collective::CommunicatorCall call;
  call.sequence = sequence_++;
  call.count = mine.size();
  call.dtype = DType::kUint8;
  call.timeout_ns = timeout_ns_;
  SHW_ASSIGN_OR_RETURN(const collective::WorkPtr work, reach_.of_host->all_gather(call, mine, all));
  const Result<bool> ended = work->wait(-1);
  return ended.status();
}

Status Channel::compare_order(const OrderGuard::Names& names, bool last) {
  if (!guard_.is_active()) return {};
  collective::CommunicatorCall call;
  call.sequence = sequence_;
  call.timeout_ns = timeout_ns_;
  const Status outcome = guard_.compare(*reach_.of_host, &call, names);
  sequence_ = call.sequence;
  if (last) guard_.stop();
  return outcome;
}

}  // namespace shardwright::hsdp::internal
