// SPDX-License-Identifier: Apache-2.0
//
// Time-outs as with collectives: the core says "negative = no limit", the table "0 = library
// default, -1 = no limit". What fails on this rank is told to the others by the table's abort.
#include "capi/adapters/communicator_adapter.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/version.h"
#include "core/collective/issue.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::capi {
namespace {

using collective::Communicator;
using collective::CommunicatorCall;
using collective::OperationKind;
using collective::TensorOperation;
using collective::Work;
using collective::WorkPtr;

int64_t table_timeout(int64_t timeout_ns) {
  if (timeout_ns < 0) return -1;
  return timeout_ns == 0 ? 1 : timeout_ns;
}

shw_communicator_call table_call(const CommunicatorCall& call) {
  shw_communicator_call made = SHW_COMMUNICATOR_CALL_INIT;
  made.sequence = call.sequence;
  made.unit_id = call.unit;
  made.count = call.count;
  made.dtype = static_cast<int32_t>(call.dtype);
  made.op = static_cast<int32_t>(call.reduction);
  made.scale = call.scale;
  made.stream = call.stream;
  made.timeout_ns = table_timeout(call.timeout_ns);
  made.tag = call.tag;
  return made;
}

// What is told to other ranks: the message and those of its causes. "" where memory has run out.
std::string with_causes(const Status& failure) noexcept {
  try {
    std::string text(failure.message());
    for (const Status* each = failure.cause(); each != nullptr; each = each->cause())
      text.append(": ").append(each->message());
    return text;
  } catch (...) {
    return {};
  }
}

// What one call of the table gave.
struct Outcome {
  shw_status code = SHW_OK;
  shw_error* error = nullptr;
};

template <typename Body>
Outcome call_table(Body&& body) {
  Outcome outcome;
  const CallbackScope scope;
  outcome.code = body(&outcome.error);
  return outcome;
}

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(std::string name, std::shared_ptr<void> owner)
      : name_(std::move(name)), owner_(std::move(owner)) {}
  ~HostCommunicator() override {
    if (table_.release == nullptr) return;
    const CallbackScope scope;
    table_.release(table_.user);
  }
  // Called once; from here on the table's release is ours.
  void take(const shw_communicator_vtable& table) { table_ = table; }

  const shw_communicator_vtable& table() const { return table_; }
  int32_t rank() const override { return table_.rank; }
  int32_t size() const override { return table_.size; }
  std::string_view name() const override { return name_; }
  uint64_t capabilities() const override { return table_.capabilities; }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return move({OperationKind::kAllGather, call, 0, in, out}, table_.all_gather);
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return move({OperationKind::kAllToAll, call, 0, in, out}, table_.all_to_all);
  }
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    if (table_.reduce_scatter == nullptr) return Communicator::reduce_scatter(call, in, out);
    return move({OperationKind::kReduceScatter, call, 0, in, out}, table_.reduce_scatter);
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    if (table_.all_reduce == nullptr) return Communicator::all_reduce(call, data);
    return issue({OperationKind::kAllReduce, call, 0, {}, data},
                 [&](const auto* made, void** work, shw_error** error) {
                   return table_.all_reduce(table_.user, made, data.data(), work, error);
                 });
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    if (table_.broadcast == nullptr) return Communicator::broadcast(call, data, root);
    return issue({OperationKind::kBroadcast, call, root, {}, data},
                 [&](const auto* made, void** work, shw_error** error) {
                   return table_.broadcast(table_.user, made, data.data(), root, work, error);
                 });
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override {
    if (table_.barrier == nullptr) return Communicator::barrier(call);
    return issue({OperationKind::kBarrier, call, 0, {}, {}},
                 [&](const auto* made, void** work, shw_error** error) {
                   return table_.barrier(table_.user, made, work, error);
                 });
  }

  void abort(const Status& cause) noexcept override {
    const std::string text = with_causes(cause);
    const std::string_view message = text.empty() ? cause.message() : text;  // both NUL-terminated
    const CallbackScope scope;
    table_.abort(table_.user, static_cast<shw_status>(cause.code()),
                 message.empty() ? "" : message.data(), message.size());
  }

  // What a call of the table gave for an operation.
  Status failure_of(const TensorOperation& own, const Outcome& outcome) const {
    const std::string doing = fmt::format("{} by communicator '{}' on rank {} of {}",
                                          operation_title(own), name_, table_.rank, table_.size);
    return status_from_host(outcome.code, outcome.error, doing.c_str())
        .with_detail("unit", fmt::to_string(own.call.unit));
  }

 private:
  Result<WorkPtr> move(const TensorOperation& own, shw_communicator_move_fn slot) {
    return issue(own, [&](const auto* made, void** work, shw_error** error) {
      return slot(table_.user, made, own.in.data(), own.out.data(), work, error);
    });
  }
  template <typename Body>
  Result<WorkPtr> issue(const TensorOperation& own, Body&& body);

  shw_communicator_vtable table_{};
  std::string name_;
  std::shared_ptr<void> owner_;  // the plugin that the functions lie in
};

// What was issued; its memory lives until the table has let go of it.
class HostWork final : public Work {
 public:
  HostWork(HostCommunicator& communicator, const TensorOperation& own)
      : communicator_(communicator), own_(own) {}
  ~HostWork() override {
    if (!issued_) return;
    const CallbackScope scope;
    table().work_release(table().user, work_);
  }
  void** place() { return &work_; }
  void issued() { issued_ = true; }

  Result<bool> wait(int64_t timeout_ns) override {
    return ended([&](shw_error** error) {
      return table().work_wait(table().user, work_, table_timeout(timeout_ns), error);
    });
  }
  Result<bool> test() override {
    return ended([&](shw_error** error) { return table().work_test(table().user, work_, error); });
  }
  Status order(uint64_t stream) override {
    if (table().work_order == nullptr) return Work::order(stream);
    SHW_RETURN_IF_ERROR(failure_);
    const Outcome outcome = call_table(
        [&](shw_error** error) { return table().work_order(table().user, work_, stream, error); });
    return outcome.code == SHW_OK && outcome.error == nullptr ? Status() : fail(outcome);
  }

 private:
  const shw_communicator_vtable& table() const { return communicator_.table(); }

  template <typename Body>
  Result<bool> ended(Body&& body) {
    SHW_RETURN_IF_ERROR(failure_);
    const Outcome outcome = call_table(std::forward<Body>(body));
    if (outcome.code == SHW_PENDING) {
      shw_error_release(outcome.error);
      return false;
    }
    if (outcome.code == SHW_OK && outcome.error == nullptr) return true;
    return fail(outcome);
  }

  Status fail(const Outcome& outcome) {
    failure_ = communicator_.failure_of(own_, outcome);
    communicator_.abort(failure_);
    return failure_;
  }

  HostCommunicator& communicator_;
  const TensorOperation own_;
  void* work_ = nullptr;
  bool issued_ = false;
  Status failure_;
};

template <typename Body>
Result<WorkPtr> HostCommunicator::issue(const TensorOperation& own, Body&& body) {
  return issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
    SHW_RETURN_IF_ERROR(check_operation(own, rank(), size()).status());
    auto work = std::make_unique<HostWork>(*this, own);
    const shw_communicator_call made = table_call(own.call);
    const Outcome outcome =
        call_table([&](shw_error** error) { return body(&made, work->place(), error); });
    if (outcome.code != SHW_OK || outcome.error != nullptr) return failure_of(own, outcome);
    work->issued();
    return WorkPtr(std::move(work));
  });
}

}  // namespace

Status check_communicator_slots(const shw_communicator_vtable& vtable) {
  const auto need = [](auto slot, const char* name) -> Status {
    if (slot != nullptr) return {};
    return bad_argument("vtable", fmt::format("required slot '{}' is NULL", name))
        .with_detail("field", name);
  };
  SHW_RETURN_IF_ERROR(need(vtable.name, "name"));
  SHW_RETURN_IF_ERROR(need(vtable.all_gather, "all_gather"));
  SHW_RETURN_IF_ERROR(need(vtable.all_to_all, "all_to_all"));
  SHW_RETURN_IF_ERROR(need(vtable.work_wait, "work_wait"));
  SHW_RETURN_IF_ERROR(need(vtable.work_test, "work_test"));
  SHW_RETURN_IF_ERROR(need(vtable.work_release, "work_release"));
  SHW_RETURN_IF_ERROR(need(vtable.abort, "abort"));
  return check_interface(fmt::format("communicator '{}'", vtable.name), vtable.abi_major,
                         vtable.abi_minor);
}

Status check_communicator_ranks(const shw_communicator_vtable& vtable) {
  if (vtable.size >= 1 && vtable.rank >= 0 && vtable.rank < vtable.size) return {};
  return bad_argument("vtable",
                      fmt::format("rank {} of {} ranks does not exist", vtable.rank, vtable.size));
}

collective::CommunicatorPtr make_host_communicator(const shw_communicator_vtable& vtable,
                                                   std::shared_ptr<void> owner) {
  auto made = std::make_shared<HostCommunicator>(vtable.name, std::move(owner));
  made->take(vtable);
  return made;
}

}  // namespace shardwright::capi
