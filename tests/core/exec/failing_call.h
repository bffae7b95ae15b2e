// SPDX-License-Identifier: Apache-2.0
//
// A storage of which one call fails, or from one call on all do, as if the process were gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "core/storage/backends.h"

namespace shardwright::exec::test {

// call: number of the one that fails, from 1 on. goes_on: those behind it fail as well, as if the
// process were gone.
struct FailingCall {
  std::shared_ptr<std::atomic<int64_t>> count = std::make_shared<std::atomic<int64_t>>(0);
  int64_t call = std::numeric_limits<int64_t>::max();
  bool goes_on = false;

  std::shared_ptr<storage::Storage> on(storage::Storage& inner) const {
    return storage::make_fault_storage(
        inner, [each = *this](const storage::StorageEvent& event, uint64_t*) {
          const int64_t number = ++*each.count;
          const bool hit = each.goes_on ? number >= each.call : number == each.call;
          if (!hit) return Status();
          return unavailable(fmt::format("no answer to {} of {}",
                                         storage::operation_name(event.operation), event.key));
        });
  }
};

}  // namespace shardwright::exec::test
