// SPDX-License-Identifier: Apache-2.0
#include "capi/declined_call.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/job_handle.h"
#include "core/exec/job.h"
#include "core/exec/load.h"
#include "core/exec/save.h"

namespace shardwright::capi {
namespace {

using Transport = std::shared_ptr<collective::Collective>;

// False when the queue does not take it.
bool tell_in_turn(const Together& call, Context& context, const Transport& transport,
                  const Status& failure) {
  const exec::JobQueue::GroupRank group_rank{transport->group(), transport->rank()};
  if (context.jobs().rank_in_the_way(group_rank) >= 0) return false;
  exec::JobQueue::Work work = [tell = call.tell, to = transport.get(),
                               failure](const exec::CallContext&) -> Result<exec::Report> {
    return tell(*to, failure, 0);
  };
  // The queue keeps the transport until then; nobody waits for this job.
  return context.jobs().submit(std::move(work), transport, group_rank) != nullptr;
}

// What a host that declines has to say.
struct Refusal {
  Transport transport;
  decltype(Together::tell) tell = nullptr;
  Status failure;
};

Result<Refusal> read_refusal(shw_collective* collective, int32_t call, shw_status code,
                             const char* message, uint64_t message_size) {
  Refusal refusal;
  SHW_ASSIGN_OR_RETURN(const auto member, need(collective, "collective"));
  refusal.transport = member->collective;
  SHW_RETURN_IF_ERROR(option_in_range(call, SHW_CALL_LOAD, "call"));
  refusal.tell = call == SHW_CALL_SAVE ? exec::decline_save : exec::decline_load;
  SHW_ASSIGN_OR_RETURN(const auto text, text_argument(message, message_size, "message"));
  SHW_RETURN_IF_ERROR(cause_argument(code, text, &refusal.failure));
  return refusal;
}

}  // namespace

void decline_if_in_callback(shw_collective* collective) noexcept {
  if (!in_callback() || in_forked_child()) return;
  const auto* member = peek(collective);
  if (member == nullptr || member->calls > 0 || member->collective->size() < 2) return;
  member->collective->abort(without_exceptions("a call in a callback", call_in_callback));
}

void decline(const Together& call, const Status& failure) noexcept {
  if (in_forked_child() || in_callback()) return;
  const auto* member = peek(call.collective);
  if (member == nullptr || member->collective->size() < 2) return;
  const Transport transport = member->collective;
  if (!call.asynchronous) {
    (void)call.tell(*transport, failure, 0);  // what all are told is our own failure
    return;
  }
  Context* const context = peek(call.context);
  const Status told = without_exceptions("telling other ranks of a failure", [&]() -> Status {
    if (context != nullptr && tell_in_turn(call, *context, transport, failure)) return {};
    return failure;
  });
  if (!told.ok()) transport->abort(failure);
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;

extern "C" {

shw_status shw_collective_decline(shw_collective* collective, int32_t call, shw_status code,
                                  const char* message, uint64_t message_size,
                                  shw_error** err) noexcept {
  capi::decline_if_in_callback(collective);
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto refusal,
                         capi::read_refusal(collective, call, code, message, message_size));
    if (refusal.transport->size() < 2) return {};
    // What comes back is the failure that all ranks were told.
    (void)refusal.tell(*refusal.transport, refusal.failure, 0);
    return {};
  });
}

shw_status shw_collective_decline_async(shw_context* context, shw_collective* collective,
                                        int32_t call, shw_status code, const char* message,
                                        uint64_t message_size, shw_job** out,
                                        shw_error** err) noexcept {
  capi::decline_if_in_callback(collective);
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(auto shared, capi::need(context, "context"));
    SHW_ASSIGN_OR_RETURN(const auto refusal,
                         capi::read_refusal(collective, call, code, message, message_size));
    exec::JobQueue::Work work =
        [refusal](const exec::CallContext&) -> shardwright::Result<exec::Report> {
      return refusal.tell(*refusal.transport, refusal.failure, 0);
    };
    SHW_ASSIGN_OR_RETURN(*out, capi::submit_job(std::move(shared), std::move(work),
                                                refusal.transport, *refusal.transport));
    return {};
  });
}

}  // extern "C"
