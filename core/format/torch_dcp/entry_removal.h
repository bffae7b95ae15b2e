// SPDX-License-Identifier: Apache-2.0
//
// Entries of a directory of torch DCP that are taken away. Thread rule of the storage, under the
// lock of the place.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/format/torch_dcp/index_without.h"

namespace shardwright::format::torch_dcp {

// As FormatWriter::remove_entries. The directory has an index of all ranks (.metadata); DATA_LOSS
// for one that is damaged, NOT_FOUND without one.
Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes,
                                    bool apply);

// The same in two steps, for formats around it. The index is read and made once.
struct PlannedRemoval {
  std::vector<std::byte> before;  // the index
  IndexWithout index;
  EntryRemoval removal;  // no entries: nothing has such a name, and there is nothing to carry out
};
Result<PlannedRemoval> plan_removal(const Location& location, const EntryNameRule& goes);
Status carry_out(const Location& location, const PlannedRemoval& planned);

// In place of what is there, durable with its name.
Status put_in_place(const Location& location, std::string_view name,
                    std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_dcp
