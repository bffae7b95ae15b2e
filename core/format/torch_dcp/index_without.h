// SPDX-License-Identifier: Apache-2.0
//
// An index without some of its entries: everything else that it says stays, whoever wrote it, but
// for Megatron's plans of ranks (all_local_plans), which describe what is no more. Pure, any
// thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/format/torch_dcp/digest_sidecar.h"

namespace shardwright::format::torch_dcp {

struct IndexWithout {
  std::string bytes;
  std::vector<EntryRemoval::Part> entries;  // ascending; bytes of their items in files
  std::vector<std::string> files;           // that nothing lies in any more, ascending
  std::vector<size_t> chunks;               // numbers in the index before of those that are left
  std::vector<size_t> objects;              // likewise
};

// goes: of names as they stand in the index. No entries = nothing has such a name. The failures of
// decode_index; UNIMPLEMENTED for an index that cannot be written again with all that it says.
Result<IndexWithout> index_without(std::span<const std::byte> index, const EntryNameRule& goes);

// The digests of the index before, as those of what is left.
DigestSidecar sidecar_without(DigestSidecar before, const IndexWithout& index);

}  // namespace shardwright::format::torch_dcp
