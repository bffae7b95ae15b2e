// SPDX-License-Identifier: Apache-2.0
//
// What the communicators share where an operation is issued.
#pragma once

#include <utility>

#include "core/base/without_exceptions.h"
#include "core/collective/communicator.h"

namespace shardwright::collective {

// issue() gives a Result<WorkPtr>. Where it fails, for want of memory too, this rank takes no part
// in what others wait for, so the communicator ends with that failure.
template <typename Issue>
Result<WorkPtr> issue_or_abort(Communicator& communicator, const char* what,
                               Issue&& issue) noexcept {
  Result<WorkPtr> work = without_exceptions(what, std::forward<Issue>(issue));
  if (!work.ok()) communicator.abort(work.status());
  return work;
}

// An operation that ended where it was issued.
class EndedWork final : public Work {
 public:
  Result<bool> wait(int64_t) override { return true; }
  Result<bool> test() override { return true; }
};

}  // namespace shardwright::collective
