// SPDX-License-Identifier: Apache-2.0
//
// Handles: what the incomplete C types point to. A handle is a magic word and a shared pointer to
// the thing; children keep the things of their parents alive, never their handles. A released
// handle is kept for a while with its word poisoned, so that a later use is refused instead of
// undefined. release_handle may run on any thread; a handle is not used while it is released.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/process_state.h"
#include "core/base/result.h"

namespace shardwright::capi {

inline constexpr uint64_t kReleasedMagic = 0x6465616473686477;

// Keeps a poisoned handle's memory until 1,024 more were released, then calls destroy(memory).
void quarantine(void* memory, void (*destroy)(void*)) noexcept;

// Impl must have a constant kMagic that no other Impl has, and a text kNoun for messages.
template <typename Impl>
struct Handle {
  uint64_t magic = Impl::kMagic;
  std::shared_ptr<Impl> impl;
};

// The thing behind a handle; null for NULL and for a released handle.
template <typename Impl>
Impl* peek(const Handle<Impl>* handle) noexcept {
  return handle != nullptr && handle->magic == Impl::kMagic ? handle->impl.get() : nullptr;
}

// The same as a Result: INVALID_ARGUMENT for NULL, FAILED_PRECONDITION for a released handle.
template <typename Impl>
Result<std::shared_ptr<Impl>> need(const Handle<Impl>* handle, const char* parameter) {
  if (handle == nullptr) {
    return invalid_argument(
               fmt::format("parameter '{}' is NULL, expected a {}", parameter, Impl::kNoun))
        .with_detail("parameter", parameter);
  }
  if (handle->magic != Impl::kMagic) {
    return failed_precondition(
               fmt::format("parameter '{}' is a {} that was released", parameter, Impl::kNoun))
        .with_detail("parameter", parameter);
  }
  return handle->impl;
}

// A new handle; C is the C type, derived from Handle<Impl>.
template <typename C, typename Impl>
C* make_handle(std::shared_ptr<Impl> impl) {
  auto handle = std::make_unique<C>();
  handle->impl = std::move(impl);
  return handle.release();
}

template <typename C>
void release_handle(C* handle) noexcept {
  using Impl = typename decltype(handle->impl)::element_type;
  if (handle == nullptr || handle->magic != Impl::kMagic) return;
  handle->magic = kReleasedMagic;
  if (in_forked_child()) {
    // Threads and locks of the parent do not exist here: only the handle's own memory goes.
    ::operator delete(static_cast<void*>(handle));
    return;
  }
  std::shared_ptr<Impl>().swap(handle->impl);
  quarantine(handle, [](void* memory) { delete static_cast<C*>(memory); });
}

}  // namespace shardwright::capi
