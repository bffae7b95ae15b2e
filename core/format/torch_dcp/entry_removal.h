// SPDX-License-Identifier: Apache-2.0
//
// Entries of a directory of torch DCP that are taken away. Thread rule of the storage, under the
// lock of the place.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/format/torch_dcp/removal_list.h"

namespace shardwright::format::torch_dcp {

// What a format around does in the same removal. Each may be empty.
struct AroundRemoval {
  // What `restore` needs; changes nothing.
  std::function<Result<std::string>()> keep;
  // Takes away what would say something else than the new index.
  std::function<Status()> withdraw;
  // Puts that back as it is true now, from what `keep` gave (list.kept, not empty). gone: files of
  // data that went. Also where the removal has not taken place. Can be tried again.
  std::function<Status(const RemovalList& list, std::span<const std::string> gone)> restore;
};

// As FormatWriter::remove_entries. The directory has an index of all ranks (.metadata); DATA_LOSS
// for one that is damaged, NOT_FOUND without one. A removal that was cut off is finished first,
// whatever its rule was.
Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes, bool apply,
                                    const AroundRemoval& around = {});
// That alone; nothing where none was cut off.
Status finish_removal(const Location& location, const AroundRemoval& around = {});

// Makes what was renamed and removed at a location durable, where its storage has names that are.
Status sync_names(const Location& location);
// In place of what is there, durable with its name.
Status put_in_place(const Location& location, std::string_view name,
                    std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_dcp
