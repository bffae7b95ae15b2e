// SPDX-License-Identifier: Apache-2.0
//
// Turns what a step throws into its failure. Ranks meet between steps: one that unwinds past a
// meeting would leave the others waiting until their deadline. Any thread.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "core/base/result.h"

namespace shardwright::exec::internal {

// step() returns a Status or a Result; `what` names it in the failure.
template <typename Step>
auto without_exceptions(const char* what, Step&& step) -> decltype(step()) {
  try {
    return std::forward<Step>(step)();
  } catch (const std::bad_alloc&) {
    return resource_exhausted("memory", fmt::format("memory ran out: {}", what));
  } catch (const std::exception& failure) {
    return internal_error(fmt::format("{} threw: {}", what, failure.what()));
  } catch (...) {
    return internal_error(fmt::format("{} threw something that is not a std::exception", what));
  }
}

}  // namespace shardwright::exec::internal
