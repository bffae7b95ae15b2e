// SPDX-License-Identifier: Apache-2.0
//
// Advisory locks of posix storage: flock on an empty file under the key. Any thread.
#pragma once

#include <memory>
#include <string_view>

#include "core/storage/posix/directory_internal.h"
#include "core/storage/storage.h"

namespace shardwright::storage::internal {

// As Storage::try_lock. Missing directories are made on the way, not durably. The file is opened
// for reading where shared, so that another user's file does for it; UNIMPLEMENTED only where the
// file system says that it has no locks.
Result<std::unique_ptr<StorageLock>> lock_key(const std::shared_ptr<const Root>& root,
                                              std::string_view key, LockMode mode);

}  // namespace shardwright::storage::internal
