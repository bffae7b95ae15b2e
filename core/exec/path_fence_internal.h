// SPDX-License-Identifier: Apache-2.0
//
// The fence of a path: a lock (PATH/.lock), which saves hold shared and gc alone. While a save
// holds it, from before its generation exists until it has tidied up, gc removes nothing; while gc
// works no save begins. Savers do not keep each other away, the condition of step 6 does that, but
// for those of formats that have something to do after it: they hold the fence alone.
#pragma once

#include <memory>
#include <string>

#include "core/concurrency/cancellation.h"
#include "core/exec/runtime.h"
#include "core/format/opened_checkpoint.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

// Where, and the key of the lock; "" = the format needs none, and nothing is locked.
struct FencedPath {
  const format::Location& location;
  std::string key;
};

using FenceLock = std::unique_ptr<storage::StorageLock>;

// For a save. Waits while gc, or for an exclusive lock another save, has the path, with the
// deadline and cancellation of the control and at most kMaxFenceWaitNs: DEADLINE_EXCEEDED,
// CANCELLED, UNAVAILABLE. Null with success where the storage has no locks: there gc leaves alone
// what is younger than kGcGraceNs.
Result<FenceLock> lock_path_to_save(Runtime& runtime, const FencedPath& path,
                                    storage::LockMode mode, const CallControl& control);

// Alone, for gc, at once: null with success when a save holds it. UNIMPLEMENTED where the storage
// has no locks, or the format takes none.
Result<FenceLock> lock_path_alone(const FencedPath& path);

}  // namespace shardwright::exec::internal
