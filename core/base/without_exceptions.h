// SPDX-License-Identifier: Apache-2.0
//
// The barrier between steps that may throw and code that counts on their end: what a step throws
// becomes its failure. Ranks meet between steps, and groups count tasks: one that unwound past that
// would leave others waiting. The barrier itself never throws and needs no memory. Any thread.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/base/result.h"

namespace shardwright {

// The failure of `what`, whose exception is being handled.
inline Status failure_of_exception(const char* what) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return resource_exhausted("memory", fmt::format("memory ran out: {}", what));
    } catch (const std::exception& failure) {
      return internal_error(fmt::format("{} threw: {}", what, failure.what()));
    } catch (...) {
      return internal_error(fmt::format("{} threw something that is not a std::exception", what));
    }
  } catch (...) {
    return out_of_memory();  // for the text
  }
}

// step() returns a Status or a Result; `what` names it in the failure.
template <typename Step>
auto without_exceptions(const char* what, Step&& step) noexcept -> decltype(step()) {
  try {
    return std::forward<Step>(step)();
  } catch (...) {
    return failure_of_exception(what);
  }
}

}  // namespace shardwright
