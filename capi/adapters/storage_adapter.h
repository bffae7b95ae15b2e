// SPDX-License-Identifier: Apache-2.0
//
// A host's storage table as a core Storage. The table is copied; release runs once, after storage
// and objects are gone. Thread-safe as far as the table is.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/storage/storage.h"
#include "shardwright/storage.h"

namespace shardwright::capi {

// INVALID_ARGUMENT naming a required slot that is NULL.
Status check_storage_slots(const shw_storage_vtable& vtable);

// vtable passed the struct reader and check_storage_slots. `owner` (may be null) is kept until the
// storage and its objects are gone: a plugin.
Result<std::shared_ptr<storage::Storage>> make_host_storage(const shw_storage_vtable& vtable,
                                                            std::shared_ptr<void> owner);

}  // namespace shardwright::capi
