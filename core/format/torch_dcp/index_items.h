// SPDX-License-Identifier: Apache-2.0
//
// The items that an index names, whatever they hold. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/format/torch_dcp/dcp_index.h"

namespace shardwright::format::torch_dcp {

struct IndexItem {
  ItemPlace place;
  std::string_view entry;   // its name, in the index
  uint64_t most_bytes = 0;  // of the archive that a transform may have been of
};

// By file, offset and entry; those of no elements may lie nowhere. The index outlives them.
std::vector<IndexItem> items_of(const DcpIndex& index);

}  // namespace shardwright::format::torch_dcp
