// SPDX-License-Identifier: Apache-2.0
//
// One non-template function holds all handlers, so that a hundred exported functions share them.
#include "capi/boundary/guard.h"

#include <new>
#include <stdexcept>

#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "core/base/without_exceptions.h"

namespace shardwright::capi {
namespace {

#ifdef SHW_FAULT_INJECTION
thread_local int injected = 0;
#endif

Status run_body(ErasedBody call, void* body, shw_status* answer) {
#ifdef SHW_FAULT_INJECTION
  const int kind = injected;
  injected = 0;
  if (kind == 1) throw std::runtime_error("injected");
  if (kind == 2) throw std::bad_alloc();
  if (kind == 3) throw 3;
#endif
  if (in_forked_child()) {
    return failed_precondition(
        "this process was forked from one that had used the library before, whose threads and "
        "locks a fork does not copy: start it with spawn or forkserver, or fork before the first "
        "use");
  }
  if (in_callback()) return call_in_callback();
  return call(body, answer);
}

shw_status fail(shw_error** err, const Status& status) noexcept {
  if (err != nullptr) *err = error_from_status(status);
  return static_cast<shw_status>(status.code());
}

}  // namespace

shw_status run_guarded(shw_error** err, ErasedBody call, void* body) noexcept {
  if (err != nullptr && *err != nullptr) return SHW_INVALID_ARGUMENT;
  shw_status answer = SHW_OK;
  const Status status =
      without_exceptions("a call of the library", [&] { return run_body(call, body, &answer); });
  return status.ok() ? answer : fail(err, status);
}

Status occupied_error_slot() {
  return invalid_argument("the error slot of the call holds an error already; release it first");
}

Status call_in_callback() {
  return failed_precondition(
      "a callback may call callback-safe functions only, and this function is not one of them");
}

#ifdef SHW_FAULT_INJECTION
void inject_exception(int kind) noexcept {
  injected = kind;
}
#endif

}  // namespace shardwright::capi
