// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save before 1.6, and of its option _use_new_zipfile_serialization=False.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/torch_save/stored_value.h"

namespace shardwright::format::torch_save::internal {

inline constexpr uint64_t kOldMagicBytes = 15;

// Fills pickle and storages.
Status read_old_file(const archive::ArchiveBytes& bytes, StoredValue* stored);

}  // namespace shardwright::format::torch_save::internal
