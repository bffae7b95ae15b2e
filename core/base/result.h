// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value or a failed Status, and the two macros that propagate failures. Reading
// value() of a failure is a bug of ours; it throws std::bad_variant_access-like std::logic_error in
// every build, never returns garbage. Thread-compatible, like the value.
#pragma once

#include <stdexcept>
#include <utility>
#include <variant>

#include "core/base/status.h"

namespace shardwright {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<1>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status failure)
      : state_(std::in_place_index<0>, std::move(failure)) {  // NOLINT: implicit on purpose
    if (std::get<0>(state_).ok())
      std::get<0>(state_) = internal_error("a Result was built from a success status");
  }

  bool ok() const { return state_.index() == 1; }
  Status status() const { return ok() ? Status() : std::get<0>(state_); }
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

 private:
  T& checked() {
    if (!ok())
      throw std::logic_error("value of a failed Result: " + std::get<0>(state_).to_string());
    return std::get<1>(state_);
  }
  std::variant<Status, T> state_;
};

}  // namespace shardwright

#define SHW_INTERNAL_JOIN2(a, b) a##b
#define SHW_INTERNAL_JOIN(a, b) SHW_INTERNAL_JOIN2(a, b)

// Returns the status from the enclosing function when it is a failure.
#define SHW_RETURN_IF_ERROR(expression)               \
  do {                                                \
    ::shardwright::Status shw_status_ = (expression); \
    if (!shw_status_.ok()) return shw_status_;        \
  } while (false)

// SHW_ASSIGN_OR_RETURN(auto x, make()): declares or assigns x, or returns the failure.
#define SHW_ASSIGN_OR_RETURN(target, expression) \
  SHW_INTERNAL_ASSIGN(SHW_INTERNAL_JOIN(shw_result_, __LINE__), target, expression)
#define SHW_INTERNAL_ASSIGN(result, target, expression) \
  auto result = (expression);                           \
  if (!result.ok()) return result.status();             \
  target = std::move(result).value()
