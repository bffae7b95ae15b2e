// SPDX-License-Identifier: Apache-2.0
//
// The exception barrier. Every exported function runs its whole body inside guarded(): error slot
// check, fork check, re-entry check, body, and whatever the body throws becomes a status. Nothing
// of capi/ allocates outside it. Any thread.
#pragma once

#include <memory>
#include <type_traits>

#include "core/base/status.h"
#include "shardwright/base.h"

namespace shardwright::capi {

// Runs call(body); `answer` starts as OK and is returned when the status is a success, so that a
// body may answer PENDING or BUFFER_TOO_SMALL, which are no errors.
using ErasedBody = Status (*)(void* body, shw_status* answer);
shw_status run_guarded(shw_error** err, ErasedBody call, void* body) noexcept;

// What a call answers whose error slot holds an error already, and one in a callback.
Status occupied_error_slot();
Status call_in_callback();

// body: Status().
template <typename Body>
shw_status guarded(shw_error** err, Body&& body) noexcept {
  using Plain = std::remove_reference_t<Body>;
  return run_guarded(
      err, [](void* erased, shw_status*) -> Status { return (*static_cast<Plain*>(erased))(); },
      std::addressof(body));
}

// body: Status(shw_status* answer).
template <typename Body>
shw_status guarded_answer(shw_error** err, Body&& body) noexcept {
  using Plain = std::remove_reference_t<Body>;
  return run_guarded(
      err,
      [](void* erased, shw_status* answer) -> Status {
        return (*static_cast<Plain*>(erased))(answer);
      },
      std::addressof(body));
}

#ifdef SHW_FAULT_INJECTION
// What the next guarded body of this thread throws instead of running: 0 nothing, 1 a standard
// exception, 2 std::bad_alloc, 3 an int.
void inject_exception(int kind) noexcept;
#endif

}  // namespace shardwright::capi
