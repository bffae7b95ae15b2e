// SPDX-License-Identifier: Apache-2.0
//
// work.h: operations that are under way.
#include "shardwright/work.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/communicator_argument.h"
#include "capi/boundary/communicator_handles.h"
#include "capi/boundary/guard.h"

namespace shardwright::capi {
namespace {

Status pending_or_failed(Result<bool> ended, shw_status* answer) {
  SHW_RETURN_IF_ERROR(ended.status());
  if (!*ended) *answer = SHW_PENDING;
  return {};
}

}  // namespace

Result<shw_work*> work_of(collective::WorkPtr work, std::shared_ptr<const void> owner) {
  auto impl = std::make_shared<WorkImpl>();
  impl->owner = std::move(owner);
  impl->work = std::move(work);
  return make_handle<shw_work>(std::move(impl));
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

shw_status shw_work_wait(shw_work* work, int64_t timeout_ns, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(work, "work"));
    if (timeout_ns < -1)
      return capi::bad_argument("timeout_ns", fmt::format("{} is not -1 or above", timeout_ns));
    return capi::pending_or_failed(impl->work->wait(timeout_ns), answer);
  });
}

shw_status shw_work_poll(shw_work* work, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(work, "work"));
    return capi::pending_or_failed(impl->work->test(), answer);
  });
}

shw_status shw_work_order(shw_work* work, uint64_t stream, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(work, "work"));
    return impl->work->order(stream);
  });
}

void shw_work_release(shw_work* work) noexcept {
  capi::release_handle(work);
}

}  // extern "C"
