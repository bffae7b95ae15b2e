// SPDX-License-Identifier: Apache-2.0
//
// Where a call reads or writes: (storage, path) of the C surface as a Location. Any thread.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/format/format.h"
#include "shardwright/storage.h"

namespace shardwright::capi {

// storage NULL: path is a file-system path, made absolute now; else a key prefix, "" = the root of
// the storage. UNIMPLEMENTED for "scheme://" without a storage. `parameter` names the path in
// messages.
Result<format::Location> read_location(const shw_storage* storage, const char* path,
                                       const char* parameter);

Result<shw_storage*> storage_of(std::shared_ptr<storage::Storage> storage);

}  // namespace shardwright::capi
