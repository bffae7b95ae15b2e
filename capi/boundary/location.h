// SPDX-License-Identifier: Apache-2.0
//
// Where a call reads or writes: (storage, path) of the C surface as a Location. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/format/format.h"
#include "shardwright/storage.h"

namespace shardwright::capi {

// What a path of the file system is to be: a directory, or a file where its name says so; a file.
enum class PathKind : uint8_t { kAny, kFile };

// storage NULL: path is a file-system path, made absolute now; else a key prefix, "" = the root of
// the storage. UNIMPLEMENTED for "scheme://" without a storage. `parameter` names the path in
// messages.
Result<format::Location> read_location(const shw_storage* storage, const char* path,
                                       const char* parameter, PathKind kind = PathKind::kAny);

Result<shw_storage*> storage_of(std::shared_ptr<storage::Storage> storage);

}  // namespace shardwright::capi
